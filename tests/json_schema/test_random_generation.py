"""Random generation under MaskBench schemas always ends, without dead ends, in an instance of the schema.

Walks take random bytes with a bias to close; a walk that has become long is ended by the matcher's own shortest
completion. A result counts as wrong when both validators refuse it (each has patterns that it judges in its own way),
and numbers beyond what floats hold are left to the constraint.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import ConstraintError
from support.random_text import random_text
from support.schema_fuzz import LONG_NUMBER

FILE = "maskbench-dev.jsonl.gz"
STRIDE = 120
WALKS = 3
LONG = 600


def judges(schema: Any) -> list[Any]:
    """The validators that can read a schema."""
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        found.append(kind(schema))
        with contextlib.suppress(ValueError, jsonschema_rs.ValidationError):
            found.append(jsonschema_rs.validator_for(schema))
    return found


def refused_by(judge: Any, value: Any) -> bool:
    try:
        return not judge.is_valid(value)
    except Exception:  # a pattern or reference that this validator cannot read
        return False


@pytest.mark.parametrize("order", ["schema", "any"])
def test_walks_end_in_instances(data_dir: Path, byte_vocabulary: _core.Vocabulary, order: Any) -> None:
    if not (data_dir / FILE).is_file():
        pytest.skip(f"no {FILE} in GRAMMASK_DATA")
    checked = 0
    with gzip.open(data_dir / FILE, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for number, line in enumerate(lines) if number % STRIDE == 7]
    for case in cases:
        schema = case["schema"]
        builder = _core.Builder(byte_vocabulary, max_seconds=600)
        try:
            compiled = builder.compile(JsonSchema(schema, property_order=order).lower(builder))
        except (ConstraintError, _core.ConstraintTooLargeError):
            continue
        known = judges(schema)
        for seed in range(WALKS):
            text = random_text(compiled.matcher(), random.Random(seed), closing=0.6, long=LONG)
            check = compiled.matcher()
            assert check.accept_bytes(text), case["id"]
            assert check.is_complete, case["id"]
            value = json.loads(text)
            if LONG_NUMBER.search(text):
                continue
            checked += 1
            assert not all(refused_by(judge, value) for judge in known), (case["id"], text)
    assert checked > len(cases)
