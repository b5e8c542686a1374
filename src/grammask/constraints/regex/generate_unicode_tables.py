"""Writes ``unicode_tables.py`` from the Unicode Character Database.

Usage: ``python generate_unicode_tables.py UCD_FOLDER`` where the folder holds Scripts.txt, PropList.txt,
CaseFolding.txt and so on (https://www.unicode.org/Public/UCD/; Debian's ``unicode-data`` package installs it as
/usr/share/unicode).

The database is Copyright Unicode, Inc., under the Unicode License v3.

Encoding: a table is a mapping from names to sets of code points. A set is its range limits (first, last + 1, ...) as
differences, each a little-endian base-128 number; a table is, for each name, ``name NUL length(base-128) set``.
Tables are compressed with zlib and written in base 85. The case folding table maps each code point that folds to
another one: triples (difference to the previous, fold - code point, zigzag) as base-128 numbers.
"""

from __future__ import annotations

import base64
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

BINARY_PROPERTIES = [
    "ASCII_Hex_Digit",
    "Alphabetic",
    "Bidi_Control",
    "Bidi_Mirrored",
    "Case_Ignorable",
    "Cased",
    "Changes_When_Casefolded",
    "Changes_When_Casemapped",
    "Changes_When_Lowercased",
    "Changes_When_NFKC_Casefolded",
    "Changes_When_Titlecased",
    "Changes_When_Uppercased",
    "Dash",
    "Default_Ignorable_Code_Point",
    "Deprecated",
    "Diacritic",
    "Emoji",
    "Emoji_Component",
    "Emoji_Modifier",
    "Emoji_Modifier_Base",
    "Emoji_Presentation",
    "Extended_Pictographic",
    "Extender",
    "Grapheme_Base",
    "Grapheme_Extend",
    "Hex_Digit",
    "IDS_Binary_Operator",
    "IDS_Trinary_Operator",
    "ID_Continue",
    "ID_Start",
    "Ideographic",
    "Join_Control",
    "Logical_Order_Exception",
    "Lowercase",
    "Math",
    "Noncharacter_Code_Point",
    "Pattern_Syntax",
    "Pattern_White_Space",
    "Quotation_Mark",
    "Radical",
    "Regional_Indicator",
    "Sentence_Terminal",
    "Soft_Dotted",
    "Terminal_Punctuation",
    "Unified_Ideograph",
    "Uppercase",
    "Variation_Selector",
    "White_Space",
    "XID_Continue",
    "XID_Start",
]
"""The binary properties that ECMA-262 lists (table "Binary Unicode property aliases"), less those computed: ASCII, Any,
Assigned."""

Ranges = list[tuple[int, int]]


def rows(path: Path) -> Iterator[list[str]]:
    """The fields of each line, comments and blanks taken away."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if fields != [""]:
            yield fields


def code_points(field: str) -> tuple[int, int]:
    """``0041`` or ``0041..005A`` as an inclusive range."""
    first, _, last = field.partition("..")
    return int(first, 16), int(last or first, 16)


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: Ranges = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def number(value: int) -> bytes:
    """Little-endian base 128, the high bit says that more follows."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_set(ranges: Ranges) -> bytes:
    out, previous = bytearray(), 0
    for first, last in ranges:
        out += number(first - previous) + number(last + 1 - first)
        previous = last + 1
    return bytes(out)


def encode_table(table: Mapping[str, Iterable[tuple[int, int]]]) -> bytes:
    out = bytearray()
    for name in sorted(table):
        data = encode_set(normalized(table[name]))
        out += name.encode() + b"\0" + number(len(data)) + data
    return bytes(out)


def collect(paths: Iterable[Path], keep: Iterable[str] | None = None) -> dict[str, Ranges]:
    """property -> ranges from files of lines ``range ; property``."""
    wanted = None if keep is None else set(keep)
    table: dict[str, Ranges] = defaultdict(list)
    for path in paths:
        for fields in rows(path):
            if wanted is None or fields[1] in wanted:
                table[fields[1]].append(code_points(fields[0]))
    return table


def value_aliases(ucd: Path, prop: str) -> dict[str, str]:
    """Every spelling of each value of a property -> its short name."""
    aliases: dict[str, str] = {}
    for fields in rows(ucd / "PropertyValueAliases.txt"):
        if fields[0] == prop:
            for name in fields[1:]:
                aliases[name] = fields[1]
    return aliases


