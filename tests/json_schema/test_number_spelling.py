"""How numbers may be spelled: texts of bounded length by default, all that JSON allows with ``numbers="any"``."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import grammask
from grammask import JsonSchema

LETTERS: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), None]
VOCABULARY = grammask.Vocabulary.from_tokens(LETTERS, eos_token_ids=[256])
DRAFT4 = "http://json-schema.org/draft-04/schema#"
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}

# (schema, accepted, refused only by the bounded policy, refused by both)
CASES: list[tuple[Any, list[str], list[str], list[str]]] = [
    (
        INTEGER,
        ["0", "-0", "0.0", "1", "1.0", "-12", "12345678901234567890", "9" * 64, "1e5", "1.5E+3", "1E308", "1.5e1"],
        ["1.00", "9" * 65, "1e0005", "0e0", "1.0" + "0" * 40],
        ["1.5", "1e-1", "12e3", "01", "1.", "1e"],
    ),
    (
        NUMBER,
        ["0.0", "1.50", "1.5E-7", "1e-07", "1e+22", "0." + "0" * 27 + "1", "1." + "0" * 28, "-1.7976931348623157e+308"],
        ["1." + "0" * 29, "12e3", "0.5e3", "0e7", "1e-0007", "1e1000", "1" + "0" * 64],
        [".5", "1.e5", "+1"],
    ),
    ({"minimum": 0, "maximum": 100, **INTEGER}, ["7", "7.0", "1e2", "9.9e1"], ["7.00", "1e0002"], ["101", "1e3", "-1"]),
    ({"minimum": 10**100, **NUMBER}, ["1" + "0" * 100, "1e100", "9" * 117], ["9" * 118], ["1e99", "9" * 100]),
    # The least number above zero that can be spelled without an exponent has 28 places; behind 1.5 it is one further.
    (
        {"exclusiveMinimum": 0, "maximum": 1, **NUMBER},
        ["0." + "0" * 27 + "1", "1e-300"],
        ["0." + "0" * 28 + "1"],
        ["0", "0e1"],
    ),
    (
        {"exclusiveMinimum": 1.5, "exclusiveMaximum": 1.6, **NUMBER},
        ["1.5" + "0" * 27 + "1", "1.5" + "9" * 28, "1.55e0"],
        ["1.5" + "0" * 28 + "1"],
        ["1.5", "1.6"],
    ),
    ({"multipleOf": 0.01}, ["19.9", "19.90", "1.99e1", "3"], ["19.900"], ["0.001"]),
    ({"multipleOf": 0.5}, ["2.5", "2.50", "25.00"], ["2.500"], ["2.25"]),
    ({"const": 1.5}, ["1.5", "1.5e0", "1.5E+00"], ["1.50", "1.50e0"], ["1.51", "15e-1"]),
    ({"enum": [3, 100]}, ["3", "3.0", "100", "1e2", "1.0e+2"], ["3.00", "1.00e2"], ["4", "10e1"]),
    ({"const": 0}, ["0", "-0", "0.0"], ["0e0", "0.00"], ["1"]),
    ({"type": "number", "not": INTEGER}, ["1.5", "1.5e0", "1e-5"], ["15e-1", "1.5" + "0" * 28], ["1", "1.0", "1.5e1"]),
    ({"$schema": DRAFT4, **INTEGER}, ["1", "-0", "9" * 64], ["9" * 65], ["1.0", "1e1"]),
    ({"$schema": DRAFT4, "type": "number", "not": INTEGER}, ["1.0", "1e1", "1.5"], ["10e1", "0e1"], ["1"]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0]))
def test_spellings(case: tuple[Any, list[str], list[str], list[str]]) -> None:
    schema, both, any_only, neither = case
    for policy, accepted in (("bounded", [*both]), ("any", [*both, *any_only])):
        compiled = grammask.compile(JsonSchema(schema, numbers=policy), VOCABULARY)  # type: ignore[arg-type]
        for text in [*both, *any_only, *neither]:
            matcher = compiled.matcher()
            found = matcher.accept_bytes(text.encode()) and matcher.is_complete
            assert found is (text in accepted), (policy, text)


@pytest.mark.parametrize(
    "schema",
    [
        INTEGER,
        NUMBER,
        {"exclusiveMinimum": 0, "exclusiveMaximum": 1e-300, **NUMBER},
        {"exclusiveMinimum": 1e-30, "maximum": 1e-30 + 1e-46, **NUMBER},
        {"minimum": 1e300, **INTEGER},
        {"minimum": 1e300, "multipleOf": 7, **NUMBER},
        {"multipleOf": 1e-20, "exclusiveMinimum": 3, "exclusiveMaximum": 3.00001, **NUMBER},
        {"minimum": -5, "maximum": 5, "not": {"multipleOf": 0.1}, **NUMBER},
        {"minimum": 0, "maximum": 1e-28, "not": {"enum": [0, 1e-28]}, **NUMBER},
    ],
    ids=str,
)
def test_every_walk_ends(schema: Any) -> None:
    """Without any preference for the end, the longest number takes a bounded number of steps, and is an instance."""
    compiled = grammask.compile(JsonSchema(schema), VOCABULARY)
    for seed in range(20):
        rng = random.Random(seed)
        matcher, text = compiled.matcher(), b""
        while choices := [byte for byte in matcher.next_bytes() if byte is not None and chr(byte) not in " \t\r\n"]:
            zeros = [byte for byte in choices if byte == ord("0")]
            byte = zeros[0] if zeros and seed % 2 else rng.choice(choices)
            assert matcher.accept_bytes(bytes([byte]))
            text += bytes([byte])
            assert len(text) < 500
        assert matcher.is_complete
        value = Fraction(text.decode())
        assert "minimum" not in schema or value >= Fraction(str(schema["minimum"]))
        assert "maximum" not in schema or value <= Fraction(str(schema["maximum"]))
        assert "multipleOf" not in schema or not value % Fraction(str(schema["multipleOf"]))


def test_free_json_values_follow_the_policy() -> None:
    loose = grammask.compile(grammask.JsonValue(numbers="any"), VOCABULARY)
    bounded = grammask.compile(grammask.JsonValue(), VOCABULARY)
    text = b"[1." + b"0" * 40 + b"]"
    assert loose.matcher().accept_bytes(text)
    assert not bounded.matcher().accept_bytes(text)


def test_unknown_policy() -> None:
    with pytest.raises(ValueError, match='numbers is "bounded" or "any"'):
        JsonSchema(True, numbers="short")  # type: ignore[arg-type]
