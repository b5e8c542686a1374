"""``grammask explain``: the report in columns and as JSON, and what cannot be enforced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_columns(run: Callable[..., Any]) -> None:
    result = run("explain", "--schema", "record.json")
    assert result.code == 0
    rows = [line.split(maxsplit=3) for line in result.out.splitlines()]
    assert ["(root)", "required", "enforced"] in [row[:3] for row in rows]
    assert ["/properties/count", "maximum", "enforced"] in [row[:3] for row in rows]
    assert len({line.index(row[1], len(row[0])) for line, row in zip(result.out.splitlines(), rows, strict=True)}) == 1
    assert "0 annotations" in result.err


def test_json(run: Callable[..., Any]) -> None:
    schema = '{"type": "array", "items": {"const": 1, "description": "one"}, "minItems": 2, "maxItems": 2}'
    result = run("explain", "--json-output", "--whitespace", "compact", "--schema", schema)
    report = {(entry["pointer"], entry["keyword"]): entry["status"] for entry in json.loads(result.out)}
    assert report[("/items", "description")] == "annotation"
    assert report[("/items", "const")] == report[("", "minItems")] == "enforced"
    assert "1 annotations" in result.err


def test_types(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "explained_types.py").write_text(
        "from typing import Literal\nAnswer = Literal['yes']\n", encoding="utf-8"
    )
    result = run("explain", "--type", "explained_types:Answer", "--whitespace", "compact")
    assert result.code == 0
    assert result.out.split()[:3] == ["(root)", "enum", "enforced"]
    assert "every output begins with '\"yes\"'" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "no schema"),
        (["--schema", "absent.json"], 2, "cannot read absent.json"),
        (["--schema", '{"type": "integer", "minimum": 2, "maximum": 1}'], 3, "unsatisfiable constraint"),
        (["--schema", '{"type": "string", "pattern": "(a)\\\\1"}'], 3, "unsupported constraint: at /pattern"),
    ],
)
def test_errors(run: Callable[..., Any], arguments: list[str], code: int, message: str) -> None:
    result = run("explain", *arguments)
    assert result.code == code
    assert message in result.err
