"""Schemas of megabytes, and schemas nested deeply."""

from __future__ import annotations

import functools
import json

from json_schema.hostile_schemas.row import COMPILED, EITHER, SYNTAX, TOO_LARGE, Row, has, nested, word


def text_of(before: str, depth: int, inner: str, after: str) -> str:
    return before * depth + inner + after * depth


DOCUMENTS = {
    "5 MB of properties": Row(
        lambda: {"properties": {f"property number {i}": {"type": "integer"} for i in range(100_000)}}, EITHER
    ),
    "5 MB of properties in any order": Row(
        lambda: {"properties": {f"property number {i}": {"type": "integer"} for i in range(100_000)}},
        EITHER,
        options={"property_order": "any"},
    ),
    "20,000 required properties": Row(
        lambda: {
            "properties": {f"p{i}": {"const": i} for i in range(20_000)},
            "required": [f"p{i}" for i in range(20_000)],
        },
        EITHER,
    ),
    "5 MB of different objects": Row(
        lambda: {
            "properties": {f"p{i}": {"properties": {word(i): {"const": word(i)}}} for i in range(50_000)},
        },
        EITHER,
    ),
    "5 MB of definitions": Row(
        lambda: json.dumps(
            {"$defs": {f"d{i}": has(word(i), {"const": word(i)}) for i in range(40_000)}, "$ref": "#/$defs/d39999"}
        ),
        COMPILED,
    ),
    "5 MB of definitions, all used": Row(
        lambda: json.dumps(
            {
                "$defs": {f"d{i}": has(word(i), {"const": word(i)}) for i in range(40_000)},
                "anyOf": [{"$ref": f"#/$defs/d{i}"} for i in range(40_000)],
            }
        ),
        EITHER,
    ),
    "5 MB of anchors": Row(
        lambda: {"$defs": {f"d{i}": {"$anchor": f"anchor{i}", "const": i} for i in range(80_000)}, "$ref": "#anchor7"},
        COMPILED,
    ),
    "5 MB of identifiers": Row(
        lambda: {
            "$defs": {f"d{i}": {"$id": f"http://example.com/{i}", "const": i} for i in range(50_000)},
            "$ref": "http://example.com/49999",
        },
        COMPILED,
    ),
    "5 MB in one string": Row(lambda: {"const": "text " * 1_000_000}, EITHER),
    "5 MB in one property": Row(
        lambda: {"properties": {"a": {"const": "text " * 1_000_000}}}, TOO_LARGE, "/properties/a"
    ),
    "5 MB in one string, every spelling": Row(
        lambda: {"const": "text " * 1_000_000}, EITHER, options={"escapes": "all"}
    ),
    "5 MB in one key": Row(lambda: has("key " * 1_250_000), EITHER),
    "5 MB in one pattern": Row(lambda: {"type": "string", "pattern": "abcde" * 1_000_000}, EITHER),
    "5 MB in one pattern of classes": Row(
        lambda: {"type": "string", "pattern": "[a-z]\\d" * 800_000}, EITHER, "/pattern"
    ),
    "5 MB in one pattern of alternatives": Row(
        lambda: {"type": "string", "pattern": "|".join(word(i) for i in range(300_000))}, EITHER, "/pattern"
    ),
    "5 MB of patterns": Row(
        lambda: {"anyOf": [{"type": "string", "pattern": f"^{word(i)}[a-z]{{3,9}}$"} for i in range(60_000)]}, EITHER
    ),
    "5 MB of type names": Row(lambda: {"type": ["string", "integer"] * 250_000}, COMPILED),
    "5 MB of required names": Row(lambda: {"required": [word(i) for i in range(250_000)]}, EITHER),
    "5 MB of descriptions": Row(lambda: {"description": "text " * 1_000_000, "$comment": "x" * 10**6}, COMPILED),
    "5 MB of blanks": Row(lambda: " " * 5_000_000 + "{}" + " " * 5_000_000, COMPILED),
    "5 MB of digits": Row(lambda: '{"minimum": ' + "9" * 5_000_000 + "}", TOO_LARGE),
    "5 MB of digits after a point": Row(lambda: '{"minimum": 0.' + "9" * 5_000_000 + "}", TOO_LARGE, "/minimum"),
    "5 MB of prefix items": Row(lambda: {"prefixItems": [{"const": i} for i in range(300_000)]}, EITHER),
    "a list of a million branches": Row(lambda: {"anyOf": [{"type": "string"}] * 1_000_000}, EITHER),
    "a list of a million branches that are true": Row(lambda: {"allOf": [True] * 1_000_000}, COMPILED),
    "text nested 100,000 deep": Row(lambda: text_of('{"not":', 100_000, "{}", "}"), TOO_LARGE),
    "lists nested 100,000 deep": Row(lambda: text_of("[", 100_000, "", "]"), TOO_LARGE | SYNTAX),
    "a constant nested 100,000 deep": Row(
        lambda: {"const": nested(100_000, lambda inner: [inner], 1)}, TOO_LARGE, "/const"
    ),
    "a constant nested 150 deep": Row(lambda: {"const": nested(150, lambda inner: {"a": [inner]}, 1)}, EITHER),
    **{
        f"{name}, {depth:,} deep": Row(functools.partial(nested, depth, wrap), EITHER)
        for depth in (900, 100_000)
        for name, wrap in {
            "items": lambda inner: {"type": "array", "items": inner},
            "prefixItems": lambda inner: {"prefixItems": [inner, inner]},
            "properties": lambda inner: has("a", inner),
            "two properties": lambda inner: {"properties": {"a": inner, "b": inner}},
            "patternProperties": lambda inner: {"patternProperties": {"^a": inner}},
            "additionalProperties": lambda inner: {"additionalProperties": inner},
            "propertyNames": lambda inner: {"propertyNames": inner},
            "contains": lambda inner: {"contains": inner},
            "allOf": lambda inner: {"allOf": [inner]},
            "not": lambda inner: {"not": inner},
            "oneOf": lambda inner: {"oneOf": [inner, {"type": "string"}]},
            "if": lambda inner: {"if": inner, "then": {"type": "string"}},
            "unevaluatedItems": lambda inner: {"unevaluatedItems": inner},
        }.items()
    },
}
