"""Files of built vocabularies, which load by mapping them into memory.

The core lays out and checks what is in a file (``core/vocabulary/block.hpp``); here is how files appear, whole or
not at all, how they are opened, and by which name one is found again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grammask._version import __version__
from grammask.engine.tokenizers.end_of_text import CONFIGURATION_FILES
from grammask.engine.tokenizers.table import VocabularyError, checked_id

if TYPE_CHECKING:
    from grammask import _core

_HINT = "make the vocabulary from its tokenizer again, and save it again"


@dataclass(frozen=True)
class Notes:
    """What a file says beside the core's arrays.

    Attributes:
        special_tokens: name -> id.
        source: what the vocabulary was made from.
    """

    special_tokens: dict[str, int]
    source: str

    def encode(self) -> bytes:
        """As JSON, with the version of grammask."""
        return json.dumps(
            {"grammask": __version__, "source": self.source, "special_tokens": self.special_tokens}
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> Notes:
        """From JSON.

        Raises:
            VocabularyError: another version of grammask wrote it, or it holds something else.
        """
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            raise VocabularyError("its notes are not JSON") from None
        if not isinstance(value, dict) or value.get("grammask") != __version__:
            version = value.get("grammask") if isinstance(value, dict) else None
            raise VocabularyError(f"it was written by grammask {version}, and this is {__version__}")
        special, source = value.get("special_tokens"), value.get("source")
        if not isinstance(special, dict) or not isinstance(source, str):
            raise VocabularyError("its notes lack special_tokens or source")
        return cls(
            {name: checked_id(i, f"the id of the special token {name!r}") for name, i in special.items()}, source
        )


def write(path: Path, native: _core.Vocabulary, notes: Notes) -> None:
    """Writes a vocabulary, replacing what is there at once.

    Raises:
        OSError: the file cannot be written.
    """
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(native.to_block(notes.encode()))
        umask = os.umask(0)
        os.umask(umask)
        # Readable by whom the umask allows, writable by the owner alone: who maps a file relies on its staying as is.
        os.chmod(partial, 0o644 & ~umask)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def read(path: Path) -> tuple[_core.Vocabulary, Notes]:
    """A vocabulary from its file.

    Raises:
        OSError: the file cannot be read.
        VocabularyError: it is not a whole file of this version.
    """
    from grammask import _core

    try:
        native, data = _core.Vocabulary.load(_content(path))
        notes = Notes.decode(data)
    except ValueError as error:
        message = error.message if isinstance(error, VocabularyError) else str(error)
        raise VocabularyError(f"{path} cannot be used: {message}", hint=_HINT) from None
    lengths = native.offsets[1:] - native.offsets[:-1]
    for name, token_id in notes.special_tokens.items():
        if token_id >= native.size or lengths[token_id]:
            raise VocabularyError(f"{path} cannot be used: the special token {name!r} is none", hint=_HINT)
    return native, notes


def _content(path: Path) -> mmap.mmap | bytes:
    """The content of a file, mapped if nobody but its owner, who is trusted, can change it meanwhile, else copied."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        trusted = os.name != "posix" or (status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022)
        if trusted and stat.S_ISREG(status.st_mode) and status.st_size > 0:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return file.read()


def name_for(content: bytes, folder: Path | None, size: int | None, eos_token_ids: Iterable[int] | None) -> str:
    """The name of the file for a tokenizer: a hash of all that decides what the vocabulary is.

    content: the tokenizer.json. folder: where files lie that are read with it.
    """
    configuration = [
        (folder / name).read_bytes() if folder is not None and (folder / name).is_file() else None
        for name in CONFIGURATION_FILES
    ]
    ends = None if eos_token_ids is None else list(eos_token_ids)
    parts = [content, *configuration, json.dumps([__version__, size, ends]).encode()]
    digest = hashlib.sha256(b"grammask vocabulary file\n")
    for part in parts:
        digest.update(b"-" if part is None else hashlib.sha256(part).digest())
    return f"vocabulary-{digest.hexdigest()[:32]}.bin"
