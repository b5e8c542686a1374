"""Hostile schemas are answered within limits of time and memory, each in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from json_schema.hostile_schemas import ROWS
from support.hostile import Answers, check

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="caps the address space of forked processes")


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    with Answers("json_schema.hostile_schemas") as running:
        yield running


@pytest.mark.parametrize("name", ROWS)
def test_hostile_schemas_are_answered_within_limits(answers: Answers, name: str) -> None:
    check(answers, name, ROWS[name])
