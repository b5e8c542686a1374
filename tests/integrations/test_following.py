"""Followers against matchers that read everything anew; descriptions of constraints; vocabularies of engines."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import grammask
from grammask.engine.errors import ConstraintError
from grammask.integrations.compiling import Compilations, check_constraint
from grammask.integrations.following import Follower, fill_rows
from grammask.integrations.wire import constraint_from_wire
from support.engine_cases import CASES

WORDS = [b"a", b"b", b"ab", b"ba", b"c", b"1"]
EOS, TURN, PAD = 6, 7, 8


@pytest.fixture(scope="module")
def vocabulary() -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokens([*WORDS, None, None, None], [EOS], {"<turn>": TURN})


def mask(follower: Follower) -> set[int]:
    words, rows = np.zeros(1, dtype=np.int32), np.ones((1, 1), dtype=np.int32)
    follower.fill_mask(words)
    fill_rows([follower], rows)
    assert words[0] == rows[0, 0]
    return {token for token in range(9) if words[0] >> token & 1}


def fresh(compiled: grammask.CompiledConstraint, tokens: list[int]) -> Follower:
    follower = Follower(compiled, [TURN, 0])
    follower.read(tokens)
    return follower


@pytest.mark.parametrize("seed", range(30))
def test_going_back_is_as_if_it_had_never_been_read(vocabulary: grammask.Vocabulary, seed: int) -> None:
    rng = random.Random(seed)
    compiled = grammask.compile(grammask.Regex("(ab|c){1,4}1?"), vocabulary)
    follower = Follower(compiled, [TURN, 0])
    for _ in range(60):
        if rng.random() < 0.6:
            allowed = sorted(mask(follower))
            follower.read([rng.choice(allowed) if allowed and rng.random() < 0.8 else rng.randrange(9)])
        else:
            follower.go_back(rng.randint(0, follower.length))
        twin, expected = follower.copy(), fresh(compiled, follower.tokens)
        for each in (follower, twin):
            assert mask(each) == mask(expected)
            assert (each.has_ended, each.is_lost, each.is_complete) == (
                expected.has_ended,
                expected.is_lost,
                expected.is_complete,
            )


def test_ends(vocabulary: grammask.Vocabulary) -> None:
    compiled = grammask.compile(grammask.Regex("ab?"), vocabulary)
    assert mask(Follower(compiled, [TURN])) == {0, 2}
    assert mask(fresh(compiled, [0])) == {1, EOS, TURN}
    for end in (EOS, TURN):
        ended = fresh(compiled, [0, end, PAD, PAD])
        assert ended.has_ended
        assert ended.is_complete
        assert mask(ended) == set(range(9))
        ended.go_back(1)
        assert mask(ended) == {1, EOS, TURN}
    lost = fresh(compiled, [0, 4])
    assert lost.is_lost
    assert mask(lost) == {EOS, TURN}
    lost.go_back(1)
    assert mask(lost) == {1, EOS, TURN}
    with pytest.raises(ValueError, match="cannot go back"):
        lost.go_back(2)


def test_rows_of_a_batch(vocabulary: grammask.Vocabulary) -> None:
    compiled = grammask.compile(grammask.Regex("ab?"), vocabulary)
    followers = [fresh(compiled, tokens) for tokens in ([], [0], [0, EOS], [4], [2])]
    out = np.zeros((6, 1), dtype=np.int32)
    out[5] = 77
    fill_rows(followers, out)
    assert [out[row, 0].item() & 0x1FF for row in range(5)] == [
        sum(1 << token for token in mask(follower)) for follower in followers
    ]
    assert out[5, 0] == 77


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_descriptions_compile(case: Any) -> None:
    check_constraint(constraint_from_wire(case.wire))


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({}, "exactly one kind, not none"),
        ({"regex": "a", "json": True}, "regex, json|json, regex"),
        ({"regex": "a", "whitespace": "compact"}, "takes no 'whitespace'"),
        ({"regex": 1}, "regex is a text"),
        ({"regex": "("}, "column"),
        ({"choice": []}, "at least one"),
        ({"choice": ["a", 1]}, "list of texts"),
        ({"json": False}, "json is true"),
        ({"json_schema": 3}, "json_schema is"),
        ({"json_schema": "{"}, "JSON"),
        ({"json_schema": {}, "property_order": "random"}, "property_order"),
        ({"tool_calls": {"tools": []}}, "tools and format"),
        ({"tool_calls": {"tools": [], "format": "hermes"}}, "no tools"),
        ({"tool_calls": {"tools": 1, "format": "hermes"}}, "list"),
        ("[1]", "object"),
        ("{", "no JSON"),
        (None, "object"),
    ],
)
def test_what_is_no_description_is_refused(description: Any, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        constraint_from_wire(description)


def test_compilations(vocabulary: grammask.Vocabulary) -> None:
    compilations = Compilations(lambda: vocabulary, capacity=2)
    first = compilations.start("a", lambda: grammask.Regex("a")).result()
    assert compilations.start("a", lambda: pytest.fail("compiled twice")).result() is first
    for name in "bc":
        compilations.start(name, lambda: grammask.Regex("b")).result()
    assert compilations.start("a", lambda: grammask.Regex("a")).result() is not first
    with pytest.raises(ConstraintError):
        compilations.start("x", lambda: grammask.Regex("(")).result()
    compilations.close()
    told: list[ConstraintError] = []
    tolerant = Compilations(lambda: vocabulary, on_error=told.append)
    nothing = tolerant.start("x", lambda: grammask.Regex("(")).result()
    assert mask(Follower(nothing)) == {EOS}
    assert len(told) == 1
    tolerant.close()
