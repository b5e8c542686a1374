"""Choices, special tokens, faults and functions."""

from __future__ import annotations

import dataclasses
import enum
import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

import grammask
from grammask.constraints.tools import (
    FORMATS,
    Tool,
    ToolCallError,
    ToolCalls,
    ToolFormat,
    tool_from_function,
)
from grammask.constraints.tools.format import Arguments, Blank, FreeText, Name, Token
from support.grammars import accepts, byte_vocabulary
from support.tools import PING, TIME, WEATHER

CALL = '<tool_call>\n{"name": "%s", "arguments": {}}\n</tool_call>'
PINGED = CALL % "ping"
TOOLS = [PING, {"name": "pong"}]


@pytest.mark.parametrize(
    ("options", "allowed", "refused"),
    [
        ({}, ["hi", PINGED, "hi" + PINGED, PINGED + "\n" + CALL % "pong"], [PINGED + "hi"]),
        ({"choice": "required"}, [PINGED, PINGED * 3], ["", "hi", "hi" + PINGED]),
        ({"choice": "required", "preamble": True}, [PINGED, "hi" + PINGED], ["hi"]),
        ({"preamble": False}, [PINGED, "hi"], ["hi" + PINGED]),
        ({"choice": "none"}, ["hi", ""], [PINGED, "hi" + PINGED]),
        ({"choice": "pong"}, [CALL % "pong"], [PINGED, "hi"]),
        ({"parallel": False}, [PINGED], [PINGED * 2]),
        ({"parallel": 2}, [PINGED * 2], [PINGED * 3]),
    ],
)
def test_choice_and_parallel(options: dict[str, Any], allowed: list[str], refused: list[str]) -> None:
    calls = ToolCalls(TOOLS, "hermes", **options)
    compiled = grammask.compile(calls, byte_vocabulary())
    for text in allowed:
        assert accepts(compiled, text), text
        assert len(calls.parse(text)) == text.count("<tool_call>")
    for text in refused:
        assert not accepts(compiled, text), text
        with pytest.raises(ToolCallError):
            calls.parse(text)


def special_vocabulary() -> grammask.Vocabulary:
    names = ["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"]
    special = {name: 256 + number for number, name in enumerate(names)}
    tokens = [bytes([byte]) for byte in range(256)] + [b""] * 3 + [b"</s>"]
    return grammask.Vocabulary.from_tokens(tokens, eos_token_ids=[259], special_token_ids=special)


def test_markers_match_by_id_where_the_vocabulary_has_them() -> None:
    vocabulary = special_vocabulary()
    calls = ToolCalls([WEATHER], "mistral_v11")
    compiled = grammask.compile(calls, vocabulary)
    typed = list(b'[TOOL_CALLS]get_weather[ARGS]{"city": "[ARGS]"}')
    matcher = compiled.matcher()
    assert all(map(matcher.accept, typed))
    assert matcher.is_complete
    assert calls.parse(typed, vocabulary) == []  # text that looks like the markers is text
    written = [*b"Hm ", 256, *b"get_weather", 257, *b'{"city": "[TOOL_CALLS]"}', 259]
    matcher = compiled.matcher()
    assert all(map(matcher.accept, written))
    output = calls.read(written, vocabulary)
    assert output.content == "Hm "
    assert [call.arguments for call in output.calls] == [{"city": "[TOOL_CALLS]"}]
    matcher = compiled.matcher()
    assert all(map(matcher.accept, [256, *b'get_weather{"city": "']))
    assert 256 not in matcher.allowed_token_ids()


def test_markers_as_text_on_request() -> None:
    vocabulary = special_vocabulary()
    calls = ToolCalls([PING], "mistral_v11", choice="required", special_tokens=False)
    compiled = grammask.compile(calls, vocabulary)
    assert accepts(compiled, "[TOOL_CALLS]ping[ARGS]{}")
    assert 256 not in compiled.matcher().allowed_token_ids()
    assert len(calls.parse(list(b"[TOOL_CALLS]ping{}"), vocabulary)) == 1


def test_a_closing_token_that_ends_the_text_needs_no_place_of_its_own() -> None:
    names = ["<|channel|>", "<|message|>", "<|call|>", "<|return|>"]
    special = {name: 256 + number for number, name in enumerate(names)}
    tokens = [bytes([byte]) for byte in range(256)] + [b""] * 4
    vocabulary = grammask.Vocabulary.from_tokens(tokens, eos_token_ids=[258, 259], special_token_ids=special)
    calls = ToolCalls([PING], "harmony", choice="required")
    matcher = grammask.compile(calls, vocabulary).matcher()
    written = [256, *b"commentary to=functions.ping json", 257, *b"{}", 258]
    assert all(map(matcher.accept, written))
    assert matcher.is_terminated
    assert [call.name for call in calls.parse(written, vocabulary)] == ["ping"]