def binary_aliases(ucd: Path) -> dict[str, str]:
    """Short names of the binary properties -> long name."""
    aliases = {}
    for fields in rows(ucd / "PropertyAliases.txt"):
        for name in fields:
            if fields[1] in BINARY_PROPERTIES and name != fields[1]:
                aliases[name] = fields[1]
    return aliases


def script_extensions(ucd: Path, scripts: Mapping[str, Ranges], short: Mapping[str, str]) -> dict[str, Ranges]:
    """Script_Extensions by short script name: the explicit lists, and Script for every other code point."""
    table: dict[str, Ranges] = defaultdict(list)
    explicit: set[int] = set()
    for fields in rows(ucd / "ScriptExtensions.txt"):
        first, last = code_points(fields[0])
        explicit.update(range(first, last + 1))
        for script in fields[1].split():
            table[script].append((first, last))
    for name, ranges in scripts.items():
        for first, last in ranges:
            table[short[name]].extend((c, c) for c in range(first, last + 1) if c not in explicit)
    return table


def case_folding(ucd: Path) -> bytes:
    """Simple case folding: the rows of status C and S."""
    out, previous = bytearray(), 0
    for fields in rows(ucd / "CaseFolding.txt"):
        if fields[1] in ("C", "S"):
            code_point, fold = int(fields[0], 16), int(fields[2], 16)
            delta = fold - code_point
            out += number(code_point - previous) + number(delta * 2 if delta >= 0 else -delta * 2 - 1)
            previous = code_point
    return bytes(out)


def literal(data: bytes) -> str:
    text = base64.b85encode(zlib.compress(data, 9)).decode()
    lines = [text[start : start + 112] for start in range(0, len(text), 112)]
    return "(\n" + "".join(f'    "{line}"\n' for line in lines) + ")"


def main(ucd: Path) -> None:
    version = (ucd / "Scripts.txt").read_text(encoding="utf-8").split("-")[1].split(".txt")[0]
    categories = collect([ucd / "extracted" / "DerivedGeneralCategory.txt"])
    script_names = value_aliases(ucd, "sc")
    scripts = collect([ucd / "Scripts.txt"])
    binary = collect(
        [
            ucd / "PropList.txt",
            ucd / "DerivedCoreProperties.txt",
            ucd / "emoji" / "emoji-data.txt",
            ucd / "extracted" / "DerivedBinaryProperties.txt",
            ucd / "DerivedNormalizationProps.txt",
        ],
        BINARY_PROPERTIES,
    )
    if missing := set(BINARY_PROPERTIES) - set(binary):
        raise SystemExit(f"not found in {ucd}: {', '.join(sorted(missing))}")
    aliases = {
        "gc": value_aliases(ucd, "gc"),
        "sc": script_names,
        "binary": binary_aliases(ucd),
    }
    encoded_aliases = "\n".join(
        f"{kind} {name} {target}" for kind, names in aliases.items() for name, target in sorted(names.items())
    )
    tables = {
        "CATEGORIES": ("General_Category by short name.", encode_table(categories)),
        "SCRIPTS": ("Script by short name.", encode_table({script_names[n]: r for n, r in scripts.items()})),
        "SCRIPT_EXTENSIONS": (
            "Script_Extensions by short script name.",
            encode_table(script_extensions(ucd, scripts, script_names)),
        ),
        "BINARY": ("The binary properties of ECMA-262 by long name.", encode_table(binary)),
        "CASE_FOLDING": ("Simple case folding (CaseFolding.txt, status C and S).", case_folding(ucd)),
        "ALIASES": ("Lines of: kind, spelling, name in the table.", encoded_aliases.encode()),
    }
    docstring = (
        f'"""Unicode {version} tables, generated by ``generate_unicode_tables.py``: do not edit.\n\n'
        "Derived from the Unicode Character Database, Copyright Unicode, Inc., under the Unicode License v3.\n"
        "The generator's docstring describes the encoding; ``unicode_properties`` decodes it.\n"
        '"""\n\nfrom __future__ import annotations\n'
    )
    parts = [docstring, f'UNICODE_VERSION = "{version}"\n']
    for name, (comment, data) in tables.items():
        parts.append(f"# {comment}\n{name} = {literal(data)}\n")
    target = Path(__file__).with_name("unicode_tables.py")
    target.write_text("\n".join(parts), encoding="ascii")
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
