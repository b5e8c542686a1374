"""Tables from the metadata of GGUF files, the format of llama.cpp.

Layout (little-endian, or big-endian throughout; the GGUF specification calls strings and arrays by these names):

    magic "GGUF" | version u32 | tensor count u64 | pair count u64 | pairs ...
    pair    key string | value type u32 | value
    string  length u64 | bytes
    array   item type u32 | item count u64 | items

Only ``tokenizer.ggml.*`` is kept, everything else is stepped over; tensors are never touched. Every length is checked
against the file before it is used.

The bytes of a token are those that llama.cpp prints for it: normal tokens through the alphabet of their model,
user-defined tokens literally, byte tokens as one byte. Control and unknown tokens are kept apart, unused ones have no
text.
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

from grammask.engine.tokenizers.decoders import byte_level, characters
from grammask.engine.tokenizers.end_of_text import known_end_tokens
from grammask.engine.tokenizers.table import MAX_SIZE, TokenTable, VocabularyError, checked_id

_PREFIX = "tokenizer.ggml."
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_KEPT_ARRAYS = ("tokens", "token_type")
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_BYTE_NAME = re.compile(r"<0x([0-9A-Fa-f]{2})>")

_REFUSED = {
    "bert": "WordPiece tokens have no bytes of their own: whether a space stands before one depends on its neighbours",
    "no_vocab": "the file holds no tokens",
    "none": "the file holds no tokens",
}


def table_from_gguf(path: Path) -> TokenTable:
    """The table of a GGUF file.

    Raises:
        OSError: the file cannot be read.
        VocabularyError: the file is malformed or cut off, or its tokenizer is not supported.
    """
    metadata = read_tokenizer_metadata(path)
    model = metadata.get("model")
    names = metadata.get("tokens")
    if not isinstance(model, str) or (model not in _REFUSED and not isinstance(names, list)):
        raise VocabularyError(
            f"{path} has no tokenizer.ggml.model or no tokenizer.ggml.tokens",
            hint="files for image or audio parts hold no tokenizer; use the main model file",
        )
    if model not in ("gpt2", "llama", "t5") or not isinstance(names, list):
        raise VocabularyError(
            f"tokenizers of type {model!r} are not supported: {_REFUSED.get(model, 'their notation is unknown')}",
            hint="use the model's tokenizer.json, or Vocabulary.from_tokens with bytes that you know to be right",
        )
    if not names or not all(type(name) is str for name in names):
        raise VocabularyError(f"{path}: tokenizer.ggml.tokens must be strings, at least one")
    kinds = metadata.get("token_type", [_NORMAL] * len(names))
    if not isinstance(kinds, list) or len(kinds) != len(names):
        raise VocabularyError(f"{path}: tokenizer.ggml.token_type must have as many items as tokenizer.ggml.tokens")

    special = {
        name: index for index, (name, kind) in enumerate(zip(names, kinds, strict=True)) if kind in (_CONTROL, _UNKNOWN)
    }
    declared = [checked_id(metadata[key], _PREFIX + key) for key in _END_KEYS if key in metadata]
    for token_id in declared:
        if token_id >= len(names):
            raise VocabularyError(f"{path} declares the end token {token_id}, but has {len(names)} tokens")
    ends = dict.fromkeys([*declared, *known_end_tokens(special)])
    return TokenTable(_token_bytes(names, kinds, model, path), special, tuple(ends), size=len(names))


def _token_bytes(names: list[str], kinds: list[int], model: str, path: Path) -> list[bytes | None]:
    tokens: list[bytes | None] = [None] * len(names)
    normal = [index for index, kind in enumerate(kinds) if kind == _NORMAL]
    written = [names[index] for index in normal]
    read = byte_level(written) if model == "gpt2" else characters(written, [("▁", " ")], byte_fallback=False)
    for index, token in zip(normal, read, strict=True):
        tokens[index] = token
    for index, kind in enumerate(kinds):
        if kind == _USER_DEFINED:
            tokens[index] = names[index].encode()
        elif kind == _BYTE:
            match = _BYTE_NAME.fullmatch(names[index])
            if match is None:
                raise VocabularyError(f"{path}: the byte token {index} is named {names[index]!r}, not <0xNN>")
            tokens[index] = bytes([int(match[1], 16)])
        elif kind not in (_NORMAL, _UNKNOWN, _CONTROL, _UNUSED):
            raise VocabularyError(f"{path}: token {index} has the unknown type {kind!r}")
    return tokens


def read_tokenizer_metadata(path: Path) -> dict[str, object]:
    """The metadata under ``tokenizer.ggml.``, without that prefix: all scalars and strings, and the arrays of tokens.

    Raises:
        OSError: the file cannot be read.
        VocabularyError: the file is malformed or cut off.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise VocabularyError(
                f"{path} is not a GGUF file", hint="use Vocabulary.from_tokenizers for a tokenizer.json"
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Metadata(data, path).read()
            except struct.error:
                raise VocabularyError(f"{path} is cut off within its metadata", hint="download it again") from None
            except UnicodeDecodeError:
                raise VocabularyError(f"{path} holds a token or key that is not UTF-8") from None


class _Metadata:
    """A cursor over the pairs of a GGUF file."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._path = path
        self._at = 4
        self._order = "<"

    def read(self) -> dict[str, object]:
        version = self._scalar("I")
        if version not in (2, 3):
            self._order, self._at = ">", 4
            version = self._scalar("I")
        if version not in (2, 3):
            raise VocabularyError(
                f"{self._path} has a GGUF version other than 2 and 3", hint="convert it with llama.cpp"
            )
        self._scalar("Q")
        pairs = self._scalar("Q")
        found: dict[str, object] = {}
        for _ in range(int(pairs)):
            key = self._string().decode()
            kept = key.startswith(_PREFIX)
            name = key[len(_PREFIX) :] if kept else key
            value = self._value(int(self._scalar("I")), keep_items=kept and name in _KEPT_ARRAYS)
            if kept and value is not None:
                found[name] = value
        return found

    def _scalar(self, code: str) -> int | float | bool:
        layout = self._order + code
        value: int | float | bool = struct.unpack_from(layout, self._data, self._at)[0]
        self._at += struct.calcsize(layout)
        return value

    def _string(self) -> bytes:
        length = int(self._scalar("Q"))
        return self._data[self._advance(length) : self._at]

    def _advance(self, length: int) -> int:
        """Moves on by ``length`` bytes and returns where they start."""
        start, end = self._at, self._at + length
        if end > len(self._data):
            raise struct.error
        self._at = end
        return start

    def _value(self, kind: int, *, keep_items: bool) -> object:
        """The value at the cursor; None for an array whose items are not kept."""
        if kind in _SCALARS:
            return self._scalar(_SCALARS[kind])
        if kind == _STRING:
            return self._string().decode()
        if kind == _ARRAY:
            return self._array(keep_items)
        raise VocabularyError(f"{self._path} has a value of unknown type {kind}", hint="download it again")

    def _array(self, keep_items: bool) -> list[object] | None:
        kind, count = int(self._scalar("I")), int(self._scalar("Q"))
        if keep_items and count > MAX_SIZE:
            raise VocabularyError(f"{self._path} declares {count} tokens, more than {MAX_SIZE}")
        if kind in _SCALARS:
            width = struct.calcsize("<" + _SCALARS[kind])
            start = self._advance(count * width)
            if not keep_items:
                return None
            return list(struct.unpack_from(f"{self._order}{count}{_SCALARS[kind]}", self._data, start))
        if kind != _STRING:
            raise VocabularyError(f"{self._path} has an array of unknown item type {kind}", hint="download it again")
        length_of = struct.Struct(self._order + "Q").unpack_from
        data, at, end = self._data, self._at, len(self._data)
        strings: list[object] = []
        for _ in range(count):
            start = at + 8
            at = start + length_of(data, at)[0]
            if at > end:
                raise struct.error
            if keep_items:
                strings.append(data[start:at].decode())
        self._at = at
        return strings if keep_items else None
