"""Random generation from the constraint alone always ends, without dead ends, in an instance of the schema."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

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
        random_ = random.Random(seed)
        matcher = compiled.matcher()
        text = bytearray()
        while not (matcher.is_complete and random_.random() < 0.3):
            allowed = matcher.next_bytes()
            if not allowed:
                break
            closing = [byte for byte in allowed if byte in b'"]}']
            plain = [byte for byte in allowed if 0x21 <= byte < 0x7F and byte != 0x5C]
            byte = random_.choice(closing if closing and random_.random() < 0.6 else plain or list(allowed))
            assert matcher.accept_bytes(bytes([byte]))
            text.append(byte)
            assert len(text) < 50_000
        assert matcher.is_complete, f"dead end after {bytes(text)!r}"
        value = json.loads(text)
        assert validator.is_valid(value), value
