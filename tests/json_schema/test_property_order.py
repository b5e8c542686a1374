"""The order of properties that docs/json-schema.md describes, as a table that the tests' own ordering meets too."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from support.property_order import Order

DRAFT7 = "http://json-schema.org/draft-07/schema#"

# (schema, objects whose values are all 1: names in their order, and behind a bar those that may follow in any order)
ORDERS: list[tuple[Any, list[str]]] = [
    ({"properties": {"b": {}, "a": {}}}, ["ba", "ba|c", "a|c", "ba|cd"]),
    ({"required": ["c", "a"], "properties": {"b": {}}}, ["bca", "bca|d", "ca|"]),
    ({"const": {"b": 1, "a": 1}, "properties": {"a": {}, "b": {}}}, ["ba"]),
    ({"properties": {"a": {}}, "anyOf": [{"enum": [{"b": 1, "a": 1}]}, {"required": ["c"]}]}, ["ba", "ac|b"]),
    ({"properties": {"a": {}}, "if": {"required": ["b"]}, "then": {"const": {"b": 1, "a": 1}}}, ["ba", "a|c"]),
    # applicators, where they stand
    ({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}}, ["ab"]),
    ({"properties": {"b": {}}, "allOf": [{"properties": {"a": {}}}]}, ["ba"]),
    ({"$ref": "#/$defs/x", "properties": {"b": {}}, "$defs": {"x": {"properties": {"a": {}}}}}, ["ab"]),
    ({"properties": {"c": {}}, "if": {"properties": {"b": {}}, "required": ["b"]}, "then": {"properties": {"a": {}}}},
     ["cba", "c|a"]),
    # ... but conditions behind all that holds without them
    ({"if": {"required": ["b"]}, "then": {"properties": {"a": {}}}, "properties": {"c": {}}}, ["cba|d", "c|ad"]),
    ({"allOf": [{"if": {"required": ["b"]}, "then": {"properties": {"a": {}}}}], "properties": {"c": {}, "a": {}}},
     ["cab|d", "ca|d"]),
    ({"allOf": [{"if": {"required": ["b"]}, "then": {"if": {"required": ["d"]}}, "else": {"required": ["c"]}},
                {"dependentSchemas": {"a": {"properties": {"e": {}}}}}]}, ["bae|c", "aec"]),
    # dependencies name what they depend on, also where nothing follows from it
    ({"dependentSchemas": {"b": {"properties": {"a": {}}}}}, ["ba|c", "|ac"]),
    ({"dependentSchemas": {"b": True}}, ["b|ac", "|ac"]),
    ({"$schema": DRAFT7, "dependencies": {"b": {}}}, ["b|ac", "|ac"]),
    ({"dependentRequired": {"b": ["a"]}}, ["ba|c", "a|c"]),
    ({"required": ["d"], "dependentRequired": {"b": ["a"], "d": ["c"]}}, ["dbac", "dac|e"]),
    ({"if": {"required": ["d"]}, "else": {"dependentRequired": {"b": ["e"]}}, "dependentRequired": {"b": ["a"]}},
     ["bae|c", "a|c"]),
    ({"allOf": [{"if": {"required": ["b"]}, "then": {"required": ["c"]}}], "required": ["a"]}, ["bac", "a|cd"]),
    # names that only a negation speaks of have no place, not even those that must be there
    ({"not": {"properties": {"a": {"const": 2}}, "required": ["b"]}}, ["|abc", "|ac"]),
    ({"not": {"properties": {"b": False, "c": True}, "required": ["b"]}, "dependentRequired": {"c": ["a"]}},
     ["ca|b", "a|bd"]),
    ({"oneOf": [{"properties": {"b": False, "c": {}}, "required": ["b"]}, {"dependentRequired": {"c": ["a"]}}]},
     ["ca|b", "a|bd"]),
    ({"oneOf": [{"properties": {"c": {"const": 2}}}, {}], "dependentRequired": {"c": ["b"]}}, ["cb|a"]),
    ({"oneOf": [{"dependentRequired": {"a": ["c"]}}, {"not": {"required": ["b", "c"]}}]}, ["|ab", "|abd"]),
    ({"oneOf": [{}, {"anyOf": [{"type": "null"}, {"dependentSchemas": {"b": False}}]},
                {"dependentSchemas": {"a": {"type": "null"}}}]},
     ["|ab", "|abc"]),
    ({"not": {"dependentSchemas": {"a": {"required": ["b"]}}}}, ["|ac", "|acd"]),
    # ... while two negations are none
    ({"not": {"not": {"properties": {"b": {}}}}}, ["b|ac"]),
    ({"not": {"anyOf": [{"not": {"required": ["b"]}}, {"not": {"required": ["a"]}}]}, "required": ["c"]},
     ["cba", "cba|d"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "objects"), ORDERS, ids=range(len(ORDERS)))
def test_orders(acceptor: Any, schema: Any, objects: list[str]) -> None:
    compiled = acceptor(schema)
    for names in objects:
        placed, _, free = names.partition("|")
        expected = {(*placed, *rest) for rest in permutations(free)}
        written = [dict.fromkeys(order, 1) for order in permutations(placed + free)]
        assert {tuple(value) for value in written if compiled.value(value)} == expected, names
        computed = [Order(schema, together=together).of(value) for value in written for together in (False, True)]
        assert {tuple(value) for value in computed} <= expected, names
