"""Formats that the caller defines: name, pattern, strings that are in and strings that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

import grammask
from grammask import ConstraintError, JsonSchema
from grammask.validation.json_problems import JsonProblems

VOCABULARY = grammask.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
SKU = {"sku": "[A-Z]{3}-[0-9]{4}"}


def accepts(constraint: JsonSchema, value: Any) -> bool:
    matcher = grammask.compile(constraint, VOCABULARY).matcher()
    return matcher.accept_bytes(json.dumps(value, ensure_ascii=False).encode()) and matcher.is_complete


ROWS: list[tuple[dict[str, str], dict[str, Any], list[Any], list[Any]]] = [
    (SKU, {"type": "string", "format": "sku"}, ["ABC-1234"], ["", "abc-1234", "ABC-12345", "xABC-1234", 5]),
    # Only strings are meant.
    (SKU, {"format": "sku"}, ["ABC-1234", 5, None], ["ABC"]),
    # Alternatives belong together, and other keywords hold as well.
    ({"x": "a|bc"}, {"type": "string", "format": "x"}, ["a", "bc"], ["ac", "b", "abc"]),
    ({"x": "a*"}, {"type": "string", "format": "x", "minLength": 2, "maxLength": 3}, ["aa", "aaa"], ["a", "aaaa"]),
    # One's own meaning goes before the known one.
    ({"date": "[0-9]{4}"}, {"type": "string", "format": "date"}, ["2024"], ["2024-01-01"]),
    ({"quoted": '"[^"]*"'}, {"type": "string", "format": "quoted"}, ['"ü"', '""'], ['"', "ü"]),
    # Others keep theirs.
    (SKU, {"type": "string", "format": "date"}, ["2024-01-01"], ["2024"]),
    (SKU, {"type": "string", "format": "other"}, ["anything"], []),
]


@pytest.mark.parametrize("row", ROWS, ids=[json.dumps(row[1]) for row in ROWS])
def test_strings(row: tuple[dict[str, str], dict[str, Any], list[Any], list[Any]]) -> None:
    formats, schema, right, wrong = row
    constraint = JsonSchema(schema, formats=formats)
    for value, expected in [*((value, True) for value in right), *((value, False) for value in wrong)]:
        assert accepts(constraint, value) is expected, value
        assert JsonProblems(constraint).accepts(value) is expected, value


def test_the_report_tells() -> None:
    schema = {"properties": {"a": {"format": "sku"}, "b": {"format": "other"}}}
    entries = {entry.pointer: entry for entry in JsonSchema(schema, formats=SKU).report() if entry.keyword == "format"}
    assert entries["/properties/a"].status == "enforced"
    assert entries["/properties/a"].how == "the pattern given for sku"
    assert entries["/properties/b"].status == "annotation"


def test_without_assertion_they_are_annotations() -> None:
    constraint = JsonSchema({"type": "string", "format": "sku"}, formats=SKU, format_assertion=False)
    assert accepts(constraint, "anything")


def test_a_malformed_pattern_is_refused_at_its_place() -> None:
    schema = {"properties": {"a": {"format": "sku"}}}
    with pytest.raises(ConstraintError, match="/properties/a/format"):
        grammask.compile(JsonSchema(schema, formats={"sku": "[A-"}), VOCABULARY)
    with pytest.raises(TypeError, match="formats\\['sku'\\] is the text of a pattern, not int"):
        JsonSchema(schema, formats={"sku": 5})  # type: ignore[dict-item]
