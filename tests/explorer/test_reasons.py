"""Why a token is out, in words: facts of the matcher, told through the schema."""

from __future__ import annotations

import json

import pytest

from grammask.explorer.constraints import ConstraintSpec
from grammask.explorer.reasons import Reasons
from support.models import byte_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"enum": ["London", "Paris"]},
        "born": {"type": "string", "format": "date"},
        "scores": {"type": "array", "items": {"type": "number", "multipleOf": 0.5}},
        "next": {"$ref": "#"},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
WORDS = [b"name", b'"x', b"35", b'",', b"<tool_call>", b'": "', b"abc", b"}", b"\xc3", b"London"]

ROWS = [
    # what was written, the token, what is said about it
    ("", b"35", "an object is expected here"),
    ("{", b"35", 'the key "name" (required) is expected here'),
    ('{"', b"abc", 'the key "name" (required) is expected here'),
    ("{", b'"x', """'"' fits, but then the key "name" (required) is expected, not 'x'"""),
    ('{"name": ', b"35", "a string (/name) is expected here"),
    ('{"name": "abc', b"35", "the closing quote (/name), since the string may have 3 characters is expected here"),
    ('{"name": "a"', b"}", """',' (the object still needs "age") is expected here"""),
    ('{"name": "a", "age": ', b"abc", "an integer (/age) is expected here"),
    (
        '{"name": "a", "age": 1',
        b"abc",
        "more of an integer, at least 0 and at most 150 (/age): '.', '0' to '9', 'E', 'e' or its end is expected here",
    ),
    ('{"name": "a", "age": 1, "', b"abc", 'the key "city", "born", "scores" or "next" is expected here'),
    ('{"name": "a", "age": 1, "city": ', b"35", '"London" or "Paris" (/city) is expected here'),
    ('{"name": "a", "age": 1, "city": "', b"abc", 'the rest of "London" or "Paris" (/city) is expected here'),
    ('{"name": "a", "age": 1, "born": ', b"35", "a string that is a date (/born) is expected here"),
    ('{"name": "a", "age": 1, "scores": [', b"abc", "a number (/scores/0) or the end of the array is expected here"),
    ('{"name": "a", "age": 1, "next": ', b"abc", "an object (/next) is expected here"),
    ('{"name": "a", "age": 1, "next": {', b"35", 'the key "name" (required) is expected here'),
]


@pytest.fixture(scope="module")
def vocabulary():
    return byte_vocabulary(WORDS)


def at(spec: ConstraintSpec, text: str, vocabulary):
    matcher = spec.compile(vocabulary).matcher()
    assert matcher.accept_bytes(text.encode()), text
    return Reasons(spec, matcher, text.encode(), vocabulary)


@pytest.mark.parametrize(("text", "token", "words"), ROWS, ids=[f"{row[0]} {row[1]!r}" for row in ROWS])
def test_json(vocabulary, text: str, token: bytes, words: str) -> None:
    spec = ConstraintSpec("json_schema", json.dumps(SCHEMA))
    reasons = at(spec, text, vocabulary)
    token_id = 258 + WORDS.index(token)
    assert reasons.why_not(token_id) == words


def test_the_end_of_text(vocabulary) -> None:
    reasons = at(ConstraintSpec("json_schema", json.dumps(SCHEMA)), '{"name": "a"', vocabulary)
    assert reasons.why_not(256) == (
        """the output may not end yet: ',' (the object still needs "age") must come first"""
    )
    assert reasons.why_not(257) == "a special token: it comes only where the constraint names it"


def test_other_texts(vocabulary) -> None:
    reasons = at(ConstraintSpec("regex", "[0-9]{4}-[0-9]{2}"), "2024", vocabulary)
    assert reasons.place is None
    assert reasons.why_not(258 + WORDS.index(b"35")) == "'-' is expected here"
    choice = at(ConstraintSpec("choice", "yes\nno"), "", vocabulary)
    assert choice.why_not(258 + WORDS.index(b"abc")) == "'n', 'y' is expected here"


def test_nearly_any_text(vocabulary) -> None:
    assert at(ConstraintSpec("none"), "", vocabulary).expected() == "any text or the end of the text"
    assert at(ConstraintSpec("regex", r"[^<\n]+<end>"), "x", vocabulary).expected() == "any text"
    assert at(ConstraintSpec("regex", r"[^<\n]{3}"), "", vocabulary).expected() == "any text but '<'"


def test_bytes_that_begin_no_character(vocabulary) -> None:
    reasons = at(ConstraintSpec("none"), "", vocabulary)
    assert reasons.why_not(0xF8) == reasons.why_not(0x80) == "no character begins with this byte"
    spec = ConstraintSpec("regex", "é")
    matcher = spec.compile(vocabulary).matcher()
    assert matcher.accept(0xC3)
    assert "0xa9" in Reasons(spec, matcher, b"\xc3", vocabulary).why_not(0x80)


def test_half_a_character(vocabulary) -> None:
    """A byte that begins a character which may stand here is allowed; one that cannot is told as what it is."""
    reasons = at(ConstraintSpec("regex", "[a-z]+"), "", vocabulary)
    assert reasons.why_not(258 + WORDS.index(b"\xc3")) == "'a' to 'z' is expected here"


def test_tags_of_tools() -> None:
    import grammask

    tokens = [bytes([byte]) for byte in range(256)] + [None, None, None]
    vocabulary = grammask.Vocabulary.from_tokens(
        tokens, eos_token_ids=[256], special_token_ids={"<tool_call>": 257, "</tool_call>": 258}
    )
    tools = [{"name": "now", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}]
    spec = ConstraintSpec("tools", json.dumps(tools), tool_format="hermes")
    matcher = spec.compile(vocabulary).matcher()
    assert matcher.accept(257)
    reasons = Reasons(spec, matcher, b"", vocabulary)
    assert reasons.why_not(258).startswith("this tag may not start yet: ")
