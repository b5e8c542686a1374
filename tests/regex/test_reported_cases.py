"""The regular expressions among the cases that were reported as faults of other engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grammask.constraints.regex import Regex, lower_pattern
from grammask.engine.errors import ConstraintSyntaxError
from support.builders import make_builder


def cases(data_dir: Path, kind: str) -> list[dict[str, Any]]:
    path = data_dir / "reported-cases.json"
    if not path.is_file():
        pytest.skip("no reported-cases.json in GRAMMASK_DATA")
    return [case for case in json.loads(path.read_text(encoding="utf-8")) if case["kind"] == kind]


def test_regex_cases(data_dir: Path) -> None:
    found = cases(data_dir, "regex")
    assert found
    for case in found:
        builder = make_builder("native")
        expr = Regex(case["spec"]).lower(builder)
        for text in case["valid"]:
            assert builder.matches(expr, text.encode()), (case["id"], text)
        for text in case["invalid"]:
            assert not builder.matches(expr, text.encode()), (case["id"], text)


def test_patterns_of_schemas(data_dir: Path) -> None:
    """String schemas with a pattern only: the pattern inside a JSON string, in search."""
    found = [case for case in cases(data_dir, "json_schema") if set(case["spec"]) == {"type", "pattern"}]
    assert found
    for case in found:
        builder = make_builder("native")
        expr = lower_pattern(case["spec"]["pattern"], builder, spelling="json", search=True)
        for value in case["valid"]:
            for ascii_only in (False, True):
                spelling = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
                assert builder.matches(expr, spelling.encode()), (case["id"], value)
        for value in case["invalid"]:
            if isinstance(value, str):
                assert not builder.matches(expr, json.dumps(value)[1:-1].encode()), (case["id"], value)


def test_a_malformed_pattern_is_an_error() -> None:
    with pytest.raises(ConstraintSyntaxError):
        lower_pattern("^(ab[c$", make_builder("native"), search=True)
