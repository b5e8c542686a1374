"""Shortest completions: that they complete is checked with every mask (``support/exactness.py``); how short, here."""

from __future__ import annotations

import json
from typing import Any

import pytest

import grammask
from grammask import JsonSchema, _core
from support.expressions import Expression, compile_native

LETTERS: list[bytes | None] = [bytes([byte]) for byte in range(256)]
VOCABULARY = _core.Vocabulary([*LETTERS, None], [256], 257)


def completion(root: Expression, text: bytes = b"", rules: dict[str, Expression] | None = None) -> bytes | None:
    matcher = compile_native(VOCABULARY, root, rules or {}).matcher()
    assert matcher.accept_bytes(text)
    tokens = matcher.shortest_completion()
    return None if tokens is None else bytes(tokens)


A, B, C = (("literal", letter) for letter in (b"a", b"b", b"c"))

ROWS: list[tuple[str, Expression, bytes, bytes]] = [
    ("complete", ("repeat", A, 0, None), b"aa", b""),
    ("literal", ("literal", b"hello"), b"he", b"llo"),
    ("union", ("union", (("literal", b"aaaa"), ("literal", b"bb"))), b"", b"bb"),
    ("union-decided", ("union", (("literal", b"aaaa"), ("literal", b"bb"))), b"a", b"aaa"),
    ("repeat", ("concat", (("repeat", ("set", ((98, 122),)), 3, 9), C)), b"b", b"bbc"),
    ("intersection", ("intersection", (("repeat", A, 3, None), ("complement", ("repeat", A, 3, 4)))), b"", b"aaaaa"),
    ("call", ("concat", (("call", ("repeat", A, 2, 5)), ("call", ("union", (B, ("literal", b"cc")))))), b"a", b"ab"),
    ("nullable-call", ("concat", (("call", ("repeat", A, 0, 5)), B)), b"", b"b"),
]


@pytest.mark.parametrize(("root", "text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_texts(root: Expression, text: bytes, expected: bytes) -> None:
    assert completion(root, text) == expected


@pytest.mark.parametrize(
    ("rules", "text", "expected"),
    [
        ({"r": ("union", (("concat", (A, ("rule", "r"), B)), C))}, b"aaa", b"cbbb"),
        ({"r": ("union", (("concat", (("rule", "r"), A)), B))}, b"", b"b"),
        ({"r": ("union", (("rule", "r"), ("literal", b"")))}, b"", b""),
        ({"r": ("union", (("rule", "s"), ("literal", b"abc"))), "s": ("union", (("rule", "r"), B))}, b"", b"b"),
        (
            {"r": ("concat", (A, ("union", (("rule", "s"), C)))), "s": ("concat", (B, ("rule", "r"), ("rule", "r")))},
            b"ab",
            b"acac",
        ),
        # The call is the last that a word of s needs, and not the last that it may hold.
        (
            {
                "r": ("concat", (A, ("rule", "s"), C)),
                "s": ("concat", (B, ("repeat", ("call", ("set", ((97, 97), (99, 99)))), 1, 2))),
            },
            b"ab",
            b"ac",
        ),
    ],
    ids=["middle", "left", "empty-circle", "two-circle", "two-rules", "call-at-the-end"],
)
def test_rules(rules: dict[str, Expression], text: bytes, expected: bytes) -> None:
    assert completion(("rule", "r"), text, rules) == expected


SCHEMAS: list[tuple[str, Any, str, str]] = [
    ("required", {"properties": {"a": {}, "bb": {"type": "string"}}, "required": ["bb"]}, "", '{"bb":""}'),
    ("any-value", {}, "", "0"),
    ("inside-string", {"properties": {"a": {"type": "string"}}, "required": ["a"]}, '{"a":"x', '"}'),
    ("nested", {"items": {"type": "object"}}, '[{"a":[[{"b":"x', '"}]]}]'),
    ("min-items", {"type": "array", "items": {"enum": ["long", 7]}, "minItems": 3}, "[7", ",7,7]"),
    ("min-properties", {"type": "object", "minProperties": 2, "additionalProperties": {"const": 1}}, "", None),
    ("unique", {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3}, "[2", ",1,3]"),
    ("pattern", {"type": "string", "pattern": "^ab?c+$", "minLength": 4}, '"a', 'ccc"'),
    ("bounds", {"type": "integer", "minimum": 1000}, "", "1000"),
]


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize(("name", "schema", "text", "expected"), SCHEMAS, ids=[row[0] for row in SCHEMAS])
def test_schemas(name: str, schema: Any, text: str, expected: str | None, order: str) -> None:
    vocabulary = grammask.Vocabulary.from_tokens([*LETTERS, None], eos_token_ids=[256])
    wanted = {"type": "object", **schema} if "properties" in schema else schema
    matcher = grammask.compile(JsonSchema(wanted, property_order=order), vocabulary).matcher()
    assert matcher.accept_bytes(text.encode())
    tokens = matcher.shortest_completion()
    assert tokens is not None
    found = text + bytes(tokens).decode()
    assert grammask.compile(JsonSchema(wanted, property_order=order), vocabulary).matcher().accept_bytes(found.encode())
    json.loads(found)
    if expected is not None:
        assert len(bytes(tokens)) <= len(expected), (name, found)


def test_many_required_keys_in_any_order_take_one_way() -> None:
    """2^60 orders are not compared."""
    keys = [f"key{i}" for i in range(60)]
    schema = {"type": "object", "properties": {k: {"type": "integer"} for k in keys}, "required": keys}
    vocabulary = grammask.Vocabulary.from_tokens([*LETTERS, None], eos_token_ids=[256])
    matcher = grammask.compile(JsonSchema(schema, property_order="any"), vocabulary).matcher()
    assert matcher.accept_bytes(b'{"key31":5,')
    tokens = matcher.shortest_completion()
    assert tokens is not None
    assert sorted(json.loads(b'{"key31":5,' + bytes(tokens))) == sorted(keys)


def test_as_few_tokens_as_spell_the_text() -> None:
    texts: list[bytes | None] = [b"a", b"b", b"c", b"aab", b"bccc", b"cc", b"aa", None]
    vocabulary = _core.Vocabulary(texts, [7], 8)
    matcher = compile_native(vocabulary, ("literal", b"aabccc"), {}).matcher()
    assert matcher.shortest_completion() == [6, 4]
