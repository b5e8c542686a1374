"""Places in texts, and sets of bytes in words."""

from __future__ import annotations

import pytest

from grammask.cli.places import Place, describe_bytes, quote


@pytest.mark.parametrize(
    ("data", "offset", "place"),
    [
        (b"", 0, Place(0, 1, 1)),
        (b"abc", 2, Place(2, 1, 3)),
        (b"a\nbc", 2, Place(2, 2, 1)),
        (b"a\r\n\n\tx", 5, Place(5, 3, 2)),
        ("שלום x".encode(), 9, Place(9, 1, 6)),
        ("🚀🚀".encode(), 6, Place(6, 1, 2)),  # inside the second rocket
        (b"a\xff\xffb", 3, Place(3, 1, 2)),  # bytes that are no character take no column
    ],
)
def test_place(data: bytes, offset: int, place: Place) -> None:
    assert Place.of(data, offset) == place


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"abc", "'abc'"),
        (b"it's", "«it's»"),
        ("é\n\t\x00👩‍🚀".encode(), "'é\\n\\t\\x00👩\\u200d🚀'"),
        (b"\xff\x80", "'\\xff\\x80'"),
        (b"x" * 100, f"'{'x' * 59}…'"),
    ],
)
def test_quote(data: bytes, shown: str) -> None:
    assert quote(data) == shown


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (b"a", "'a'"),
        (b"abc", "'a', 'b', 'c'"),
        (b"abcd", "'a' to 'd'"),
        (b'\t\n\r ",}', "tab, newline, carriage return, space, '\"', ',', '}'"),
        (bytes(range(0x20, 0x7F)) + bytes(range(0xC2, 0xF5)), "space to '~', a non-ASCII character"),
        (bytes([0xD7, 0xD8]), "some non-ASCII characters (first byte 0xd7 to 0xd8)"),
        (bytes(range(0x80, 0xC0)), "the next byte of a character: 0x80 to 0xbf"),
        (b"\x01\x7f", "'\\x01', '\\x7f'"),
    ],
)
def test_describe_bytes(allowed: bytes, words: str) -> None:
    assert describe_bytes(allowed) == words
