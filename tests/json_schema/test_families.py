"""Ten thousand instances for each family of schemas: accepted to the end exactly when the jsonschema validator accepts.

Half of the instances are drawn to be valid, half are such instances with one part changed. Texts hold Hebrew, Persian
with zero-width joiners, Turkish, Chinese and emoji.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

import grammask

INSTANCES = 10_000
WORDS = [
    "",
    "a",
    "Ada",
    "שלום",
    "می‌خواهم",
    "İstanbul ı",
    "你好世界",
    "naïve café",
    'say "no"',
    "a\\b",
    "line\nbreak",
    "👩‍👩‍👧",
    "\u0001",
    "x" * 30,
]
Draw = Callable[[random.Random], Any]


def word(r: random.Random) -> str:
    return r.choice(WORDS)


def scalar(r: random.Random) -> Any:
    return r.choice([None, True, False, 0, -1, 7, 2.5, 1e-7, -0.0, 10**20, word(r)])


def anything(r: random.Random, depth: int = 2) -> Any:
    kind = r.random()
    if depth == 0 or kind < 0.6:
        return scalar(r)
    if kind < 0.8:
        return [anything(r, depth - 1) for _ in range(r.randrange(4))]
    return {word(r): anything(r, depth - 1) for _ in range(r.randrange(4))}


def some(r: random.Random, members: dict[str, Draw], required: set[str]) -> dict[str, Any]:
    """An object with the required members and some of the others, in order."""
    return {key: draw(r) for key, draw in members.items() if key in required or r.random() < 0.6}


def record(r: random.Random) -> Any:
    members: dict[str, Draw] = {
        "name": word,
        "order": lambda r: r.randrange(10**6),
        "category": lambda r: r.choice(["late", "damaged", "שונה"]),
        "items": lambda r: [word(r) for _ in range(r.randrange(1, 4))],
        "note": lambda r: r.choice([None, word(r)]),
    }
    return some(r, members, {"name", "order", "category", "items"})


def tree(r: random.Random, depth: int = 3) -> Any:
    children = [tree(r, depth - 1) for _ in range(r.randrange(3))] if depth else []
    return {"v": r.randrange(-5, 50), "kids": children}


def decimal(r: random.Random) -> float | int:
    return r.choice([r.randrange(0, 1001) / 4, r.randrange(0, 251), r.randrange(0, 1001) / 8])


FAMILIES: dict[str, tuple[dict[str, Any], Draw]] = {
    "record": (
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "order": {"type": "integer", "minimum": 0},
                "category": {"enum": ["late", "damaged", "שונה"]},
                "items": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
                "note": {"type": ["string", "null"]},
            },
            "required": ["name", "order", "category", "items"],
            "additionalProperties": False,
        },
        record,
    ),
    "any value": ({}, anything),
    "bounded strings": (
        {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 10}},
        lambda r: [w for w in (word(r) for _ in range(4)) if 2 <= len(w) <= 10],
    ),
    "patterns": (
        {"type": "array", "items": {"type": "string", "pattern": "^(\\p{L}+|[0-9a-f]{2,5})$"}},
        lambda r: [r.choice(["Ada", "שלום", "你好世界", "0f", "c0ffe", "ı"]) for _ in range(r.randrange(4))],
    ),
    "maps": (
        {
            "type": "object",
            "patternProperties": {"^n_": {"type": "number"}},
            "additionalProperties": {"type": "string"},
            "minProperties": 1,
            "maxProperties": 4,
        },
        lambda r: {
            **{f"n_{r.randrange(9)}": r.randrange(100) / 4 for _ in range(r.randrange(3))},
            **{r.choice(["מפתח", "کلید‌ها", "İ", "键", "k", "🔑"]): word(r) for _ in range(r.randrange(1, 3))},
        },
    ),
    "numbers": (
        {"type": "array", "items": {"type": "number", "minimum": 0, "exclusiveMaximum": 250.5, "multipleOf": 0.25}},
        lambda r: [decimal(r) for _ in range(r.randrange(4))],
    ),
    "unions": (
        {
            "type": "array",
            "items": {"anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "object", "required": ["k"]}]},
        },
        lambda r: [
            r.choice([True, r.randrange(99), {"k": scalar(r)}, {"j": 1, "k": []}]) for _ in range(r.randrange(4))
        ],
    ),
    "recursion": (
        {
            "type": "object",
            "properties": {"v": {"type": "integer", "maximum": 40}, "kids": {"type": "array", "items": {"$ref": "#"}}},
            "required": ["v", "kids"],
            "additionalProperties": False,
        },
        tree,
    ),
    "unique": (
        {"type": "array", "uniqueItems": True, "items": {"enum": [1, "a", None, "שלום", True]}, "minItems": 2},
        lambda r: r.sample([1, "a", None, "שלום", True], r.randrange(2, 6)),
    ),
    "contains": (
        {
            "type": "array",
            "contains": {"type": "string"},
            "minContains": 1,
            "maxContains": 2,
            "items": {"not": {"const": 0}},
        },
        lambda r: r.sample([word(r), 1, 2.5, None, [0]], r.randrange(1, 5)),
    ),
    "conditions": (
        {
            "type": "object",
            "properties": {"kind": {"enum": ["a", "b"]}, "size": {"type": "integer"}},
            "required": ["kind"],
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": {"required": ["size"]},
            "else": {"properties": {"size": False}},
            "additionalProperties": False,
        },
        lambda r: {"kind": "a", "size": r.randrange(9)} if r.random() < 0.5 else {"kind": "b"},
    ),
}


def changed(r: random.Random, value: Any) -> Any:
    """The value with one part changed, removed or added."""
    value = copy.deepcopy(value)
    if isinstance(value, list) and value and r.random() < 0.8:
        at = r.randrange(len(value))
        action = r.random()
        if action < 0.5:
            value[at] = changed(r, value[at])
        elif action < 0.75:
            value.insert(at, copy.deepcopy(r.choice([value[at], scalar(r)])))
        else:
            del value[at]
        return value
    if isinstance(value, dict) and value and r.random() < 0.8:
        key = r.choice(list(value))
        action = r.random()
        if action < 0.5:
            value[key] = changed(r, value[key])
        elif action < 0.75:
            value[r.choice([*WORDS, "n_1", "size", "v", "k"])] = scalar(r)
        else:
            del value[key]
        return value
    return anything(r, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_the_validator(family: str) -> None:
    schema, draw = FAMILIES[family]
    validator = jsonschema.Draft202012Validator(schema)
    # The validator's own patterns are Python's, which lack \p{...}: judge those by the regex package.
    if family == "patterns":
        regex = pytest.importorskip("regex")
        matches = regex.compile(schema["items"]["pattern"]).search

        def valid(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(w, str) and matches(w) for w in value)

    else:
        valid = validator.is_valid
    vocabulary = grammask.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)], eos_token_ids=[])
    compiled = grammask.compile(grammask.JsonSchema(schema, property_order="any"), vocabulary)
    start = compiled.matcher()
    r = random.Random(family)
    accepted = 0
    for _ in range(INSTANCES // 2):
        value = draw(r)
        for instance in (value, changed(r, value)):
            text = json.dumps(instance, ensure_ascii=False, separators=r.choice([(", ", ": "), (",", ":")]))
            right = valid(instance)
            matcher = start.copy()
            got = matcher.accept_bytes(text.encode()) and matcher.is_complete
            assert got == right, (family, text, "accepted" if got else "refused")
            accepted += right
    assert accepted > INSTANCES * 0.3
    assert accepted < INSTANCES or family == "any value"
