"""Schemas made to hurt: each is answered with a result or a clear error."""

from __future__ import annotations

import contextlib
import json
from importlib import import_module
from typing import Any

import pytest

from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import (
    ConstraintSyntaxError,
    ConstraintTooLarge,
    UnsatisfiableConstraint,
    UnsupportedConstraint,
)


def nested(depth: int, wrap: Any) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


DEEP = {
    "items": lambda inner: {"type": "array", "items": inner},
    "properties": lambda inner: {"properties": {"a": inner}, "required": ["a"]},
    "allOf": lambda inner: {"allOf": [inner]},
    "not": lambda inner: {"not": inner},
    "anyOf": lambda inner: {"anyOf": [inner, {"type": "string"}]},
    "if": lambda inner: {"if": inner, "then": {"type": "string"}},
}


@pytest.mark.parametrize("keyword", DEEP)
def test_deep_nesting_is_answered(acceptor: Any, keyword: str) -> None:
    with pytest.raises(ConstraintTooLarge):
        acceptor(nested(100_000, DEEP[keyword]))
    compiled = acceptor(nested(30, DEEP[keyword]))
    assert compiled.value(nested(30, lambda inner: [inner])) in (True, False)


def test_deep_text_is_answered() -> None:
    with pytest.raises(ConstraintTooLarge):
        JsonSchema('{"not":' * 100_000 + "{}" + "}" * 100_000)


def test_exponential_combinations_are_answered(acceptor: Any) -> None:
    choice = {"anyOf": [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(8)]}
    schema = {"type": "object", "allOf": [{"anyOf": [*choice["anyOf"], {"minProperties": n}]} for n in range(2, 20)]}
    with contextlib.suppress(ConstraintTooLarge):
        acceptor(schema)


def test_doubling_allof_is_answered(acceptor: Any) -> None:
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for level in range(1, 60):
        reference = {"$ref": f"#/$defs/d{level - 1}"}
        definitions[f"d{level}"] = {"allOf": [reference, reference], "anyOf": [reference, reference]}
    compiled = acceptor({"$ref": "#/$defs/d59", "$defs": definitions})
    assert compiled.value(1)
    assert not compiled.value("a")


def test_doubling_oneof_is_answered(acceptor: Any) -> None:
    schema: Any = {"type": "integer"}
    for level in range(12):
        schema = {"oneOf": [{"properties": {"a": schema}}, {"properties": {"b": schema}, "minProperties": level}]}
    with contextlib.suppress(ConstraintTooLarge):
        acceptor(schema)


def test_ten_thousand_choices(acceptor: Any) -> None:
    compiled = acceptor({"enum": [f"value {i}" for i in range(10_000)]})
    assert compiled.value("value 9999")
    assert not compiled.value("value 10000")
    compiled = acceptor({"enum": list(range(0, 20_000, 2))})
    assert compiled.value(19_998)
    assert not compiled.value(9_999)


def test_ten_thousand_properties(acceptor: Any) -> None:
    schema = {
        "type": "object",
        "properties": {f"p{i}": {"type": "integer"} for i in range(5_000)},
        "required": ["p4999"],
    }
    compiled = acceptor(schema)
    assert compiled.value({"p0": 1, "p4999": 1})
    assert not compiled.value({"p0": 1})


def test_documents_of_megabytes(acceptor: Any) -> None:
    shared = {f"d{i}": {"type": "object", "properties": {"name": {"const": f"{i}" * 50}}} for i in range(20_000)}
    text = json.dumps(
        {"$defs": shared, "anyOf": [{"$ref": f"#/$defs/d{i}"} for i in (1, 19_999)], "required": ["name"]}
    )
    assert len(text) > 5_000_000
    compiled = acceptor(text)
    assert compiled.value({"name": "1" * 50})
    assert compiled.value({"name": "19999" * 50})
    assert not compiled.value({"name": "2" * 50})


def test_counts_of_a_million(acceptor: Any) -> None:
    compiled = acceptor({"type": "array", "items": {"type": "integer"}, "minItems": 10**6, "maxItems": 10**6})
    assert not compiled.value([1] * 100)
    compiled = acceptor({"type": "string", "maxLength": 10**6})
    assert compiled.value("a" * 1_000)
    compiled = acceptor({"type": "object", "maxProperties": 10**6})
    assert compiled.value({"a": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}, "$ref": "#/$defs/a"},
    ],
)
def test_references_without_progress(acceptor: Any, schema: Any) -> None:
    with pytest.raises(UnsupportedConstraint, match="leads back to itself") as error:
        acceptor(schema)
    assert error.value.pointer is not None


