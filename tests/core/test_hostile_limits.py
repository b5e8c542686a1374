"""Hostile patterns, grammars, lists and compositions are answered within limits of time and memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from core.hostile_constraints import ROWS
from support.hostile import Answers, check
from support.hostile_probes import ROWS as PROBES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="caps the address space of forked processes")


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    with Answers("core.hostile_constraints") as running:
        yield running


@pytest.mark.parametrize("name", ROWS)
def test_hostile_constraints_are_answered_within_limits(answers: Answers, name: str) -> None:
    check(answers, name, ROWS[name])


def test_what_is_not_answered_is_noticed() -> None:
    with Answers("support.hostile_probes") as probes:
        for name, row in PROBES.items():
            told = probes.to(name, killed_after=2.0, memory=1 << 29)
            assert told["answer"] in row.answers, told
