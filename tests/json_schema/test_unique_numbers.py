"""Unique arrays of numbers whose exponents no automaton holds: such items are compared when they are complete."""

from __future__ import annotations

import pytest

import grammask
from grammask import JsonSchema

LETTERS: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), None]
SCHEMA = {"type": "array", "uniqueItems": True, "items": {"type": "number"}}


@pytest.fixture(scope="module")
def compiled() -> grammask.CompiledConstraint:
    constraint = JsonSchema(SCHEMA, numbers="any")
    return grammask.compile(constraint, grammask.Vocabulary.from_tokens(LETTERS, eos_token_ids=[256]))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("[3e613,3e613]", False),
        ("[3e613,30e612]", False),
        ("[3e613,3.0e613]", False),
        ("[3e613,4,3E+613]", False),
        ("[3e613,3" + "0" * 613 + "]", False),
        ("[3" + "0" * 613 + ",3e613]", False),
        ("[2e-836,2,2e-836]", False),
        ("[3e613,4e613]", True),
        ("[3e613,3e61,3e6]", True),
        ("[3e613,3" + "0" * 612 + "]", True),
        ("[2e-836,2e-837]", True),
    ],
)
def test_large_exponents(compiled: grammask.CompiledConstraint, text: str, accepted: bool) -> None:
    assert compiled.matcher().accept_bytes(text.encode()) == accepted


def test_outputs_go_on_after_a_large_exponent(compiled: grammask.CompiledConstraint) -> None:
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"[3e613,")
    assert b"0" in matcher.next_bytes()
    completion = matcher.shortest_completion()
    assert completion is not None
    assert matcher.accept_bytes(bytes(completion))
    assert matcher.is_complete
