"""Random schemas and instances: what the constraint accepts against what two validators accept.

A schema may be refused with an error; what compiles must agree with jsonschema and jsonschema-rs on every instance on
which they agree, in any order, and in the schema's order once keys are in the documented one. ``make fuzz`` looks at
more schemas.
"""

from __future__ import annotations

import os

import pytest

from grammask import _core

pytest.importorskip("jsonschema_rs")

from support import schema_fuzz

ROUNDS = int(os.environ.get("GRAMMASK_FUZZ_ROUNDS", "100"))
FIRST_SEED = int(os.environ.get("GRAMMASK_FUZZ_SEED", "0"))
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_random_schemas_agree_with_two_validators(byte_vocabulary: _core.Vocabulary, part: int) -> None:
    made = 0
    for seed in range(FIRST_SEED + part * ROUNDS, FIRST_SEED + (part + 1) * ROUNDS):
        compiled, found = schema_fuzz.judge(seed, byte_vocabulary)
        made += compiled
        if found:
            pytest.fail(str(schema_fuzz.shrunk(found[0], byte_vocabulary)))
    assert made > ROUNDS * 0.5
