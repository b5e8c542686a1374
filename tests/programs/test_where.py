"""Conditions against plain Python, exhaustively over short texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from grammask import where
from grammask.constraints.base import Constraint
from grammask.constraints.where import Integer
from grammask.engine.errors import ConstraintSyntaxError, UnsatisfiableConstraint
from grammask.validation.json_problems import accepts, compile_for_bytes

TEXTS = ["".join(text) for length in range(6) for text in itertools.product("ab \n", repeat=length)]


def is_clean(text: str) -> bool:
    """No blank at the end, at most one space at the beginning."""
    return text == text.rstrip(" \n") and (text == text.lstrip(" \n") or text[:1] == " " != text[1:2] != "\n")


ROWS: list[tuple[dict[str, Any], Callable[[str], bool]]] = [
    ({"chars": 3}, lambda t: len(t) == 3),
    ({"chars": (1, 2)}, lambda t: 1 <= len(t) <= 2),
    ({"chars": (4, None)}, lambda t: len(t) >= 4),
    ({"words": (1, 2)}, lambda t: 1 <= len(t.split()) <= 2 and is_clean(t)),
    ({"words": 2}, lambda t: len(t.split()) == 2 and is_clean(t)),
    ({"words": (0, 1)}, lambda t: t == "" or (len(t.split()) == 1 and is_clean(t))),
    ({"words": (2, None)}, lambda t: len(t.split()) >= 2 and is_clean(t)),
    ({"lines": 1}, lambda t: len(t.split("\n")) - t.endswith("\n") == 1 and t != ""),
    ({"lines": (0, 2)}, lambda t: len(t.split("\n")) - t.endswith("\n") <= 2),
    ({"starts": "ab"}, lambda t: t.startswith("ab")),
    ({"starts": ["a", " b"]}, lambda t: t.startswith(("a", " b"))),
    ({"ends": ["a", "\n"]}, lambda t: t.endswith(("a", "\n"))),
    ({"contains": "ab"}, lambda t: "ab" in t),
    ({"contains": ["aa", "b"]}, lambda t: "aa" in t and "b" in t),
    ({"excludes": ["ab", "\n"]}, lambda t: "ab" not in t and "\n" not in t),
    ({"one_of": ["a", "bb"]}, lambda t: t in ("a", "bb")),
    ({"not_in": ["a", "bb"]}, lambda t: t not in ("a", "bb")),
    ({"matches": "(ab)*"}, lambda t: re.fullmatch("(ab)*", t) is not None),
    (
        {"chars": (2, 4), "starts": "a", "excludes": "\n", "ends": "b"},
        lambda t: 2 <= len(t) <= 4 and t.startswith("a") and "\n" not in t and t.endswith("b"),
    ),
]


@pytest.mark.parametrize(("conditions", "holds"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_conditions(conditions: dict[str, Any], holds: Callable[[str], bool]) -> None:
    compiled = compile_for_bytes(where(**conditions))
    wrong = [text for text in TEXTS if accepts(compiled, text) != holds(text)]
    assert not wrong


@pytest.mark.parametrize(("low", "high"), [(None, None), (0, 0), (-12, 7), (95, 105), (None, -3), (1000, None)])
def test_whole_numbers(low: int | None, high: int | None) -> None:
    compiled = compile_for_bytes(Integer(low, high))
    for number in range(-150, 1200):
        inside = (low is None or number >= low) and (high is None or number <= high)
        assert accepts(compiled, str(number)) == inside
    for text in ("", "-", "-0", "00", "01", "+1", "1.0", "1e2", " 1"):
        assert not accepts(compiled, text)


def test_conditions_compose() -> None:
    either = where(starts="a") | where(starts="b")
    assert isinstance(either, Constraint)
    compiled = compile_for_bytes(either & ~where(contains="x"))
    assert accepts(compiled, "bcd")
    assert not accepts(compiled, "bxd")


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        ({}, ConstraintSyntaxError),
        ({"chars": -1}, ConstraintSyntaxError),
        ({"words": (3, 2)}, ConstraintSyntaxError),
        ({"integer": (3, 2)}, UnsatisfiableConstraint),
        ({"matches": "("}, ConstraintSyntaxError),
    ],
)
def test_conditions_that_make_no_sense(conditions: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        where(**conditions)