UNSATISFIABLE: list[tuple[Any, str]] = [
    (False, ""),
    ({"type": "string", "minLength": 3, "maxLength": 2}, ""),
    ({"type": "string", "pattern": "^a$", "minLength": 2}, ""),
    ({"type": "integer", "minimum": 5, "exclusiveMaximum": 6, "multipleOf": 2}, ""),
    ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, ""),
    ({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": False}, "required": ["b"]}},
      "required": ["a"]}, "/properties/a"),
    ({"type": "object", "additionalProperties": False, "required": ["a"]}, ""),
    ({"type": "array", "contains": {"type": "string"}, "items": {"type": "integer"}}, ""),
    ({"type": "array", "items": False, "minItems": 1}, ""),
    ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3}, ""),
    ({"$defs": {"a": {"type": "object", "properties": {"n": {"$ref": "#/$defs/a"}}, "required": ["n"]}},
      "$ref": "#/$defs/a"}, "/$defs/a"),
    ({"type": "object", "minProperties": 2, "propertyNames": {"enum": ["a"]}}, ""),
    ({"type": "object", "patternProperties": {"^a": {}}, "minProperties": 2, "maxProperties": 1}, ""),
    ({"type": "object", "dependentRequired": {"a": ["b"]}, "required": ["a"], "maxProperties": 1}, ""),
    ({"enum": []}, ""),
    ({"allOf": [{"const": 1}, {"const": 2}]}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer"), UNSATISFIABLE, ids=range(len(UNSATISFIABLE)))
@pytest.mark.parametrize("order", ["any", "schema"])
def test_unsatisfiable_schemas(acceptor: Any, schema: Any, pointer: str, order: str) -> None:
    with pytest.raises(UnsatisfiableConstraint) as error:
        acceptor(schema, property_order=order)
    assert error.value.pointer == pointer


MALFORMED: list[tuple[Any, str]] = [
    ({"type": "strin"}, "/type"),
    ({"type": 3}, "/type"),
    ({"properties": []}, "/properties"),
    ({"properties": {"a/b": 3}}, "/properties/a~1b"),
    ({"required": "a"}, "/required"),
    ({"minLength": -1}, "/minLength"),
    ({"maxItems": "2"}, "/maxItems"),
    ({"minimum": "2"}, "/minimum"),
    ({"minimum": float("nan")}, "/minimum"),
    ({"multipleOf": 0}, "/multipleOf"),
    ({"pattern": "^(ab[c$"}, "/pattern"),
    ({"patternProperties": {"(": {}}}, "/patternProperties/("),
    ({"allOf": {}}, "/allOf"),
    ({"allOf": []}, "/allOf"),
    ({"enum": 1}, "/enum"),
    ({"uniqueItems": 1}, "/uniqueItems"),
    ({"$ref": "#/nowhere"}, ""),
    ({"$ref": "#nowhere"}, ""),
    ({"$ref": 5}, "/$ref"),
    ({"dependentRequired": {"a": "b"}}, "/dependentRequired"),
]


@pytest.mark.parametrize(("schema", "pointer"), MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_schemas(acceptor: Any, schema: Any, pointer: str) -> None:
    with pytest.raises(ConstraintSyntaxError) as error:
        acceptor(schema)
    assert error.value.pointer == pointer


def test_references_to_unknown_documents(acceptor: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://example.com/other#/$defs/x"}}}
    with pytest.raises(UnsupportedConstraint, match="registry") as error:
        acceptor(schema)
    assert error.value.pointer == "/properties/a"
    other = {"$defs": {"x": {"type": "integer"}}}
    compiled = acceptor(schema, registry={"http://example.com/other": other})
    assert compiled.value({"a": 1})
    assert not compiled.value({"a": "x"})


def test_reports_on_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("grammask.constraints.json_schema.explain"), "SECONDS", 0.1)
    excluded = [{"a": i, "b": [i], "c": {"d": i}} for i in range(1_000)]
    report = JsonSchema({"type": "object", "not": {"enum": excluded}}).report()
    assert report[-1].status == "refused"
    assert "time limit" in report[-1].how


def test_reports_on_what_has_no_end() -> None:
    cycle: dict[str, Any] = {"type": "object"}
    cycle["properties"] = {"a": cycle}
    doubled = nested(40, lambda inner: {"anyOf": [inner, inner]})
    for schema in (cycle, doubled):
        with pytest.raises(ConstraintTooLarge):
            JsonSchema(schema).report()
    report = JsonSchema({"properties": {1: True}}).report()
    assert report[-1].status == "refused"


def test_text_that_is_no_schema() -> None:
    with pytest.raises(ConstraintSyntaxError):
        JsonSchema("{")
    assert JsonSchema(json.dumps({"type": "integer"})).schema == {"type": "integer"}