# ¦ marks the place of the fault
FAULTS = [
    ('<tool_call>\n{"name": "get_time", "arguments": {"zone": "CET"}¦', "'}'"),
    ('<tool_call>\n{"name": "get_time", "arguments": {"zone": "¦EST"}}\n</tool_call>', "next could be C U"),
    (
        '<tool_call>\n{"name": "get_time", "arguments": {¦}}\n</tool_call>',
        "the schema of get_time, where zone is missing",
    ),
    ('<tool_call>\n{"name": "get_time", "arguments": {"zone": ¦}}', "JSON (Expecting value)"),
    ('<tool_call>\n{"name": "get_time", "arguments": ¦{"zone": "CET", "zone": "CET"}}', '"zone" stands twice'),
    ('<tool_call>\n{"name": "get_time", "arguments": ¦["zone"]}', "'{'"),
    ('<tool_call>\n{"name": "¦get_tim", "arguments": {}}', "the name of a tool: get_time"),
    ('Well.\n<tool_call>\n{¦"tool": "get_time"}', '"name"'),
    ('<tool_call>\n{"name": "get_time", "arguments": {"zone": "CET"}}\n</tool_call> ¦Done.', "the end of the output"),
]


@pytest.mark.parametrize(("marked", "expected"), FAULTS)
def test_faults_tell_place_and_expectation(marked: str, expected: str) -> None:
    before, _, after = marked.partition("¦")
    with pytest.raises(ToolCallError) as caught:
        ToolCalls([TIME], "hermes").parse(before + after)
    fault = caught.value
    assert (fault.position, fault.line) == (len(before), before.count("\n") + 1), str(fault)
    assert fault.column == len(before.rpartition("\n")[2]) + 1
    assert expected in fault.expected
    assert after.startswith(fault.found)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a":' * 100_000, "Expecting value"),
        ('{"zone": "\\ud800"}', "schema of get_time"),
        ('{"zone": "CET", "n": \ud800}', "lone surrogate"),
        ('{"zone": "CET", "n": NaN}', "a JSON number instead of NaN"),
        ("", "'{'"),
    ],
)
def test_hostile_texts(arguments: str, expected: str) -> None:
    with pytest.raises(ToolCallError, match=re.escape(expected)):
        ToolCalls([TIME], "hermes").parse('<tool_call>{"name": "get_time", "arguments": %s}</tool_call>' % arguments)  # noqa: UP031


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "nest", "arguments": {"x": VALUE}}\n</tool_call>'),
        ("qwen3_coder", "<tool_call>\n<function=nest>\n<parameter=x>\nVALUE\n</parameter>\n</function>\n</tool_call>"),
        ("llama3_pythonic", "[nest(x=VALUE)]"),
    ],
)
def test_arguments_of_any_depth(format: str, text: str) -> None:
    """Deeper than Python's recursion limit, which the standard library's reader of JSON stops at."""
    nested = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
    lists = {"type": "array", "items": {"$ref": "#/$defs/n"}}
    schema = {
        "$defs": {"n": {"anyOf": [lists, nested]}},
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/n"}},
        "required": ["x"],
    }
    calls = ToolCalls([Tool("nest", schema)], format)
    depth = 20_000
    output = text.replace("VALUE", '[{"a": ' * depth + "[]" + "}]" * depth)
    assert accepts(grammask.compile(calls, byte_vocabulary()), output)
    value = calls.parse(output)[0].arguments["x"]
    for _ in range(depth):
        value = value[0]["a"]
    assert value == []


def test_numbers_keep_their_value() -> None:
    text = '<tool_call>{"name": "get_time", "arguments": {"zone": "CET", "a": 1e999, "b": %s, "c": 0.5}}</tool_call>'
    arguments = ToolCalls([TIME], "hermes").parse(text.replace("%s", "9" * 5000))[0].arguments
    assert arguments == {"zone": "CET", "a": Decimal("1e999"), "b": Decimal("9" * 5000), "c": 0.5}


def test_free_texts_may_order_members_as_they_like() -> None:
    calls = ToolCalls([WEATHER], "hermes")
    text = '<tool_call>{"name": "get_weather", "arguments": { "days": 2, "city" : "\\u004fslo" }}</tool_call>\n'
    assert calls.parse(text)[0].arguments == {"days": 2, "city": "Oslo"}


