"""The report of what a schema enforces."""

from __future__ import annotations

from typing import Any

from grammask.constraints.json_schema import JsonSchema, explain


def statuses(schema: Any, **options: Any) -> dict[str, str]:
    entries = explain(JsonSchema(schema, **options))
    assert all(entry.how for entry in entries)
    return {f"{entry.pointer}/{entry.keyword}": entry.status for entry in entries}


def test_each_keyword_is_listed_once() -> None:
    schema = {
        "title": "order",
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "kind": {"type": "string", "format": "no-such-format"},
            "a/b": {"then": {"type": "string"}},
        },
        "x-note": 1,
    }
    assert statuses(schema) == {
        "/title": "annotation",
        "/type": "enforced",
        "/properties": "enforced",
        "/x-note": "annotation",
        "/properties/when/type": "enforced",
        "/properties/when/format": "enforced",
        "/properties/kind/type": "enforced",
        "/properties/kind/format": "annotation",
        "/properties/a~1b/then": "annotation",
        "/properties/a~1b/then/type": "enforced",
    }


def test_drafts_and_options_decide() -> None:
    draft7 = "http://json-schema.org/draft-07/schema#"
    schema = {"$schema": draft7, "$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": {"prefixItems": []}}}
    found = statuses(schema)
    assert found["/$ref"] == "enforced"
    assert found["/maximum"] == "annotation"
    assert found["/definitions/a/prefixItems"] == "annotation"
    assert statuses({"format": "date"}, format_assertion=False) == {"/format": "annotation"}
    assert statuses({"format": "byte"}) == {"/format": "annotation"}
    assert statuses({"format": "byte"}, format_assertion="all") == {"/format": "enforced"}


def test_a_slip_of_the_pen_is_named() -> None:
    schema = {"minlength": 1, "max_items": 2, "additionalproperties": False, "contentEncoding": "base64", "x-note": 1}
    how = {entry.keyword: entry.how for entry in explain(schema)}
    assert how["minlength"].endswith("did you mean minLength?")
    assert how["max_items"].endswith("did you mean maxItems?")
    assert how["additionalproperties"].endswith("did you mean additionalProperties?")
    assert "not enforced" in how["contentEncoding"]
    assert "did you mean" not in how["x-note"]


def test_what_cannot_be_compiled_is_refused_in_its_place() -> None:
    found = statuses({"properties": {"a": {"pattern": "(a)\\1"}, "b": {"type": "string"}}})
    assert found["/properties/a/pattern"] == "refused"
    assert found["/properties/b/type"] == "enforced"
    draft4 = "http://json-schema.org/draft-04/schema#"
    found = statuses({"$schema": draft4, "uniqueItems": True, "not": {"items": {"type": "integer"}}})
    assert found["/uniqueItems"] == "refused"
