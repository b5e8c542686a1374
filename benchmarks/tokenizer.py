"""The tokenizer of a run: its file, unpacked, and what the benchmarks need of it."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tokenizers

END_OF_TEXT = ("<|eot_id|>", "<|im_end|>", "<|return|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "<|endoftext|>")
"""Names of the token that ends an assistant's message, in the order in which they are looked for."""


@dataclass(frozen=True)
class LoadedTokenizer:
    """A Hugging Face tokenizer and the path of its ``tokenizer.json``."""

    path: Path
    native: tokenizers.Tokenizer

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, no special ones added."""
        ids: list[int] = self.native.encode(text, add_special_tokens=False).ids
        return ids

    def text_before(self, text: str, position: int) -> str:
        """The part of a text that its first ``position`` tokens cover."""
        offsets = self.native.encode(text, add_special_tokens=False).offsets
        return text[: offsets[position][0]] if position < len(offsets) else text

    def end_of_text(self) -> int:
        """The token that ends a message, by its usual names. Raises ValueError if there is none of these."""
        return end_of_text({token.content: i for i, token in self.native.get_added_tokens_decoder().items()})


def end_of_text(added_tokens: dict[str, int]) -> int:
    """The id of the token that ends a message, by its usual names.

    Raises:
        ValueError: none of the names is there.
    """
    for name in END_OF_TEXT:
        if name in added_tokens:
            return added_tokens[name]
    raise ValueError(f"the tokenizer has none of {', '.join(END_OF_TEXT)}; give the id with --eos-token-id")


@contextmanager
def loaded_tokenizer(name: str) -> Iterator[LoadedTokenizer]:
    """A tokenizer by path (``tokenizer.json``, gzipped or not) or by name under ``$GRAMMASK_DATA/tokenizers``.

    Raises:
        FileNotFoundError: neither is there.
    """
    import tokenizers

    path = Path(name)
    if not path.is_file():
        path = data_file(f"tokenizers/{name}.tokenizer.json.gz")
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".gz":
            unpacked = Path(folder) / "tokenizer.json"
            unpacked.write_bytes(gzip.decompress(path.read_bytes()))
            path = unpacked
        yield LoadedTokenizer(path.resolve(), tokenizers.Tokenizer.from_file(str(path)))


def data_file(name: str) -> Path:
    """A file under $GRAMMASK_DATA. Raises FileNotFoundError with what to do."""
    folder = os.environ.get("GRAMMASK_DATA")
    if not folder:
        raise FileNotFoundError(f"set GRAMMASK_DATA to the folder that holds {name}, or give the path")
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give another path, or set GRAMMASK_DATA")
    return path
