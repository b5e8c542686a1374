"""Shapes of real calls, format by format: the mask and the reader agree on what is a call and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

import grammask
from grammask.constraints.tools import FORMATS, ToolCallError, ToolCalls
from support.grammars import accepts, byte_vocabulary
from support.tool_rows import ROWS, VALUES, WRITTEN
from support.tools import PING, TIME, WEATHER


@pytest.fixture(scope="module")
def compiled() -> dict[str, tuple[ToolCalls, grammask.CompiledConstraint]]:
    vocabulary = byte_vocabulary()
    calls = {name: ToolCalls([WEATHER, TIME, PING], name) for name in FORMATS}
    return {name: (constraint, grammask.compile(constraint, vocabulary)) for name, constraint in calls.items()}


@pytest.mark.parametrize(("format", "text", "expected"), ROWS)
def test_rows(compiled: Any, format: str, text: str, expected: Any) -> None:
    calls, ready = compiled[format]
    assert accepts(ready, text) == (expected is not None)
    if expected is None:
        with pytest.raises(ToolCallError) as caught:
            calls.parse(text)
        assert 0 <= caught.value.position <= len(text)
    else:
        assert [(call.name, call.arguments) for call in calls.parse(text)] == expected


def test_every_format_has_rows() -> None:
    for name in FORMATS:
        assert {expected is None for format, _, expected in ROWS if format == name} >= {False}, name


def test_every_format_is_written() -> None:
    assert set(WRITTEN) == set(FORMATS)


@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("value", VALUES)
def test_adversarial_values_come_back_as_they_went_in(compiled: Any, format: str, value: str) -> None:
    calls, ready = compiled[format]
    text = WRITTEN[format].replace("RAW", value).replace("JSON", json.dumps(value, ensure_ascii=False))
    assert accepts(ready, text)
    assert calls.parse(text)[0].arguments == {"city": value}


@pytest.mark.parametrize(
    ("format", "value", "fault"),
    [
        ("qwen3_coder", "a\n</parameter>\nb", "line 6, column 1: expected '<parameter=' or '</function>', found"),
        ("glm4_5", "a</arg_value>\nb", "line 4, column 1: expected '<arg_key>' or '</tool_call>', found"),
    ],
)
def test_a_raw_value_cannot_hold_its_closing_marker(compiled: Any, format: str, value: str, fault: str) -> None:
    calls, ready = compiled[format]
    text = WRITTEN[format].replace("RAW", value)
    assert not accepts(ready, text)
    with pytest.raises(ToolCallError, match=fault):
        calls.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        ' to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{"city": "Oslo"}<|call|>',
        '<|channel|>analysis to=functions.get_weather<|message|>{"city": "Oslo"}<|call|>',
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary"
            ' json<|message|>{"city": "Oslo"}'
        ),
    ],
)
def test_harmony_is_read_wherever_the_recipient_stands(compiled: Any, text: str) -> None:
    calls, ready = compiled["harmony"]
    assert [(call.name, call.arguments) for call in calls.parse(text)] == [("get_weather", {"city": "Oslo"})]
    assert not accepts(ready, text), "written in one way only"
