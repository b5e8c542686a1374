"""Ten constraints for every engine, each with a check of the output that knows nothing of grammask.

Without white space, since a small model at a high temperature may write blanks until it is cut.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAGS = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"enum": ["new", "urgent", "billing"]}, "minItems": 1, "maxItems": 2},
        "open": {"type": "boolean"},
    },
    "required": ["tags", "open"],
    "additionalProperties": False,
}
PAYMENT = {
    "$defs": {"money": {"type": "number", "minimum": 0, "multipleOf": 0.25, "maximum": 500}},
    "type": "object",
    "properties": {
        "method": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "card"}, "last4": {"type": "string", "pattern": "^[0-9]{4}$"}},
                    "required": ["kind", "last4"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "cash"}, "paid": {"$ref": "#/$defs/money"}},
                    "required": ["kind", "paid"],
                    "additionalProperties": False,
                },
            ]
        }
    },
    "required": ["method"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer", "minimum": 0, "maximum": 9},
                "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/leaf"}]},
            },
            "required": ["value", "next"],
            "additionalProperties": False,
        },
        "leaf": {
            "type": "object",
            "properties": {"value": {"type": "integer", "minimum": 0, "maximum": 9}},
            "required": ["value"],
            "additionalProperties": False,
        },
    },
    "$ref": "#/$defs/node",
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of the next days.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "maxLength": 20},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
SUM = 'root ::= term (" " [-+] " " term){0,2}\nterm ::= number | "(" number " * " number ")"\nnumber ::= [1-9] [0-9]?\n'
SELECT = """
start: "SELECT " column (", " column)~0..2 " FROM " TABLE
column: "id" | "name" | "price"
TABLE: "orders" | "customers"
"""


@dataclass(frozen=True)
class Case:
    """One constraint.

    Attributes:
        name: of the case.
        wire: the constraint as ``grammask.integrations.wire`` describes it.
        prompt: what the model is asked.
        check: raises if a text does not satisfy the constraint.
        vllm: the same constraint as a field of vLLM's StructuredOutputsParams; None where it has none.
    """

    name: str
    wire: dict[str, Any]
    prompt: str
    check: Callable[[str], object]
    vllm: tuple[str, Any] | None


def _valid(schema: dict[str, Any]) -> Callable[[str], object]:
    return lambda text: jsonschema.Draft202012Validator(schema).validate(json.loads(text))


def _matches(pattern: str) -> Callable[[str], object]:
    def check(text: str) -> None:
        assert re.fullmatch(pattern, text), text

    return check


def _is_sum(text: str) -> None:
    ast.parse(text, mode="eval")
    number = "[1-9][0-9]?"
    term = rf"({number}|\({number} \* {number}\))"
    assert re.fullmatch(rf"{term}( [-+] {term}){{0,2}}", text), text


def _is_call(text: str) -> None:
    match = re.fullmatch(r"\s*<tool_call>\s*(\{.*\})\s*</tool_call>\s*", text, re.DOTALL)
    assert match, text
    call = json.loads(match[1])
    assert set(call) == {"name", "arguments"}
    assert call["name"] == "get_weather"
    jsonschema.Draft202012Validator(WEATHER["function"]["parameters"]).validate(call["arguments"])


def _schema_case(name: str, schema: dict[str, Any], prompt: str) -> Case:
    return Case(name, {"json_schema": schema, "whitespace": "compact"}, prompt, _valid(schema), ("json", schema))


_DATE = r"(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}"
_PHONE = r"(\+1 )?\([0-9]{3}\) [0-9]{3}-[0-9]{4}"
_MOODS = ["positive", "negative", "neither of them"]

CASES = [
    _schema_case("person", PERSON, "Ada Lovelace was 36 years old. Write the person as JSON."),
    _schema_case("tags", TAGS, "Customer: I was charged twice, please help at once! Write the ticket as JSON."),
    _schema_case("payment", PAYMENT, "Paid with a card that ends in 1881. Write the payment as JSON."),
    _schema_case("tree", TREE, "Write a list of the numbers 3 and 7 as nested JSON objects."),
    Case("date", {"regex": _DATE}, "On which date did Apollo 11 land?", _matches(_DATE), ("regex", _DATE)),
    Case("phone", {"regex": _PHONE}, "A phone number in Boston:", _matches(_PHONE), ("regex", _PHONE)),
    Case(
        "choice",
        {"choice": _MOODS},
        "How does this sound? The room was spotless.",
        _matches("|".join(_MOODS)),
        ("choice", _MOODS),
    ),
    Case("sum", {"gbnf": SUM}, "A sum of three numbers:", _is_sum, ("grammar", SUM)),
    Case(
        "select",
        {"lark": SELECT},
        "A query for the names of all customers:",
        _matches(r"SELECT (id|name|price)(, (id|name|price)){0,2} FROM (orders|customers)"),
        ("grammar", SELECT),
    ),
    Case(
        "tool call",
        {
            "tool_calls": {
                "tools": [WEATHER],
                "format": "hermes",
                "choice": "required",
                "parallel": False,
                "whitespace": "compact",
            }
        },
        "What will the weather be in Paris tomorrow? Call the tool get_weather.",
        _is_call,
        None,
    ),
]
