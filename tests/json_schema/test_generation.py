"""Random generation from the constraint alone always ends, without dead ends, in an instance of the schema."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from support.random_text import random_text

SCHEMAS: list[Any] = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "kind": {"enum": ["a", "b", "cde"]},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": True, "minItems": 2},
            "size": {"type": "integer", "minimum": 3, "maximum": 77},
        },
        "required": ["name", "tags", "size"],
        "additionalProperties": False,
    },
    {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}},
    },
    {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 99},
        "contains": {"const": 7},
        "maxItems": 4,
    },
    {"type": "array", "items": {"enum": [1, 2, 3, "x"]}, "uniqueItems": True, "minItems": 4},
    {"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "minProperties": 6},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"required": ["a"]}, "minProperties": 1},
    {"type": "string", "format": "date-time"},
    {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "integer", "minimum": 5, "maximum": 20}]},
]


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_random_generation_ends_in_an_instance(acceptor: Any, number: int, order: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = SCHEMAS[number]
    validator = jsonschema.Draft202012Validator(schema)
    compiled = acceptor(schema, property_order=order)
    for seed in range(20):
        text = random_text(compiled.matcher(), random.Random(seed), ending=0.3, closing=0.6, long=50_000)
        assert len(text) < 50_000
        value = json.loads(text)
        assert validator.is_valid(value), value
