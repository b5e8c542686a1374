"""Cases made after public bug reports on other engines: each must come out right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grammask.engine.errors import ConstraintError

REFUSED = {"purely-cyclic-ref", "bad-pattern-fails-closed"}
"""Schemas that must be refused with an error."""


def test_reported_cases(data_dir: Path, acceptor: Any) -> None:
    path = data_dir / "reported-cases.json"
    if not path.is_file():
        pytest.skip("GRAMMASK_DATA holds no reported-cases.json")
    cases = [case for case in json.loads(path.read_text(encoding="utf-8")) if case["kind"] == "json_schema"]
    assert len(cases) > 20
    wrong = []
    for case in cases:
        if case["id"] in REFUSED:
            with pytest.raises(ConstraintError) as error:
                acceptor(case["spec"])
            assert error.value.pointer is not None
            continue
        for order in ("any", "schema"):
            compiled = acceptor(case["spec"], property_order=order)
            wrong += [(case["id"], order, value) for value in case["valid"] if not compiled.value(value)]
            wrong += [(case["id"], order, value) for value in case["invalid"] if compiled.value(value)]
            wrong += [(case["id"], order, text) for text in case.get("valid_text", ()) if not compiled.text(text)]
            wrong += [(case["id"], order, text) for text in case.get("invalid_text", ()) if compiled.text(text)]
    assert wrong == []
