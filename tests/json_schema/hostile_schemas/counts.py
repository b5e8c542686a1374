"""Counts of items, characters and members that are large."""

from __future__ import annotations

import functools

from json_schema.hostile_schemas.row import EITHER, EMPTY, Row

MILLION = 10**6


COUNTS = {
    **{
        f"{name} of a million": Row(functools.partial(dict, part), EITHER)
        for name, part in {
            "minItems": {"type": "array", "minItems": MILLION},
            "maxItems": {"type": "array", "maxItems": MILLION},
            "exact items": {"type": "array", "items": {"const": 1}, "minItems": MILLION, "maxItems": MILLION},
            "minLength": {"type": "string", "minLength": MILLION},
            "maxLength": {"type": "string", "maxLength": MILLION},
            "exact length": {"type": "string", "minLength": MILLION, "maxLength": MILLION},
            "length and pattern": {"type": "string", "maxLength": MILLION, "pattern": "a.*b"},
            "length and format": {"type": "string", "minLength": MILLION, "format": "uri"},
            "minProperties": {"type": "object", "minProperties": MILLION},
            "maxProperties": {"type": "object", "maxProperties": MILLION, "minProperties": 1_000},
            "minContains": {"type": "array", "contains": {"const": 1}, "minContains": MILLION},
            "maxContains": {"type": "array", "contains": {"const": 1}, "maxContains": MILLION},
            "all counts": {
                "type": "array",
                "contains": {"const": 1},
                "minContains": MILLION,
                "maxContains": MILLION + 1,
                "minItems": 2 * MILLION,
                "maxItems": 3 * MILLION,
            },
            "unique items": {"type": "array", "uniqueItems": True, "minItems": MILLION},
            "property names": {"propertyNames": {"minLength": MILLION}, "minProperties": 2},
            "items of a length": {
                "type": "array",
                "minItems": MILLION,
                "items": {"type": "string", "minLength": MILLION},
            },
        }.items()
    },
    "a count of 20 digits": Row(lambda: {"type": "string", "minLength": 10**20}, EITHER),
    "a count of 300 digits": Row(lambda: {"type": "array", "minItems": 10**300, "maxItems": 10**300}, EMPTY),
    "a count of 300 digits, contains": Row(
        lambda: {"type": "array", "contains": {"const": 1}, "minContains": 10**300}, EITHER
    ),
    "a count of 300 digits, properties": Row(lambda: {"type": "object", "minProperties": 10**300}, EITHER | EMPTY),
    "a hundred lengths": Row(
        lambda: {"type": "string", "oneOf": [{"minLength": 7 * i, "maxLength": 7 * i + MILLION} for i in range(100)]},
        EITHER | EMPTY,
    ),
    "lengths of a sum": Row(
        lambda: {"type": "string", "allOf": [{"pattern": f"^(.{{{n}}})*$"} for n in (97, 89, 83, 79, 73)]}, EITHER
    ),
}