@pytest.mark.parametrize(
    ("tools", "options", "message"),
    [
        ([PING], {"format": "hermes", "whitespace": 2}, "whitespace of tool calls is one of"),
        ([PING], {"format": "hermse"}, "no format of tool calls named 'hermse'"),
        ([PING, PING], {}, "two tools are named 'ping'"),
        ([], {}, "there are no tools"),
        ([PING], {"choice": "pong"}, "the tools are ping"),
        ([{"name": "a b"}], {}, "tool name 'a b'"),
        ([{"name": "f", "parameters": {"type": "array"}}], {}, "allow no object"),
        ([{"name": "f", "parameters": 3}], {}, "not a JSON Schema"),
        ([3], {}, "not int"),
    ],
)
def test_malformed_requests(tools: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(grammask.ConstraintError, match=message):
        ToolCalls(tools, **{"format": "hermes", **options})


def test_faults_in_schemas_name_the_tool() -> None:
    broken = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "int"}}}}
    with pytest.raises(grammask.ConstraintSyntaxError, match="parameters of f: unknown type 'int'") as caught:
        grammask.compile(ToolCalls([broken], "hermes"), byte_vocabulary())
    assert caught.value.pointer == "/properties/a/type"


def test_names_that_a_format_cannot_spell_are_refused() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"first-name": {"type": "string"}}}}
    with pytest.raises(grammask.UnsupportedConstraint, match="'first-name' cannot be spelled"):
        grammask.compile(ToolCalls([tool], "llama3_pythonic"), byte_vocabulary())


def test_a_format_of_ones_own() -> None:
    own = ToolFormat("own", call=("@", Name(), " ", Arguments(), ";"), separator=(Blank(),), end=(Token("<done>"),))
    calls = ToolCalls([PING, TIME], own)
    compiled = grammask.compile(calls, byte_vocabulary())
    text = 'So: @ping {}; @get_time {"zone": "UTC"};<done>'
    assert accepts(compiled, text)
    assert [call.name for call in calls.parse(text)] == ["ping", "get_time"]
    assert not accepts(compiled, "me@example.org")


@pytest.mark.parametrize(
    "fields",
    [
        {"call": (Arguments(),)},
        {"call": (Token("<t>"), Name())},
        {"call": (Name(), Arguments())},
        {"call": (Token("<t>"), Name(), Token("<t>>"), Arguments())},
        {"call": (Name(), Arguments()), "claim": "x", "lead": (FreeText(),)},
    ],
)
def test_inconsistent_formats(fields: dict[str, Any]) -> None:
    with pytest.raises(grammask.ConstraintSyntaxError, match="tool format 'own'"):
        ToolFormat("own", **fields)


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclasses.dataclass
class Place:
    city: str
    country: str = "NO"


def forecast(
    place: Place,
    days: Annotated[int, {"minimum": 1, "maximum": 7}] = 1,
    unit: Unit = Unit.C,
    mode: Literal["a", "b"] = "a",
) -> str:
    """The weather of the next days,
    in short.

    Args:
        place: where it is.
        days (int): how many days,
            at most a week.

    Returns:
        text
    """
    return f"{place.city} {place.country} {days} {unit.name} {mode}"


def test_functions_become_tools() -> None:
    tool = tool_from_function(forecast)
    assert (tool.name, tool.description) == ("forecast", "The weather of the next days, in short.")
    assert tool.parameters["required"] == ["place"]
    assert tool.parameters["properties"]["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 7,
        "description": "how many days, at most a week.",
    }
    assert tool.parameters["properties"]["place"]["description"] == "where it is."
    for format in FORMATS:
        grammask.compile(ToolCalls([forecast], format), byte_vocabulary())
    calls = ToolCalls([forecast], "functionary")
    text = '<function=forecast>{"place": {"city": "Oslo"}, "days": 2, "unit": "fahrenheit"}</function>'
    assert accepts(grammask.compile(calls, byte_vocabulary()), text)
    (call,) = calls.parse(text)
    assert tool.run(call.arguments) == "Oslo NO 2 F a"
    assert tool.as_dict()["function"]["name"] == "forecast"


def test_functions_documented_in_other_styles() -> None:
    def numpy_style(a: int, b) -> None:  # type: ignore[no-untyped-def]
        """Short.

        Parameters
        ----------
        a : int
            The first.
        b
            The second.
        """

    def sphinx_style(a: int) -> None:
        """Short.

        :param a: The first.
        """

    properties = tool_from_function(numpy_style).parameters["properties"]
    assert properties == {"a": {"type": "integer", "description": "The first."}, "b": {"description": "The second."}}
    assert tool_from_function(sphinx_style).parameters["properties"]["a"]["description"] == "The first."


def test_functions_without_names_for_their_parameters_are_refused() -> None:
    with pytest.raises(grammask.UnsupportedConstraint, match="cannot be given by name"):
        tool_from_function(lambda *items: None, name="f")
    with pytest.raises(TypeError, match="not made from a Python function"):
        Tool("f", {"type": "object"}).run({})
