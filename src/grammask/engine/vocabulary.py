"""The vocabulary of a model: the bytes that each token id adds to the output.

A constraint speaks about bytes, a model about token ids; the vocabulary joins the two. It knows three kinds of ids:

* **text**: the token adds its bytes, the same wherever it stands;
* **special** (end of text, begin of turn, ...): never matched by text, even if the text spells its name;
* **padding**: rows of the logits that have no token, or one without any bytes; never allowed.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.engine import vocabulary_file
from grammask.engine.cache_folder import cache_directory
from grammask.engine.tokenizers import gguf, huggingface, tiktoken_ranks
from grammask.engine.tokenizers.encoding import (
    EncoderUnavailable,
    HuggingFaceEncoder,
    TextEncoder,
    TiktokenEncoder,
    encode_exactly,
)
from grammask.engine.tokenizers.table import MAX_SIZE, TokenTable, VocabularyError, checked_id, checked_ids

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

    from grammask import _core

__all__ = ["Vocabulary", "VocabularyError"]

_TEXT, _SPECIAL, _PADDING = 0, 1, 2
_MOST_BYTES = 2**32 - 1  # of all tokens together


class Vocabulary:
    """Token bytes by id, immutable and shareable between threads. Made by one of the ``from_`` constructors.

    All constructors take ``size``, the number of rows of the model's logits, which may exceed the number of tokens (the
    rest is padding), and ``eos_token_ids``, which replaces what the source declares. Where a source declares no end of
    text and has no special token that is known for it, ``eos_token_ids`` must be given ([] for none: no output then
    ends).
    """

    __slots__ = (
        "_block",
        "_data",
        "_encoder",
        "_eos",
        "_fingerprint",
        "_kinds",
        "_lock",
        "_native",
        "_offsets",
        "_source",
        "_special",
    )

    def __init__(
        self,
        table: TokenTable,
        *,
        size: int | None,
        eos_token_ids: Iterable[int] | int | None,
        encoder: TextEncoder | None,
        source: str,
    ) -> None:
        rows = len(table.tokens) if table.size is None else table.size
        if size is not None:
            rows = checked_id(size, "size")
        lost = next((i for i, token in enumerate(table.tokens[rows:], rows) if token is not None), None)
        if lost is not None:
            raise VocabularyError(
                f"a size of {rows} would cut off the token {lost} ({table.tokens[lost]!r})",
                hint="size is the number of rows of the model's logits, at least the number of tokens that are text",
            )
        ends = _end_tokens(table, rows) if eos_token_ids is None else checked_ids(eos_token_ids, "an end-of-text id")
        for token_id in ends:
            if token_id >= rows:
                raise VocabularyError(f"the end-of-text token id {token_id} lies beyond the size of {rows}")

        special = {name: token_id for name, token_id in table.special_tokens.items() if token_id < rows}
        named = set(special.values())
        for token_id in ends:
            if token_id not in named:
                special[_name_of(token_id, table.tokens, special)] = token_id
        tokens = [token or b"" for token in table.tokens[:rows]]
        tokens.extend([b""] * (rows - len(tokens)))
        for token_id in special.values():
            tokens[token_id] = b""
        ends_at = np.cumsum(np.fromiter(map(len, tokens), dtype=np.int64, count=rows))
        if rows and ends_at[-1] > _MOST_BYTES:
            raise VocabularyError(f"the tokens hold {ends_at[-1]} bytes, more than {_MOST_BYTES}")
        offsets = np.zeros(rows + 1, dtype=np.uint32)
        offsets[1:] = ends_at
        self._fill(b"".join(tokens), offsets, special, ends, encoder, source, None)

    def _fill(
        self,
        data: bytes | memoryview,
        offsets: NDArray[np.uint32],
        special: dict[str, int],
        ends: tuple[int, ...],
        encoder: TextEncoder | None,
        source: str,
        native: _core.Vocabulary | None,
    ) -> None:
        self._data = data
        self._offsets = offsets
        self._kinds = np.where(offsets[1:] > offsets[:-1], _TEXT, _PADDING).astype(np.uint8)
        self._kinds[list(special.values())] = _SPECIAL
        self._special = dict(sorted(special.items(), key=lambda item: item[1]))
        self._eos = ends
        self._encoder = encoder
        self._source = source
        self._fingerprint: str | None = None
        self._native = native
        self._block: bytes | None = None
        self._lock = threading.Lock()

    # -- constructors

    @classmethod
    def from_tokenizers(
        cls,
        source: str | os.PathLike[str] | bytes | Mapping[str, Any] | tokenizers.Tokenizer,
        *,
        size: int | None = None,
        eos_token_ids: Iterable[int] | int | None = None,
        cache: bool | str | os.PathLike[str] = False,
    ) -> Vocabulary:
        """From a Hugging Face ``tokenizer.json``.

        source: the path of the file or of a folder that holds it; its content as text, bytes or a parsed object; or a
            ``tokenizers.Tokenizer``. With a path, ``generation_config.json``, ``tokenizer_config.json`` and
            ``config.json`` in the same folder tell the end-of-text tokens and the size.
        cache: a folder for files of built vocabularies, which load many times faster than they are made and are shared
            between processes; True for a folder of its own in the user's cache (``$GRAMMASK_CACHE`` or the platform's
            convention). Files are found by the content of the source. Whoever can write to the folder decides what
            the tokens are.

        Raises:
            OSError: the file cannot be read.
            VocabularyError: the source is malformed, or its tokens have no exact bytes (WordPiece, for example).
        """
        tokenizer = _tokenizer_source(source)
        if eos_token_ids is not None:
            eos_token_ids = checked_ids(eos_token_ids, "an end-of-text id")

        def make() -> Vocabulary:
            return cls(
                tokenizer.table(),
                size=size,
                eos_token_ids=eos_token_ids,
                encoder=tokenizer.encoder,
                source="tokenizers",
            )

        if cache is False:
            return make()
        folder = cache_directory() / "vocabularies" if cache is True else Path(cache)
        path = folder / vocabulary_file.name_for(tokenizer.content(), tokenizer.folder, size, eos_token_ids)
        return cls._cached(path, make, tokenizer.encoder)

    @classmethod
    def from_transformers(
        cls, tokenizer: Any, size: int | None = None, *, eos_token_ids: Iterable[int] | int | None = None
    ) -> Vocabulary:
        """From a fast tokenizer of transformers.

        size: the number of rows of the logits, usually ``model.config.vocab_size``.

        Raises:
            VocabularyError: the tokenizer is not backed by the tokenizers library, or its tokens have no exact bytes.
        """
        table, backend = huggingface.table_from_transformers(tokenizer)
        encoder = HuggingFaceEncoder(lambda: type(backend).from_str(backend.to_str()))
        return cls(table, size=size, eos_token_ids=eos_token_ids, encoder=encoder, source="transformers")

    @classmethod
    def from_tiktoken(
        cls,
        encoding: tiktoken.Encoding,
        *,
        size: int | None = None,
        eos_token_ids: Iterable[int] | int | None = None,
    ) -> Vocabulary:
        """From a tiktoken encoding.

        Raises:
            VocabularyError: not an encoding.
        """
        table = tiktoken_ranks.table_from_tiktoken(encoding)
        return cls(table, size=size, eos_token_ids=eos_token_ids, encoder=TiktokenEncoder(encoding), source="tiktoken")

    @classmethod
    def from_gguf(
        cls,
        path: str | os.PathLike[str],
        *,
        size: int | None = None,
        eos_token_ids: Iterable[int] | int | None = None,
    ) -> Vocabulary:
        """From the metadata of a GGUF file. ``encode`` is then greedy: the file's own tokenizer belongs to llama.cpp.

        Raises:
            OSError: the file cannot be read.
            VocabularyError: the file is malformed, or has a tokenizer other than gpt2, llama and t5.
        """
        table = gguf.table_from_gguf(Path(path))
        return cls(table, size=size, eos_token_ids=eos_token_ids, encoder=None, source="gguf")

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        eos_token_ids: Iterable[int] | int,
        special_token_ids: Mapping[str, int] | Iterable[int] = (),
        size: int | None = None,
    ) -> Vocabulary:
        """From the bytes of each token id.

        tokens: index is the id; None (or no bytes at all) for ids that never match text.
        special_token_ids: ids to keep apart, as name -> id, or alone: the name is then the token's own text.

        Raises:
            VocabularyError: a token is not bytes, or an id is out of range.
        """
        if len(tokens) > MAX_SIZE:
            raise VocabularyError(f"there are {len(tokens)} tokens, more than {MAX_SIZE}")
        for token_id, token in enumerate(tokens):
            if token is not None and not isinstance(token, bytes):
                raise VocabularyError(
                    f"token {token_id} must be bytes or None, not {type(token).__name__}",
                    hint="a token is a piece of output in bytes, and may hold half a character",
                )
        special: dict[str, int] = {}
        if isinstance(special_token_ids, Mapping):
            for name, value in special_token_ids.items():
                special[name] = checked_id(value, f"the id of the special token {name!r}")
        else:
            for token_id in checked_ids(special_token_ids, "a special token id"):
                special[_name_of(token_id, tokens, special)] = token_id
        rows = len(tokens) if size is None else checked_id(size, "size")
        for name, token_id in special.items():
            if token_id >= rows:
                raise VocabularyError(f"the id {token_id} of the special token {name!r} lies beyond the size of {rows}")
        return cls(
            TokenTable(list(tokens), special), size=size, eos_token_ids=eos_token_ids, encoder=None, source="tokens"
        )

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary with its built trie to a file, from which ``load`` maps it into memory.

        A file that is there is replaced at once: processes that use it keep the old one. The tokenizer that ``encode``
        uses is not part of it.

        Raises:
            OSError: the file cannot be written.
        """
        vocabulary_file.write(Path(path), self.native, vocabulary_file.Notes(self._special, self._source))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        tokenizer: str | os.PathLike[str] | bytes | Mapping[str, Any] | tokenizers.Tokenizer | None = None,
    ) -> Vocabulary:
        """From a file that ``save`` wrote, with this version of grammask, on a machine of the same byte order.

        The file is mapped: nothing is parsed, and processes share its pages. It is checked as a whole first, so that
        one that is cut off or damaged is refused. A file that others than its owner could change while it is in use
        (writable by group or others, or owned by neither you nor root) is copied instead.

        tokenizer: what ``encode`` uses, as ``from_tokenizers`` takes it; without it, ``encode`` is greedy.

        Raises:
            OSError: the file cannot be read.
            VocabularyError: it is not a whole file of a vocabulary, or was written by another version.
        """
        return cls._load(Path(path), None if tokenizer is None else _tokenizer_source(tokenizer).encoder)

    @classmethod
    def _load(cls, path: Path, encoder: TextEncoder | None) -> Vocabulary:
        native, notes = vocabulary_file.read(path)
        vocabulary = cls.__new__(cls)
        vocabulary._fill(
            native.data.data,
            native.offsets,
            notes.special_tokens,
            tuple(native.eos_token_ids),
            encoder,
            notes.source,
            native,
        )
        return vocabulary

    @classmethod
    def _cached(cls, path: Path, make: Callable[[], Vocabulary], encoder: TextEncoder | None) -> Vocabulary:
        """The vocabulary in a file, made and written there if there is none that can be used."""
        with contextlib.suppress(OSError, VocabularyError):
            return cls._load(path, encoder)
        made = make()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.save(path)
        except OSError as error:
            warnings.warn(f"the vocabulary is not kept for the next time: {error}", RuntimeWarning, 3)
        return made

    # -- what it holds

    @property
    def size(self) -> int:
        """Rows of the logits: token ids are 0 to size - 1."""
        return len(self._kinds)

    @property
    def eos_token_ids(self) -> list[int]:
        """The tokens that end a text."""
        return list(self._eos)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Name -> id of the special tokens, the end-of-text tokens among them, by ascending id."""
        return dict(self._special)

    @property
    def padding_rows(self) -> list[int]:
        """The ids that have no token, or one without bytes. They are never allowed."""
        rows: list[int] = np.flatnonzero(self._kinds == _PADDING).tolist()
        return rows

    @property
    def source(self) -> str:
        """What it was made from: tokenizers, transformers, tiktoken, gguf or tokens."""
        return self._source

    @property
    def fingerprint(self) -> str:
        """A hash (SHA-256, hexadecimal) of size, token bytes, special tokens and end-of-text tokens.

        Equal for equal content, whatever it was made from, on every machine and in every version of grammask.
        """
        if self._fingerprint is None:
            names = json.dumps([self.size, sorted(self._eos), sorted(self._special.items(), key=lambda item: item[1])])
            digest = hashlib.sha256(b"grammask vocabulary 1\n" + names.encode() + b"\n")
            digest.update(self._offsets.astype("<i8").tobytes())
            digest.update(self._kinds.tobytes())
            digest.update(self._data)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    @property
    def native(self) -> _core.Vocabulary:
        """The native vocabulary with its token trie, built at the first use."""
        if self._native is None:
            from grammask import _core

            with self._lock:
                if self._native is None:
                    self._native = _core.Vocabulary.from_arrays(self._data, self._offsets, list(self._eos))
        return self._native

    def apart(self) -> Vocabulary:
        """The same tokens with caches of their own. The trie is shared, so this takes little time and memory.

        Constraints over one vocabulary share states and masks, and wait for each other while new ones are made. One
        that may take seconds to compile is better compiled apart from those in use.
        """
        from grammask import _core

        native = self.native
        with self._lock:
            if self._block is None:
                self._block = native.to_block(b"")
        twin = copy.copy(self)
        twin._native, _ = _core.Vocabulary.load(self._block)
        twin._native.cache_budget = native.cache_budget
        return twin

    @property
    def cache_budget(self) -> int:
        """Bytes of states and masks that constraints over this vocabulary share (256 MiB unless set).

        When they have outgrown it, constraints compiled from then on start with empty caches; the old ones are freed
        with the last constraint that uses them.
        """
        return self.native.cache_budget

    @cache_budget.setter
    def cache_budget(self, size: int) -> None:
        self.native.cache_budget = size

    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes that a token adds to the output, None for special tokens and padding.

        Raises:
            IndexError: the id is not in the vocabulary.
        """
        if not 0 <= token_id < len(self._kinds):
            raise IndexError(f"token id {token_id} is not between 0 and {self.size - 1}")
        start, end = self._offsets[token_id : token_id + 2].tolist()
        return bytes(self._data[start:end]) or None

    def is_special(self, token_id: int) -> bool:
        """Whether a token is kept apart from text (end-of-text tokens are).

        Raises:
            IndexError: the id is not in the vocabulary.
        """
        if not 0 <= token_id < len(self._kinds):
            raise IndexError(f"token id {token_id} is not between 0 and {self.size - 1}")
        return bool(self._kinds[token_id] == _SPECIAL)

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The bytes of a sequence of tokens; special tokens and padding add none.

        Raises:
            IndexError: an id is not in the vocabulary.
        """
        return b"".join(self.token_bytes(token_id) or b"" for token_id in token_ids)

    def encode(self, text: str | bytes) -> list[int]:
        """Tokens that spell exactly these bytes, where possible those that the model's own tokenizer would write.

        Special tokens are never used, also not where the text spells their names. Without a tokenizer (GGUF, token
        lists), and where the tokenizer would change the text, the tokens are those of ``tokenize_greedy``; a tokenizer
        that cannot be loaded is reported with a RuntimeWarning.

        Raises:
            VocabularyError: after some of the bytes, no token fits.
            ValueError: the text holds lone surrogates.
        """
        data = text.encode() if isinstance(text, str) else bytes(text)
        if not data:
            return []
        if self._encoder is not None:
            whole = _valid_text(data)
            try:
                ids = encode_exactly(whole, self._encoder, self.token_bytes)
            except EncoderUnavailable as error:
                warnings.warn(f"encoding greedily, not as the model's tokenizer would: {error}", RuntimeWarning, 2)
                ids = None
            if ids is not None:
                rest = data[len(whole.encode()) :]
                return ids + self.tokenize_greedy(rest) if rest else ids
        return self.tokenize_greedy(data)

    def tokenize_greedy(self, text: str | bytes) -> list[int]:
        """Tokens that spell exactly these bytes, each the longest that fits.

        Raises:
            VocabularyError: after some of the bytes, no token fits.
            ValueError: the text holds lone surrogates.
        """
        data = text.encode() if isinstance(text, str) else bytes(text)
        ids = self.native.tokenize_greedy(data)
        spelled = len(self.decode(ids))
        if spelled < len(data):
            raise VocabularyError(
                f"no token fits at byte {spelled} of the text: {data[spelled : spelled + 16]!r}",
                hint="a vocabulary that can spell every text has a token for each of the 256 bytes",
            )
        return ids

    def memory_bytes(self) -> dict[str, int]:
        """Memory by part, in bytes; the native parts are there once it is built."""
        table = len(self._data) + self._offsets.nbytes + self._kinds.nbytes
        names = sys.getsizeof(self._special) + sum(map(sys.getsizeof, self._special))
        native = {} if self._native is None else self._native.memory_bytes()
        return {"table": table, "special_tokens": names, **{f"native.{part}": size for part, size in native.items()}}

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return (
            f"<Vocabulary of {self.size} tokens from {self._source}: {len(self._special)} special, "
            f"{len(self.padding_rows)} padding, end of text {', '.join(map(str, self._eos)) or 'none'}>"
        )


@dataclass(frozen=True)
class _TokenizerSource:
    """What ``from_tokenizers`` was given.

    Attributes:
        table: reads it.
        content: the bytes that decide what is read.
        encoder: loads the tokenizer when it is first used.
        folder: where files lie that are read with it.
    """

    table: Callable[[], TokenTable]
    content: Callable[[], bytes]
    encoder: HuggingFaceEncoder
    folder: Path | None = None


def _tokenizer_source(source: Any) -> _TokenizerSource:
    if isinstance(source, (str, os.PathLike)) and not (isinstance(source, str) and source.lstrip().startswith("{")):
        path = huggingface.resolve(source)
        encoder = _encoder_of_text(lambda: path.read_text(encoding="utf-8"))
        return _TokenizerSource(lambda: huggingface.table_from_file(path), path.read_bytes, encoder, path.parent)
    if hasattr(source, "to_str"):
        encoder = HuggingFaceEncoder(lambda: type(source).from_str(source.to_str()))
        return _source_of_text(source.to_str, encoder)
    if isinstance(source, Mapping):
        encoder = _encoder_of_text(lambda: json.dumps(dict(source)))
        return _TokenizerSource(
            lambda: huggingface.table_from_json(source), lambda: json.dumps(dict(source)).encode(), encoder
        )
    if isinstance(source, (bytes, bytearray)):
        content = bytes(source)
        return _source_of_text(lambda: content, _encoder_of_text(content.decode))
    if isinstance(source, str):
        return _source_of_text(lambda: source, _encoder_of_text(lambda: source))
    raise VocabularyError(
        f"expected a path, the content of a tokenizer.json or a tokenizers.Tokenizer, not {type(source).__name__}",
        hint="for a transformers tokenizer use Vocabulary.from_transformers",
    )


def _source_of_text(text: Callable[[], str | bytes], encoder: HuggingFaceEncoder) -> _TokenizerSource:
    def content() -> bytes:
        value = text()
        return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")

    return _TokenizerSource(
        lambda: huggingface.table_from_json(huggingface.parse(text(), "the tokenizer")), content, encoder
    )


def _encoder_of_text(content: Any) -> HuggingFaceEncoder:
    """An encoder for the tokenizer.json that ``content()`` returns as text."""

    def load() -> tokenizers.Tokenizer:
        import tokenizers

        return tokenizers.Tokenizer.from_str(content())

    return HuggingFaceEncoder(load)


def _end_tokens(table: TokenTable, rows: int) -> tuple[int, ...]:
    """The end-of-text tokens of a table, without those that a smaller size cuts off."""
    ends = tuple(token_id for token_id in table.eos_token_ids if not rows <= token_id < len(table.tokens))
    if not ends:
        raise VocabularyError(
            "the tokenizer does not say which tokens end a text",
            hint="pass eos_token_ids=[...] with the ids at which your engine stops",
        )
    return ends


def _name_of(token_id: int, tokens: Sequence[bytes | None], taken: Mapping[str, int]) -> str:
    """A name for a special token that came without one: its own text if it has any and that is free."""
    token = tokens[token_id] if token_id < len(tokens) else None
    name = (token or b"").decode(errors="backslashreplace")
    return name if name and name not in taken else f"<token {token_id}>"


def _valid_text(data: bytes) -> str:
    """The longest prefix of ``data`` that is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()
