"""The generated Unicode tables against Python's own, as far as both know a character."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from grammask.constraints.regex import codepoints
from grammask.constraints.regex.unicode_properties import case_closure, case_variants, property_set
from grammask.constraints.regex.unicode_tables import UNICODE_VERSION

CATEGORIES = sorted({unicodedata.category(chr(code_point)) for code_point in range(0x3000)})


def known_to_both(code_point: int) -> bool:
    """Whether the tables and the running Python both have the character assigned."""
    assigned = property_set("Assigned")
    return (
        unicodedata.category(chr(code_point)) != "Cn"
        and assigned is not None
        and codepoints.contains(assigned, code_point)
    )


@pytest.mark.parametrize("name", CATEGORIES)
def test_general_categories(name: str) -> None:
    ranges = property_set(name)
    assert ranges
    members = {code_point for first, last in ranges for code_point in range(first, last + 1)}
    expected = {c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) == name}
    differing = [c for c in members ^ expected if known_to_both(c)]
    # A few characters change their category from one version of Unicode to the next.
    assert len(differing) <= (0 if unicodedata.unidata_version == UNICODE_VERSION else 10)


def test_categories_cover_all_code_points_once() -> None:
    sets = [property_set(name) for name in ("L", "M", "N", "P", "S", "Z", "C")]
    sizes = [sum(last - first + 1 for first, last in ranges or ()) for ranges in sets]
    assert sum(sizes) == sys.maxunicode + 1
    assert codepoints.union([ranges for ranges in sets if ranges]) == codepoints.ANY


@pytest.mark.parametrize(
    ("name", "value", "inside", "outside"),
    [
        ("Script", "Greek", "αΩ", "aб"),
        ("sc", "Hebr", "את", "a"),
        ("Script", "Arabic", "سی", "،"),
        ("Script_Extensions", "Arabic", "سی،", "a"),
        ("scx", "Deva", "क।", "a"),
        ("sc", "Han", "汉字", "か"),
        ("Script", "Unknown", "\u0378", "a"),
        ("General_Category", "Uppercase_Letter", "AÉΩ", "aא"),
        ("gc", "LC", "aAǅ", "א"),
        ("Alphabetic", None, "aאक", "1 "),
        ("Emoji", None, "😀1", "a"),
        ("White_Space", None, " \u3000\x85", "\ufeffa"),
        ("Join_Control", None, "\u200c\u200d", "a"),
        ("IDS", None, "aא", "1_"),
        ("AHex", None, "0aF", "g"),
        ("Any", None, "a\U0010ffff", ""),
        ("ASCII", None, "a\0", "é"),
    ],
)
def test_properties(name: str, value: str | None, inside: str, outside: str) -> None:
    ranges = property_set(name, value)
    assert ranges is not None
    assert all(codepoints.contains(ranges, ord(char)) for char in inside)
    assert not any(codepoints.contains(ranges, ord(char)) for char in outside)


@pytest.mark.parametrize(
    ("name", "value"), [("Nope", None), ("Script", "Nope"), ("Block", "Latin"), ("greek", None), ("Lu", "Lu")]
)
def test_unknown_properties(name: str, value: str | None) -> None:
    assert property_set(name, value) is None


def test_case_variants() -> None:
    assert {chr(c) for c in case_variants(ord("k"))} == {"k", "K", "\N{KELVIN SIGN}"}
    assert {chr(c) for c in case_variants(ord("ſ"))} == {"s", "S", "ſ"}
    assert {chr(c) for c in case_variants(ord("σ"))} == {"σ", "ς", "Σ"}
    assert {chr(c) for c in case_variants(ord("ß"))} == {"ß", "ẞ"}
    for alone in "iIıİ1-א":
        expected = {"i", "I"} if alone in "iI" else {alone}
        assert {chr(c) for c in case_variants(ord(alone))} == expected


def test_case_variants_agree_with_python_where_case_is_simple() -> None:
    """A letter whose upper and lower case are one character each and lead back to it."""
    for code_point in range(0x80, 0x2000):
        char = chr(code_point)
        other = char.upper() if char.islower() else char.lower()
        if len(other) == 1 and other != char and known_to_both(code_point) and char not in "ı":
            assert ord(other) in case_variants(code_point), f"{char} {other}"
            assert re.fullmatch(char, other, re.IGNORECASE)


def test_case_closure_of_ranges() -> None:
    closed = case_closure(((ord("a"), ord("z")),))
    assert closed == codepoints.from_ranges([(0x41, 0x5A), (0x61, 0x7A), (0x17F, 0x17F), (0x212A, 0x212A)])
    assert case_closure(codepoints.ANY) == codepoints.ANY
    assert case_closure(()) == ()


def test_set_operations() -> None:
    left = codepoints.from_ranges([(5, 9), (1, 3), (4, 4), (20, 30)])
    assert left == ((1, 9), (20, 30))
    assert codepoints.complement(codepoints.complement(left)) == left
    assert codepoints.intersection(left, ((8, 22),)) == ((8, 9), (20, 22))
    assert codepoints.difference(left, ((2, 25),)) == ((1, 1), (26, 30))
    blocks = codepoints.partition([left, ((8, 22),)])
    assert sorted(blocks) == sorted([((1, 7), (23, 30)), ((8, 9), (20, 22)), ((10, 19),), ((0, 0), (31, 0x10FFFF))])
