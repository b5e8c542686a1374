"""Where in a text something is, and what may stand there, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_NAMES = {0x09: "tab", 0x0A: "newline", 0x0D: "carriage return", 0x20: "space"}
_FIRST_BYTES = frozenset(range(0xC2, 0xF5))
"""The bytes that begin a character of more than one byte in UTF-8 (RFC 3629)."""


@dataclass(frozen=True)
class Place:
    """A position in a text.

    Attributes:
        byte: offset in bytes, from 0.
        line, column: from 1; the column counts characters, a tab being one.
    """

    byte: int
    line: int
    column: int

    @classmethod
    def of(cls, data: bytes, offset: int) -> Place:
        """The place of byte ``offset``. Inside a character of several bytes, the column is that character's."""
        before = data[:offset]
        last_line = before[before.rfind(b"\n") + 1 :]
        return cls(offset, before.count(b"\n") + 1, len(last_line.decode("utf-8", "ignore")) + 1)

    def __str__(self) -> str:
        return f"byte {self.byte} (line {self.line}, column {self.column})"


def quote(data: bytes, limit: int = 60) -> str:
    """Bytes as a quoted text on one line; bytes that are no UTF-8 as ``\\xNN``; shortened to ``limit`` characters."""
    text = data.decode("utf-8", "backslashreplace")
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    if len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    return f"'{shown}'" if "'" not in shown else f"«{shown}»"


def describe_bytes(allowed: bytes) -> str:
    """A set of bytes that may come next, in words: "'a' to 'z', newline, a non-ASCII character"."""
    parts = [_name_range(low, high) for low, high in _ranges(sorted(byte for byte in allowed if byte < 0x80))]
    high_bytes = {byte for byte in allowed if byte >= 0x80}
    if any(byte < 0xC0 for byte in high_bytes):
        parts.append("the next byte of a character: " + _hex_ranges(high_bytes))
    elif high_bytes == _FIRST_BYTES:
        parts.append("a non-ASCII character")
    elif high_bytes:
        parts.append("some non-ASCII characters (first byte " + _hex_ranges(high_bytes) + ")")
    return ", ".join(parts)


def _ranges(values: list[int]) -> Iterator[tuple[int, int]]:
    """The maximal runs of consecutive numbers."""
    start = 0
    for index, value in enumerate(values):
        if index + 1 == len(values) or values[index + 1] != value + 1:
            yield values[start], value
            start = index + 1


def _name_range(low: int, high: int) -> str:
    if high - low < 3:
        return ", ".join(_name(byte) for byte in range(low, high + 1))
    return f"{_name(low)} to {_name(high)}"


def _name(byte: int) -> str:
    if byte in _NAMES:
        return _NAMES[byte]
    return quote(bytes([byte]))


def _hex_ranges(values: set[int]) -> str:
    return ", ".join(
        f"0x{low:02x}" if low == high else f"0x{low:02x} to 0x{high:02x}" for low, high in _ranges(sorted(values))
    )
