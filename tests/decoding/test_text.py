"""Pieces of text: whole characters, stop texts, and independence of how the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.decoding.text import TextAssembler


def assemble(chunks: Iterable[bytes], stop: list[str], include_stop: bool = False) -> tuple[list[str], TextAssembler]:
    assembler = TextAssembler(stop, include_stop=include_stop)
    pieces = [assembler.feed(chunk) for chunk in chunks]
    return [*pieces, assembler.finish()], assembler


@st.composite
def cut_text(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    text = draw(st.text(alphabet="ab\nשé👩‍🚀", max_size=20))
    data = text.encode()
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=8)) | {0, len(data)})
    return text, [data[low:high] for low, high in pairwise(cuts)]


@given(cut_text())
def test_pieces_are_the_text(case: tuple[str, list[bytes]]) -> None:
    text, chunks = case
    pieces, assembler = assemble(chunks, [])
    assert "".join(pieces) == assembler.text == text
    assert "\ufffd" not in "".join(pieces)


def stopped_text(text: str, stop: list[str], include: bool) -> tuple[str, bool]:
    """The definition: read character by character until the text ends with a stop text."""
    for end in range(1, len(text) + 1):
        endings = [item for item in stop if text[:end].endswith(item)]
        if endings:
            longest = max(map(len, endings))
            return text[: end if include else end - longest], True
    return text, False


@given(cut_text(), st.lists(st.text(alphabet="ab\nש", min_size=1, max_size=4), max_size=3), st.booleans())
def test_stop_texts(case: tuple[str, list[bytes]], stop: list[str], include: bool) -> None:
    text, chunks = case
    pieces, assembler = assemble(chunks, stop, include)
    assert ("".join(pieces), assembler.stopped) == stopped_text(text, stop, include)


def test_what_may_begin_a_stop_text_is_held_back() -> None:
    assembler = TextAssembler(["END"])
    assert assembler.feed(b"one E") == "one "
    assert assembler.feed(b"N") == ""
    assert assembler.feed(b"ough") == "ENough"
    assert assembler.feed(b" EN") == " "
    assert assembler.finish() == "EN"


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_half_a_character_at_the_end_is_left_out(cut: int) -> None:
    pieces, assembler = assemble([b"ok", "🚀".encode()[:cut]], [])
    assert "".join(pieces) == assembler.text == "ok"


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert "".join(assemble([b"a\xff", b"b"], [])[0]) == "a\ufffdb"
