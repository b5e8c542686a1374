"""Code points: escapes, ranges and the texts that have bytes."""

from __future__ import annotations

from collections.abc import Iterable

from grammask.constraints.grammar.source import Source

LAST_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_HEX_LENGTHS = {"x": 2, "u": 4, "U": 8}


def read_hex_escape(source: Source, offset: int) -> tuple[int, int]:
    """The code point of ``\\xHH``, ``\\uHHHH`` or ``\\UHHHHHHHH`` and the offset after it.

    offset: of the backslash. ``\\xHH`` is the code point U+00HH, not a byte.
    """
    text = source.text
    length = _HEX_LENGTHS[text[offset + 1]]
    digits = text[offset + 2 : offset + 2 + length]
    if len(digits) < length or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise source.error(offset, f"\\{text[offset + 1]} must be followed by {length} hexadecimal digits")
    code_point = int(digits, 16)
    if code_point > LAST_CODE_POINT:
        raise source.error(offset, f"U+{code_point:X} is beyond the last code point, U+10FFFF")
    return code_point, offset + 2 + length


def encode(source: Source, code_points: Iterable[int], offset: int) -> bytes:
    """The UTF-8 bytes of code points.

    offset: where they are written, for the error when one of them is a surrogate, which has no bytes.
    """
    characters = []
    for code_point in code_points:
        if _SURROGATES[0] <= code_point <= _SURROGATES[1]:
            raise source.error(
                offset,
                f"U+{code_point:04X} is a surrogate and never occurs in UTF-8 text",
                hint="write the character itself or \\U with its eight-digit code point",
            )
        characters.append(chr(code_point))
    return "".join(characters).encode()


def normalize_ranges(ranges: Iterable[tuple[int, int]], *, negated: bool = False) -> tuple[tuple[int, int], ...]:
    """Sorted, merged inclusive ranges without surrogates; or everything outside them."""
    merged: list[list[int]] = []
    for low, high in sorted([*ranges, _SURROGATES] if negated else ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    if negated:
        edges = [-1, *(edge for low, high in merged for edge in (low, high)), LAST_CODE_POINT + 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return tuple((before + 1, after - 1) for before, after in gaps if before + 1 <= after - 1)
    pieces = []
    for low, high in merged:
        if low < _SURROGATES[0]:
            pieces.append((low, min(high, _SURROGATES[0] - 1)))
        if high > _SURROGATES[1]:
            pieces.append((max(low, _SURROGATES[1] + 1), high))
    return tuple(pieces)
