"""Schemas that put conditions together: alternatives of alternatives, negations, conditions on other properties."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

from json_schema.hostile_schemas.row import EITHER, EMPTY, PAIRS, UNSUPPORTED, Row, has, nested


def choices(count: int, start: int = 0) -> dict[str, Any]:
    """Branches of which none excludes another."""
    return {"anyOf": [has(f"p{start}_{i}", {"type": "integer"}) for i in range(count)]}


def discriminated(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{**has("kind", {"const": f"k{i}"}), **more} for i in range(count)]


def random_schema(seed: int, depth: int) -> Any:
    """In-place applicators of every kind over a few properties."""
    draw = random.Random(seed)

    def make(level: int) -> Any:
        if level == 0:
            name = draw.choice("abcd")
            return draw.choice(
                [
                    has(name, {"enum": draw.sample(range(6), 3)}),
                    {"properties": {name: {"type": draw.choice(["integer", "string", "object"])}}},
                    {"minProperties": draw.randrange(3)},
                    {"patternProperties": {f"^{name}": {"minimum": draw.randrange(5)}}},
                    {"items": {"type": "integer"}, "contains": {"const": draw.randrange(5)}},
                ]
            )
        kind = draw.choice(["allOf", "anyOf", "oneOf", "not", "if", "properties"])
        parts = [make(level - 1) for _ in range(3)]
        if kind == "not":
            return {"not": parts[0], "anyOf": parts[1:]}
        if kind == "if":
            return dict(zip(("if", "then", "else"), parts, strict=True))
        if kind == "properties":
            return {"properties": dict(zip("abc", parts, strict=True)), "unevaluatedProperties": False}
        return {kind: parts}

    return make(depth)


COMBINATIONS = {
    **{
        f"{keyword} of {keyword}, two branches each, 40 deep": Row(
            functools.partial(nested, 40, lambda inner, k=keyword: {k: [has("a", inner), has("b", inner)]}), EITHER
        )
        for keyword in ("anyOf", "allOf", "oneOf")
    },
    "oneOf of oneOf, ten deep, written out": Row(
        lambda: json.dumps(
            nested(10, lambda inner: {"oneOf": [has("a", inner), {"minProperties": 1, **has("b", inner)}]})
        ),
        EITHER,
    ),
    "oneOf of oneOf, a hundred deep, of strings that share their parts": Row(
        lambda: nested(
            100,
            lambda inner: {"oneOf": [inner, {"minLength": 3}, {"maxLength": 9}, {"type": "integer"}]},
            {"type": "string"},
        ),
        EITHER,
    ),
    "not of allOf of not, 40 deep": Row(
        lambda: nested(40, lambda inner: {"not": {"allOf": [has("a", inner), {"not": has("b", inner)}]}}), EITHER
    ),
    "allOf of anyOfs that share nothing": Row(
        lambda: {"type": "object", "allOf": [choices(4, 100 * i) for i in range(12)]}, EITHER
    ),
    "allOf of a hundred anyOfs of two": Row(lambda: {"allOf": [choices(2, 100 * i) for i in range(100)]}, EITHER),
    "anyOf of allOfs under not": Row(
        lambda: {"not": {"anyOf": [{"allOf": [has(f"a{i}"), has(f"b{i}", {"type": "null"})]} for i in range(40)]}},
        EITHER,
    ),
    "oneOf of 300 overlapping objects": Row(
        lambda: {"oneOf": [has(f"p{i}", {"type": "integer"}) for i in range(300)]}, EITHER
    ),
    "oneOf of 20,000 told apart": Row(lambda: {"oneOf": discriminated(20_000, type="object")}, EITHER),
    "oneOf of 60 overlapping patterns": Row(
        lambda: {"oneOf": [{"type": "string", "pattern": f"a.{{{i}}}b"} for i in range(60)]}, EITHER
    ),
    "oneOf of 60 overlapping intervals": Row(
        lambda: {"oneOf": [{"minimum": i, "maximum": 100 + i} for i in range(60)]}, EITHER
    ),
    "allOf of 60 negated multiples": Row(
        lambda: {"type": "integer", "allOf": [{"not": {"multipleOf": 10**9 + i}} for i in range(60)]}, EITHER
    ),
    "allOf of 300 negated objects": Row(
        lambda: {"type": "object", "allOf": [{"not": has(f"p{i}", {"const": i})} for i in range(300)]}, EITHER
    ),
    "if then else, 60 in a row": Row(
        lambda: {"allOf": [{"if": has(f"a{i}"), "then": has(f"b{i}"), "else": has(f"c{i}")} for i in range(60)]},
        EITHER,
    ),
    "if then else, 40 deep": Row(
        lambda: nested(40, lambda inner: {"if": has("a", inner), "then": has("b", inner), "else": inner}), EITHER
    ),
    "if in if in if": Row(lambda: nested(60, lambda inner: {"if": inner, "then": has("a"), "else": has("b")}), EITHER),
    "dependentSchemas web of 30": Row(
        lambda: {
            "dependentSchemas": {
                f"p{i}": {
                    "required": [f"p{(i * 7 + 1) % 30}"],
                    "properties": {f"p{(i * 3 + 2) % 30}": {"type": "null"}},
                }
                for i in range(30)
            }
        },
        EITHER,
    ),
    "dependentSchemas of 12 with alternatives": Row(
        lambda: {"dependentSchemas": {f"p{i}": choices(4, 100 * i) for i in range(12)}}, EITHER
    ),
    "dependentRequired of 500, each two others": Row(
        lambda: {
            "type": "object",
            "dependentRequired": {f"p{i}": [f"p{(i * 7 + 1) % 500}", f"p{(i * 5 + 2) % 500}"] for i in range(500)},
        },
        EITHER,
    ),
    "unevaluatedProperties under 12 anyOf branches": Row(
        lambda: {"anyOf": [{"properties": {f"p{i}": True}} for i in range(12)], "unevaluatedProperties": False}, EITHER
    ),
    "unevaluatedProperties under 40 anyOf branches": Row(
        lambda: {"anyOf": [{"properties": {f"p{i}": True}} for i in range(40)], "unevaluatedProperties": False}, EITHER
    ),
    "unevaluatedItems under 30 anyOf branches": Row(
        lambda: {
            "anyOf": [{"prefixItems": [{"const": j} for j in range(i)]} for i in range(1, 30)],
            "unevaluatedItems": False,
        },
        EITHER,
    ),
    "unevaluatedItems under 20 contains": Row(
        lambda: {"allOf": [{"contains": {"const": i}} for i in range(20)], "unevaluatedItems": False}, EITHER
    ),
    "contains twelve times with counts": Row(
        lambda: {"allOf": [{"contains": {"minimum": i}, "minContains": 3, "maxContains": 50} for i in range(12)]},
        EITHER,
    ),
    "four contains with counts of a thousand": Row(
        lambda: {
            "allOf": [{"contains": {"const": i}, "minContains": 1000, "maxContains": 2000} for i in range(4)],
        },
        EITHER,
    ),
    "40 properties that some must satisfy": Row(
        lambda: {"not": {"properties": {f"p{i}": {"type": "string"} for i in range(40)}}, "minProperties": 20}, EITHER
    ),
    "30 negated patternProperties": Row(
        lambda: {"allOf": [{"not": {"patternProperties": {f"[a-{c}]": {"type": "null"}}}} for c in "bcdefghijklmn"]},
        EITHER,
    ),
    "20 overlapping patternProperties": Row(
        lambda: {"patternProperties": {f"{c}.*{d}": {"minimum": i} for i, (c, d) in enumerate(PAIRS[:20])}}, EITHER
    ),
    "20 overlapping patternProperties, closed": Row(
        lambda: {
            "patternProperties": {f"^.{{{i}}}[a-m]": {"minimum": i} for i in range(20)},
            "additionalProperties": False,
        },
        EITHER,
    ),
    **{
        f"random combinations {seed}": Row(functools.partial(random_schema, seed, 4), EITHER | EMPTY | UNSUPPORTED)
        for seed in range(8)
    },
}
