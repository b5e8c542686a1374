"""Unicode properties and case folding, decoded on first use from the generated tables.

Names and values are those of ECMA-262 (``\\p{Lu}``, ``\\p{Letter}``, ``\\p{gc=Lu}``, ``\\p{Script=Greek}``,
``\\p{scx=Grek}``, ``\\p{Emoji}``), matched exactly, case included.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from functools import cache

from grammask.constraints.regex import codepoints
from grammask.constraints.regex.codepoints import CodePointSet

_CATEGORY_GROUPS = {
    "LC": ("Lu", "Ll", "Lt"),
    "L": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "M": ("Mn", "Mc", "Me"),
    "N": ("Nd", "Nl", "No"),
    "P": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
    "S": ("Sm", "Sc", "Sk", "So"),
    "Z": ("Zs", "Zl", "Zp"),
    "C": ("Cc", "Cf", "Cs", "Co", "Cn"),
}

_KINDS = {
    "General_Category": "gc",
    "gc": "gc",
    "Script": "sc",
    "sc": "sc",
    "Script_Extensions": "scx",
    "scx": "scx",
}


def _numbers(data: bytes) -> Iterator[int]:
    """The little-endian base-128 numbers in ``data``."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def _unpack(name: str) -> bytes:
    from grammask.constraints.regex import unicode_tables

    text: str = getattr(unicode_tables, name)
    return zlib.decompress(base64.b85decode(text))


@cache
def _table(name: str) -> dict[str, bytes]:
    """Property value -> its encoded set."""
    data = _unpack(name)
    table: dict[str, bytes] = {}
    position = 0
    while position < len(data):
        end = data.index(0, position)
        key = data[position:end].decode()
        position = end + 1
        length = shift = 0
        while True:
            byte = data[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        table[key] = data[position : position + length]
        position += length
    return table


def _decode(data: bytes) -> CodePointSet:
    ranges: list[tuple[int, int]] = []
    limit = 0
    numbers = _numbers(data)
    for gap in numbers:
        first = limit + gap
        limit = first + next(numbers)
        ranges.append((first, limit - 1))
    return tuple(ranges)


@cache
def _aliases() -> dict[tuple[str, str], str]:
    """(kind, spelling) -> name in the table."""
    lines = (line.split(" ") for line in _unpack("ALIASES").decode().splitlines())
    return {(kind, spelling): name for kind, spelling, name in lines}


@cache
def _category(name: str) -> CodePointSet:
    members = _CATEGORY_GROUPS.get(name, (name,))
    return codepoints.union([_decode(_table("CATEGORIES")[member]) for member in members])


@cache
def property_set(name: str, value: str | None = None) -> CodePointSet | None:
    """The code points of ``\\p{name=value}``, or of ``\\p{name}`` (a general category or a binary property).

    Returns None when ECMA-262 knows no such property or value.
    """
    if value is not None:
        kind = _KINDS.get(name)
        if kind is None:
            return None
        short = _aliases().get(("gc" if kind == "gc" else "sc", value))
        if short is None:
            return None
        if kind == "gc":
            return _category(short)
        table = _table("SCRIPTS" if kind == "sc" else "SCRIPT_EXTENSIONS")
        if short == "Zzzz":
            return codepoints.complement(codepoints.union([_decode(encoded) for encoded in table.values()]))
        return _decode(table[short]) if short in table else None
    if name == "Any":
        return codepoints.ANY
    if name == "ASCII":
        return ((0, 0x7F),)
    if name == "Assigned":
        return codepoints.complement(_category("Cn"))
    category = _aliases().get(("gc", name))
    if category is not None:
        return _category(category)
    binary = _table("BINARY").get(_aliases().get(("binary", name), name))
    return None if binary is None else _decode(binary)


def suggestions(name: str) -> list[str]:
    """Spellings of properties that resemble ``name``, for error messages."""
    import difflib

    known = {f"Script={spelling}" for kind, spelling in _aliases() if kind == "sc"}
    known |= {spelling for kind, spelling in _aliases() if kind in ("gc", "binary")} | set(_table("BINARY"))
    bare = name.rpartition("=")[2].removeprefix("Is").removeprefix("In")
    if ("sc", bare) in _aliases():
        return [f"Script={bare}"]
    folded = {spelling.casefold(): spelling for spelling in known}
    if bare.casefold() in folded:
        return [folded[bare.casefold()]]
    return [folded[match] for match in difflib.get_close_matches(name.casefold(), list(folded), n=2)]


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """Code point -> all code points with the same simple case folding (only where there are several)."""
    classes: dict[int, set[int]] = {}
    code_point = 0
    numbers = _numbers(_unpack("CASE_FOLDING"))
    for gap in numbers:
        code_point += gap
        zigzag = next(numbers)
        fold = code_point + (zigzag >> 1 if zigzag % 2 == 0 else -(zigzag + 1) // 2)
        classes.setdefault(fold, {fold}).add(code_point)
    return {member: tuple(sorted(members)) for members in classes.values() for member in members}


def case_variants(code_point: int) -> tuple[int, ...]:
    """The code points that match this one when case is ignored, itself included."""
    if code_point < 0x80:
        # Only k and s have a partner outside ASCII: U+212A KELVIN SIGN and U+017F LONG S.
        char = chr(code_point)
        if char in "ksKS":
            extra = 0x212A if char in "kK" else 0x17F
            return (ord(char.upper()), ord(char.lower()), extra)
        return (ord(char.upper()), ord(char.lower())) if char.isalpha() else (code_point,)
    return _orbits().get(code_point, (code_point,))


@cache
def case_closure(ranges: CodePointSet) -> CodePointSet:
    """The set with every case variant of its members added."""
    if not ranges or ranges == codepoints.ANY:
        return ranges
    extra: list[tuple[int, int]] = []
    for member, variants in _orbits().items():
        if codepoints.contains(ranges, member):
            extra.extend((variant, variant) for variant in variants)
    return codepoints.union([ranges, tuple(extra)])
