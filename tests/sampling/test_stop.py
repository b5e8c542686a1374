"""Stop strings in a stream: nothing of a stop string is shown, and nothing is held back longer than needed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.sampling import StopStrings


def run(stop, pieces, *, include=False):
    """What is shown after each piece, what comes at the end, and the stop string found."""
    scanner = StopStrings(stop, include=include)
    shown = [scanner.push(piece) for piece in pieces]
    return shown, scanner.flush(), scanner.stopped


CASES = [
    # stop, pieces, shown after each, at the end, found
    (["END"], [b"Hello E", b"ND more"], [b"Hello ", b""], b"", "END"),
    (["END"], [b"Hello E", b"NOUGH"], [b"Hello ", b"ENOUGH"], b"", None),
    (["END"], [b"EE", b"N", b"EN", b"D"], [b"E", b"", b"EN", b""], b"", "END"),
    (["\n\n"], [b"a\n", b"b\n", b"\n"], [b"a", b"\nb", b""], b"", "\n\n"),
    (["\n\n"], [b"a\n"], [b"a"], b"\n", None),
    (["abc", "b"], [b"xab"], [b"xa"], b"", "b"),  # "b" is complete first
    (["bc", "abc"], [b"xabc"], [b"x"], b"", "abc"),  # both end here: the longer one
    (["aab"], [b"aaab"], [b"a"], b"", "aab"),
    (["é"], [b"caf", b"\xc3", b"\xa9!"], [b"caf", b"", b""], b"", "é"),
    ([], [b"abc"], [b"abc"], b"", None),
]


@pytest.mark.parametrize(("stop", "pieces", "shown", "end", "found"), CASES)
def test_cases(stop, pieces, shown, end, found):
    assert run(stop, pieces) == (shown, end, found)


def test_included():
    assert run("END", [b"a E", b"ND b"], include=True) == ([b"a ", b"END"], b"", "END")


def test_nothing_comes_after_the_end():
    scanner = StopStrings(".")
    assert scanner.push(b"a.b") == b"a"
    assert scanner.is_stopped
    assert scanner.push(b"c") == b""
    assert scanner.flush() == b""


def test_before_min_tokens_stop_strings_are_text():
    scanner = StopStrings(["ab"])
    assert scanner.push(b"xab", may_stop=False) == b"xab"
    assert scanner.push(b"a", may_stop=False) == b""
    assert scanner.push(b"b", may_stop=True) == b""
    assert scanner.stopped == "ab"


def test_text_never_shows_half_a_character():
    scanner = StopStrings(["€!"])
    pieces = ["5 €".encode()[:3], "5 €".encode()[3:], " ok 🙂".encode()[:5], " ok 🙂".encode()[5:]]
    assert [scanner.push_text(piece) for piece in pieces] == ["5 ", "", "€ ok ", "🙂"]
    assert scanner.flush_text() == ""
    broken = StopStrings(["x"])
    assert broken.push_text(b"a\xf0\x9f") == "a"
    assert broken.flush_text() == "\ufffd"


def test_empty_stop_string_is_refused():
    with pytest.raises(ValueError, match="empty"):
        StopStrings(["a", ""])


def reference(stop, text, include):
    """The shown text and the stop string, from the whole text at once."""
    ends = [(text.index(s) + len(s), -len(s), s) for s in stop if s in text]
    if not ends:
        return text, None
    end, _, found = min(ends)
    return text[: end if include else end - len(found)], found.decode()


LETTERS = st.text("abé", min_size=0, max_size=24)


@given(
    st.lists(st.text("abé", min_size=1, max_size=4), max_size=4),
    LETTERS,
    st.lists(st.integers(0, 40), max_size=8),
    st.booleans(),
)
def test_any_cutting_gives_the_same(stop, text, cuts, include):
    data = text.encode()
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[low:high] for low, high in itertools.pairwise(borders)]
    expected, found = reference([s.encode() for s in stop], data, include)
    scanner = StopStrings(stop, include=include)
    so_far = b""
    for piece in pieces:
        so_far += scanner.push(piece)
        assert expected.startswith(so_far)
    assert so_far + scanner.flush() == expected
    assert scanner.stopped == found


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4), st.text("ab", max_size=24))
def test_only_what_may_begin_a_stop_string_is_held(stop, text):
    scanner = StopStrings(stop)
    for end in range(1, len(text) + 1):
        scanner.push(text[end - 1 : end].encode())
        if scanner.is_stopped:
            return
        longest = max(
            (n for s in stop for n in range(1, len(s)) if text[:end].endswith(s[:n])),
            default=0,
        )
        assert len(scanner.held) == longest
