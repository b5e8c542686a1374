"""Structural tags: which texts they allow, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

import grammask
from grammask.engine.errors import ConstraintError
from grammask.integrations.structural_tags import structural_tag

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 5}},
    "required": ["city"],
    "additionalProperties": False,
}
SEPARATED = {"type": "tags_with_separator", "separator": ","}
JSON = {"type": "json_schema", "json_schema": CITY}
TAG = {"type": "tag", "begin": "<f=a>", "content": JSON, "end": "</f>"}
OTHER = {"type": "tag", "begin": "<f=b>", "content": {"type": "const_string", "value": "1"}, "end": ["</f>", ";"]}
TRIGGERED = {"type": "triggered_tags", "triggers": ["<f="], "tags": [TAG]}
A = '<f=a>{"city": "Oslo"}</f>'
B = "<f=b>1;"


def const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


@pytest.mark.parametrize(
    ("described", "valid", "invalid"),
    [
        (TAG, [A], ["", "<f=a>{}</f>", A + A, A[:-1]]),
        (OTHER, [B, "<f=b>1</f>"], ["<f=b>1", "<f=b>2;"]),
        (TRIGGERED, ["", "Hi", A, f"x{A}y{A}z", "<f"], ["<f=", "<f=c>", A + "<f=a>{}</f>"]),
        ({**TRIGGERED, "at_least_one": True}, [A, "x" + A], ["", "Hi"]),
        ({**TRIGGERED, "stop_after_first": True, "at_least_one": True}, [A, "x" + A], [A + "x", A + A]),
        (
            {"type": "tags_with_separator", "tags": [TAG, OTHER], "separator": ","},
            ["", A, f"{A},{B}"],
            [A + B, A + ","],
        ),
        (
            {
                "type": "tags_with_separator",
                "tags": [TAG],
                "separator": ",",
                "at_least_one": True,
                "stop_after_first": True,
            },
            [A],
            ["", f"{A},{A}"],
        ),
        ({"type": "sequence", "elements": [const("a"), {"type": "regex", "pattern": "[0-9]+"}]}, ["a12"], ["a", "12"]),
        ({"type": "or", "elements": [const("a"), const("b")]}, ["a", "b"], ["", "ab"]),
        ({"type": "any_text", "excludes": ["no"]}, ["", "n", "yes"], ["no", "know"]),
        (
            {"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": "</t>"},
            ["<t></t>", "<t>a<b</t>"],
            ["<t></t></t>"],
        ),
        ({"type": "grammar", "grammar": 'root ::= "a" root | "b"'}, ["b", "aab"], ["a", ""]),
        ({"type": "optional", "content": const("a")}, ["", "a"], ["aa"]),
        ({"type": "plus", "content": const("a")}, ["a", "aa"], [""]),
        ({"type": "star", "content": const("a")}, ["", "aa"], ["b"]),
        ({"type": "repeat", "content": const("a"), "min": 1, "max": 2}, ["a", "aa"], ["", "aaa"]),
        ({"type": "repeat", "content": const("a"), "min": 1, "max": -1}, ["a" * 9], [""]),
    ],
)
def test_formats(described: dict[str, Any], valid: list[str], invalid: list[str]) -> None:
    constraint = structural_tag(json.dumps({"type": "structural_tag", "format": described}))
    vocabulary = grammask.Vocabulary.from_tokens([*(bytes([i]) for i in range(256)), None], eos_token_ids=[256])
    compiled = grammask.compile(constraint, vocabulary)
    for text, expected in [*((text, True) for text in valid), *((text, False) for text in invalid)]:
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_complete) == expected, text


def test_first_form() -> None:
    described = {"structures": [{"begin": "<f=a>", "schema": CITY, "end": "</f>"}], "triggers": ["<f="]}
    format_ = {"type": "structural_tag", "format": TRIGGERED}
    assert repr(structural_tag(json.dumps(described))) == repr(structural_tag(json.dumps(format_)))


def test_tokens() -> None:
    described = {
        "type": "tag",
        "begin": {"type": "token", "token": "<call>"},
        "content": const("x"),
        "end": {"type": "token", "token": "</call>"},
    }
    vocabulary = grammask.Vocabulary.from_tokens([b"x", None, None, None], [3], {"<call>": 1, "</call>": 2})
    constraint = structural_tag(json.dumps({"type": "structural_tag", "format": described}))
    matcher = grammask.compile(constraint, vocabulary).matcher()
    assert [matcher.accept(token) for token in (1, 0, 2, 3)] == [True] * 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "structures"),
        ('{"format": {"type": "any_tokens"}}', "any_tokens"),
        ('{"format": {"type": "any_text", "max_tokens": 3}}', "max_tokens"),
        ('{"format": {"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}}', "qwen_xml"),
        ('{"format": {"type": "json_schema", "json_schema": {"type": "x"}}}', "x"),
        ('{"format": {"type": "triggered_tags", "triggers": ["a"], "tags": [{"begin": "b", "end": "c"}]}}', "trigger"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    vocabulary = grammask.Vocabulary.from_tokens([b"x", None], eos_token_ids=[1])
    with pytest.raises(ConstraintError, match=message):
        grammask.compile(structural_tag(text), vocabulary)
