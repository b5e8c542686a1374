"""Patterns made to exhaust a parser, a stack or a state space: each gets an answer."""

from __future__ import annotations

import pytest

from grammask import _core
from grammask.constraints.regex import lower_pattern
from grammask.engine.errors import ConstraintError
from support.builders import make_builder

HOSTILE = {
    "groups": "(" * 100_000 + "a" + ")" * 100_000,
    "stars": "(" * 100_000 + "a" + ")*" * 100_000,
    "options": "(a" * 20_000 + ")?" * 20_000,
    "alternatives": "(a|" * 20_000 + "b" + ")" * 20_000,
    "sequences": "(" * 20_000 + "." + "[ab])" * 20_000,
    "look-aheads": "(?=" * 100_000 + "a" + ")" * 100_000,
    "look-behinds": "(?<!" * 20_000 + "a" + ")" * 20_000,
    "open groups": "(" * 100_000,
    "open classes": "[" * 100_000,
    "backslashes": "\\" * 100_001,
    "boundaries": r"\b" * 3_000 + "a",
    "bounded words": r"\b\w+\b " * 1_000,
    "nested stars": "((((a*)*)*)*)*b",
    "overlapping stars": "(a|aa)+(a*)*(.*)*$",
    "nested counts": "((a{0,100000}){0,100000}){0,100000}",
    "counted look-ahead": "(?=.{1,100000}$)[a-z]*",
    "counted look-behind": "(?<=(a|b){0,3000})b",
    "repeated counted look-ahead": "((?!a{1,5000}b).)*",
    "exponential look-behind": "(?:(?<=a.{40})b|.)*",
    "assertions in a row": "(?<=a)(?<=ab)(?<=abc)(?<=b.c)(?<=c.*d)(?<=d[^e]*)x" * 5,
    "deep assertions": "(?:a|" * 45 + r"\bx" + ")b" * 45,
    "counted boundaries": r"(?:\b\w+\b ){1,5000}x",
}


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_patterns_are_answered(name: str, search: bool) -> None:
    """With an expression or one of our errors (compile turns the core's into ours), and never a RecursionError."""
    builder = make_builder("native")
    try:
        expr = lower_pattern(HOSTILE[name], builder, search=search)
    except (ConstraintError, _core.ConstraintTooLargeError):
        return
    assert builder.matches(expr, b"\xff") is False
