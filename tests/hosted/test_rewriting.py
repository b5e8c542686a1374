"""Schemas in the subsets of providers: what is sent is within the subset, and nothing valid is lost in shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grammask.hosted.rewriting import Inexpressible, rewrite
from grammask.hosted.subset import ANTHROPIC, AS_IT_IS, GOOGLE, OPENAI, Subset, subset_for

SUBSETS = [OPENAI, ANTHROPIC, GOOGLE]
NAMES = ["openai", "anthropic", "google"]
STRUCTURE = {
    "type",
    "properties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "required",
    "additionalProperties",
}

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "full name"},
        "age": {"type": "integer", "minimum": 0},
        "mail": {"type": ["string", "null"], "format": "email"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every schema within a schema."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for keyword in ("properties", "$defs"):
        for part in schema.get(keyword, {}).values():
            yield from nodes(part)
    for part in [*schema.get("anyOf", []), *schema.get("prefixItems", [])]:
        yield from nodes(part)
    for keyword in ("items", "additionalProperties"):
        yield from nodes(schema.get(keyword))


def is_within(schema: Any, subset: Subset) -> None:
    assert subset.keywords is not None
    for node in nodes(schema):
        assert set(node) <= STRUCTURE | subset.keywords, node
        if node.get("type") == "object":
            if subset.closed:
                assert node["additionalProperties"] is False
            if subset.all_required:
                assert set(node["required"]) == set(node["properties"])
        if not subset.type_lists:
            assert not isinstance(node.get("type"), list)


@pytest.mark.parametrize("subset", SUBSETS, ids=NAMES)
def test_a_record(subset: Subset) -> None:
    rewritten = rewrite(PERSON, subset)
    is_within(rewritten.schema, subset)
    assert ("/properties/name", "minLength") in rewritten.dropped
    assert ("/properties/tags", "uniqueItems") in rewritten.dropped
    assert not rewritten.wrapped


SCALARS = st.sampled_from(
    [
        {"type": "string", "maxLength": 3},
        {"type": "integer", "minimum": 1},
        {"type": ["number", "null"]},
        {"enum": ["a", 1, None]},
        {"const": "x"},
        {"type": "boolean"},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"allOf": [{"type": "string"}, {"pattern": "^a"}]},
    ]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items, "minItems": 2}, inner)
        | st.builds(
            lambda members, required, closed: {
                "type": "object",
                "properties": members,
                "required": sorted(required & members.keys()),
                **({"additionalProperties": False} if closed else {}),
            },
            st.dictionaries(st.sampled_from(["a", "b/c", "d~e"]), inner, min_size=1, max_size=3),
            st.sets(st.sampled_from(["a", "b/c", "d~e"])),
            st.booleans(),
        )
        | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2))
        | st.builds(
            lambda parts: {"type": "array", "prefixItems": parts, "items": False},
            st.lists(inner, min_size=1, max_size=2),
        )
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(SCHEMAS, st.sampled_from(SUBSETS))
def test_what_is_sent_is_within_the_subset(schema: Any, subset: Subset) -> None:
    try:
        rewritten = rewrite(schema, subset)
    except Inexpressible:
        assume(False)
    is_within(rewritten.schema, subset)
    jsonschema.Draft202012Validator.check_schema(rewritten.schema)


@pytest.mark.parametrize(
    ("schema", "received", "meant"),
    [
        (PERSON, {"name": "A", "age": None, "mail": None, "tags": ["x"]}, {"name": "A", "mail": None, "tags": ["x"]}),
        ({"type": "array", "items": {"type": "integer"}}, {"value": [1, 2]}, [1, 2]),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            {"value": [{"a": None}, {"a": 1}]},
            [{}, {"a": 1}],
        ),
        (
            {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}}}},
            {"value": {"t": {"t": None}}},
            {"t": {}},
        ),
        ({"type": "object", "properties": {"a/b": {"type": "integer"}}}, {"a/b": None}, {}),
    ],
)
def test_the_way_back(schema: Any, received: Any, meant: Any) -> None:
    rewritten = rewrite(schema, OPENAI)
    jsonschema.validate(received, rewritten.schema)
    restored = rewritten.restore(received)
    assert restored == meant
    jsonschema.validate(restored, schema)


@pytest.mark.parametrize(
    ("schema", "subset"),
    [
        (True, OPENAI),
        ({}, OPENAI),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, OPENAI),
        ({"type": "array"}, OPENAI),
        ({"type": "object", "properties": {"a": {}}}, OPENAI),
        ({"$ref": "other.json"}, OPENAI),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}, ANTHROPIC),
        ({"enum": [[1], [2]]}, ANTHROPIC),
    ],
)
def test_what_cannot_be_said(schema: Any, subset: Subset) -> None:
    with pytest.raises(Inexpressible):
        rewrite(schema, subset)


def test_tuples_become_arrays_of_alternatives() -> None:
    rewritten = rewrite(
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}, OPENAI
    )
    inner = rewritten.schema["properties"]["value"]
    assert inner["items"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert inner["maxItems"] == 2
    assert ("", "prefixItems") in rewritten.dropped


@pytest.mark.parametrize("subset", SUBSETS, ids=NAMES)
@pytest.mark.parametrize("value", [{"a": [1, "x"], "b": {}}, {"list": []}, {"deep": {"er": [True, None]}}])
def test_constants_that_are_objects_are_said_by_their_members(value: Any, subset: Subset) -> None:
    rewritten = rewrite({"const": value}, subset)
    is_within(rewritten.schema, subset)
    jsonschema.validate({"value": value} if rewritten.wrapped else value, rewritten.schema)


def test_engines_of_ones_own_get_the_schema_as_it_is() -> None:
    schema = {"type": "string", "minLength": 2, "not": {"const": "aa"}}
    assert rewrite(schema, AS_IT_IS).schema == schema
    assert subset_for("vllm") == subset_for("llama.cpp") == AS_IT_IS
    assert subset_for("openai/responses") == OPENAI
