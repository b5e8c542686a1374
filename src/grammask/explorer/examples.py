"""What the page offers to begin with: a prompt and a constraint for each kind."""

from __future__ import annotations

import json
from typing import Any

_RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"enum": ["London", "Paris", "Vienna"]},
        "born": {"type": "string", "format": "date"},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}

_REVIEW = {
    "type": "object",
    "properties": {
        "label": {"enum": ["positive", "negative", "mixed"]},
        "reasoning": {"type": "string"},
        "aspects": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"aspect": {"type": "string"}, "score": {"type": "number", "minimum": -1, "maximum": 1}},
                "required": ["aspect", "score"],
            },
        },
    },
    "required": ["label", "reasoning"],
}

_TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    }
]

_ARITHMETIC = """\
root ::= sum
sum ::= product (" + " product | " - " product)*
product ::= factor (" * " factor | " / " factor)*
factor ::= number | "(" sum ")"
number ::= [1-9] [0-9]? [0-9]?
"""

_COMMAND = """\
start: "move " direction " by " NUMBER " " unit
direction: "north" | "south" | "east" | "west"
unit: "metres" | "miles"
NUMBER: /[1-9][0-9]{0,2}/
"""


def _written(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


EXAMPLES: list[dict[str, str]] = [
    {
        "title": "A record from a sentence",
        "kind": "json_schema",
        "prompt": "Extract name, age and city as JSON: Ada Lovelace, age 36, lives in London.",
        "text": _written(_RECORD),
        "output": '{"name": "Ada Lovelace", "age": 36, "city": "London"}',
        "prefix": '{"name": "Ada Lovelace", "age": 36, "city": "',
    },
    {
        "title": "A review (with things to mind)",
        "kind": "json_schema",
        "prompt": "Judge this review as JSON: The food was superb, but we waited for an hour.",
        "text": _written(_REVIEW),
        "output": '{"label": "mixed", "reasoning": "Slow service", "aspects": [{"aspect": "food", "score": 2}]}',
        "prefix": '{"label": "mixed", "reasoning": "Slow", "aspects": [{"aspect": "food", "score": ',
    },
    {
        "title": "A date",
        "kind": "regex",
        "prompt": "On which day did the first human walk on the Moon? Answer with the date alone.",
        "text": r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
        "output": "1969-07-20",
        "prefix": "1969-0",
    },
    {
        "title": "Yes, no or unknown",
        "kind": "choice",
        "prompt": "Is a tomato a fruit?",
        "text": "yes\nno\nunknown",
        "output": "yes",
        "prefix": "",
    },
    {
        "title": "Arithmetic",
        "kind": "gbnf",
        "prompt": "Write an expression with the numbers 2, 3 and 7.",
        "text": _ARITHMETIC,
        "output": "(2 + 3) * 7",
        "prefix": "(2 + 3",
    },
    {
        "title": "A command",
        "kind": "lark",
        "prompt": "Tell the robot to go ten metres to the east.",
        "text": _COMMAND,
        "output": "move east by 10 metres",
        "prefix": "move east by ",
    },
    {
        "title": "A tool call",
        "kind": "tools",
        "prompt": "What is the weather in Vienna?",
        "text": _written(_TOOLS),
        "output": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Vienna"}}\n</tool_call>',
        "prefix": '<tool_call>\n{"name": "get_weather", "arguments": {',
    },
    {
        "title": "Any JSON",
        "kind": "json",
        "prompt": "Describe a cat as JSON.",
        "text": "",
        "output": '{"legs": 4}',
        "prefix": '{"legs": ',
    },
    {
        "title": "Free text",
        "kind": "none",
        "prompt": "What is the capital of France?",
        "text": "",
        "output": "The capital of France is Paris.",
        "prefix": "The",
    },
]
