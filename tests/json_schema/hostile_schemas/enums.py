"""Many constants, and items that differ among many."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from json_schema.hostile_schemas.row import COMPILED, EITHER, EMPTY, TOO_LARGE, Row, nested, word


def records(count: int) -> list[dict[str, Any]]:
    return [{"name": word(i), "number": i, "tags": [word(i), None, i % 2 == 0]} for i in range(count)]


ENUMS = {
    "10,000 strings": Row(lambda: {"enum": [word(i) for i in range(10_000)]}, COMPILED),
    "100,000 strings": Row(lambda: {"enum": [word(i) for i in range(100_000)]}, COMPILED),
    "100,000 strings, every spelling": Row(
        lambda: {"enum": [word(i) for i in range(100_000)]}, EITHER, options={"escapes": "all"}
    ),
    "100,000 numbers": Row(lambda: {"enum": list(range(0, 300_000, 3))}, EITHER),
    "10,000 decimals": Row(lambda: {"enum": [Decimal(i) / 7 for i in range(10_000)]}, EITHER),
    "10,000 objects": Row(lambda: {"enum": records(10_000)}, EITHER),
    "100,000 objects": Row(lambda: {"enum": records(100_000)}, EITHER),
    "100,000 arrays": Row(lambda: {"enum": [[i, word(i)] for i in range(100_000)]}, EITHER),
    "negated 10,000 strings": Row(lambda: {"not": {"enum": [word(i) for i in range(10_000)]}}, EITHER),
    "negated 10,000 numbers": Row(lambda: {"type": "integer", "not": {"enum": list(range(10_000))}}, EITHER),
    "negated 1,000 objects": Row(lambda: {"type": "object", "not": {"enum": records(1_000)}}, EITHER),
    "negated 1,000 arrays": Row(lambda: {"type": "array", "not": {"enum": [[i] for i in range(1_000)]}}, EITHER),
    "10,000 strings and a pattern": Row(
        lambda: {"enum": [word(i) for i in range(10_000)], "pattern": "^(a|b).*[0-9]{3}"}, EITHER
    ),
    "100,000 strings and a length": Row(
        lambda: {"enum": [word(i) for i in range(100_000)], "minLength": 10, "maxLength": 20}, EITHER
    ),
    "unique items out of 10,000 strings": Row(
        lambda: {
            "type": "array",
            "items": {"enum": [word(i) for i in range(10_000)]},
            "uniqueItems": True,
            "minItems": 100,
        },
        EITHER,
    ),
    "unique items, all of 10,000 strings": Row(
        lambda: {
            "type": "array",
            "items": {"enum": [word(i) for i in range(10_000)]},
            "uniqueItems": True,
            "minItems": 10_000,
        },
        EITHER,
    ),
    "unique items, one too many": Row(
        lambda: {
            "type": "array",
            "items": {"enum": [word(i) for i in range(10_000)]},
            "uniqueItems": True,
            "minItems": 10_001,
        },
        EMPTY | TOO_LARGE,
    ),
    "unique objects": Row(
        lambda: {"type": "array", "items": {"enum": records(1_000)}, "uniqueItems": True, "minItems": 900}, EITHER
    ),
    "unique items nested": Row(
        lambda: nested(
            12, lambda inner: {"type": "array", "items": inner, "uniqueItems": True, "minItems": 2}, {"type": "boolean"}
        ),
        EITHER | EMPTY,
    ),
    "unique whole numbers in a wide range": Row(
        lambda: {
            "items": {"type": "integer", "minimum": 0, "maximum": 10**9},
            "type": "array",
            "uniqueItems": True,
            "minItems": 10**6,
        },
        EITHER,
    ),
    "contains each of 1,000": Row(lambda: {"allOf": [{"contains": {"const": i}} for i in range(1_000)]}, EITHER),
    "enum of keys": Row(
        lambda: {"propertyNames": {"enum": [word(i) for i in range(10_000)]}, "minProperties": 10_000}, EITHER
    ),
    "a key for each of 100,000": Row(
        lambda: {"propertyNames": {"enum": [word(i) for i in range(100_000)]}, "type": "object"}, EITHER
    ),
}
