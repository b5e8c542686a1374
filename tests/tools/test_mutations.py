"""Damaged calls: what the constraint allows can be read, and what cannot be read is reported, never a crash."""

from __future__ import annotations

import random

import pytest

import grammask
from grammask.constraints.tools import FORMATS, ToolCallError, ToolCalls
from support.grammars import accepts, byte_vocabulary
from support.tool_rows import ROWS
from support.tools import PING, TIME, WEATHER


def damaged(text: str, generator: random.Random) -> str:
    """The text with one to three characters left out, doubled, swapped or replaced."""
    characters = list(text)
    for _ in range(generator.randrange(1, 4)):
        place = generator.randrange(len(characters) or 1)
        piece = generator.choice(["", "", characters[place] * 2 if characters else "", *'{}[]<>"\\,:= \n0é()/'])
        characters[place : place + 1] = list(piece)
    return "".join(characters)


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_calls(format: str) -> None:
    generator = random.Random(format)
    calls = ToolCalls([WEATHER, TIME, PING], format)
    compiled = grammask.compile(calls, byte_vocabulary())
    texts = [text for name, text, _ in ROWS if name == format]
    faults = []
    for _ in range(400):
        text = damaged(generator.choice(texts), generator)
        if accepts(compiled, text):
            calls.parse(text)
            continue
        try:
            calls.parse(text)  # readers are lenient about the order of members and about blanks
        except ToolCallError as fault:
            faults.append((fault, text))
    assert len(faults) > 100
    for fault, text in faults:
        assert 0 <= fault.position <= len(text)
        assert fault.expected
