"""Never truncated: at every budget that is large enough for any output, the output is valid."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammask
from grammask import BudgetTooSmall, Choice, JsonSchema, Regex, Sampling
from grammask.decoding import fewest
from grammask.models import FunctionModel, Model
from support.models import END, WritingModel, byte_vocabulary, indifferent_model

SCALARS = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "number"},
        {"type": "string"},
        {"type": "string", "minLength": 3},
        {"type": "boolean"},
        {"enum": ["a", "long member", 12]},
        {"const": None},
        {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        {"type": "string", "format": "date"},
    ]
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["id", "name", "tags", "size"])
    return st.dictionaries(names, inner, min_size=1, max_size=3).flatmap(
        lambda members: st.sets(st.sampled_from(sorted(members))).map(
            lambda required: {
                "type": "object",
                "properties": members,
                "required": sorted(required),
                "additionalProperties": False,
            }
        )
    )


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(inner, st.integers(0, 2)).map(
        lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1]}
    )


SCHEMAS = st.recursive(SCALARS, lambda inner: objects(inner) | arrays(inner), max_leaves=4)
WORDS = [
    b'{"',
    b'":',
    b'","',
    b'"}',
    b"[{",
    b"}]",
    b"00",
    b"   ",
    b"name",
    b"long member",
    b'"id":',
    b"-3",
    b'":"',
    b"true",
]


def shortest(model: Model, constraint: grammask.Constraint) -> int:
    tokens = grammask.compile(constraint, model.vocabulary).matcher().shortest_completion()
    assert tokens is not None
    return len(tokens)


@given(SCHEMAS, st.integers(0, 2**32), st.sampled_from([0.0, 0.7, 3.0]), st.integers(0, 12))
def test_random_schemas_at_tight_budgets(schema: Any, seed: int, temperature: float, extra: int) -> None:
    model = indifferent_model(byte_vocabulary(WORDS))
    constraint = JsonSchema(schema)
    limit = max(1, shortest(model, constraint) + extra)
    result = model.generate("p", constraint, sampling=Sampling(temperature=temperature), seed=seed, max_tokens=limit)
    assert result.complete, (result.text, limit)
    assert len(result.tokens) <= limit
    jsonschema.validate(json.loads(result.text), schema)


@given(SCHEMAS)
def test_below_the_minimum_nothing_is_written(schema: Any) -> None:
    """The limit is lowered until no output is known to fit; tests/decoding/test_fewest.py tells that none does."""
    model = indifferent_model(byte_vocabulary(WORDS))
    constraint = JsonSchema(schema)
    needed = shortest(model, constraint)
    calls: list[int] = []
    for limit in range(needed - 1, 0, -1):
        calls.clear()
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(fewest, "MOST_TOKENS_TRIED", 1000)
                result = model.generate("p", constraint, max_tokens=limit, cancelled=lambda: bool(calls.append(1)))
        except BudgetTooSmall as error:
            refusal = error
            break
        jsonschema.validate(json.loads(result.text), schema)
        assert len(result.tokens) <= limit
    else:
        return
    assert f"takes {needed} tokens, the limit is {limit}" in str(refusal)
    assert (refusal.needed, calls) == (needed, [])


def looping_model(habit: bytes) -> FunctionModel:
    """Wants to go on with ``habit`` for ever, and never to end."""
    vocabulary = byte_vocabulary(WORDS)

    def logits(tokens: Any) -> Any:
        row = np.zeros(vocabulary.size)
        row[list(habit)] = 20.0
        row[END] = -20.0
        return row

    return FunctionModel(vocabulary, logits)


@pytest.mark.parametrize(
    ("habit", "constraint", "limit"),
    [
        (b"7", JsonSchema({"type": "number"}), 9),
        (b" ", JsonSchema({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}), 20),
        (b"x", JsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 3}), 40),
        (b"x", JsonSchema({"type": "string"}), 600),
        (b"a", Regex("(ab?)*b"), 11),
        (b"[", grammask.JsonValue(), 30),
    ],
)
def test_habits_end_in_time(habit: bytes, constraint: grammask.Constraint, limit: int) -> None:
    result = looping_model(habit).generate("p", constraint, max_tokens=limit)
    assert result.complete, result.text
    assert result.limited or result.finish_reason == "length"
    assert len(result.tokens) <= limit
    matcher = grammask.compile(constraint, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(result.text.encode())
    assert matcher.is_complete


def test_free_text_ends_at_a_whole_character() -> None:
    for limit in range(1, 12):
        result = WritingModel("שלום עולם 🚀").generate("p", max_tokens=limit)
        assert result.complete
        assert "\ufffd" not in result.text


def test_a_large_budget_changes_nothing() -> None:
    model = indifferent_model(byte_vocabulary(WORDS))
    constraint = JsonSchema({"type": "object", "properties": {"id": {"type": "integer"}}, "maxProperties": 2})
    for seed in range(10):
        options: Any = {"sampling": Sampling(temperature=1), "seed": seed, "max_tokens": 400}
        guarded = model.generate("p", constraint, **options)
        free = model.generate("p", constraint, truncate="allow", **options)
        if free.complete and free.finish_reason == "stop":
            assert (guarded.text, guarded.limited) == (free.text, False)


ENDS: list[tuple[str, str, grammask.Constraint | None, dict[str, Any], tuple[str, bool, str, bool]]] = [
    # What the model would write, the constraint, options; then text, complete, finish reason, limited.
    ("ends-by-itself", "abc", Regex("[a-z]+"), {"max_tokens": 4}, ("abc", True, "stop", False)),
    ("nothing-can-follow", "abcdef", Regex("[a-z]{3}"), {"max_tokens": 9}, ("abc", True, "stop", False)),
    ("nothing-can-follow-at-the-limit", "abc", Regex("[a-z]{3}"), {"max_tokens": 3}, ("abc", True, "stop", False)),
    ("no-room-for-the-end", "abc", Regex("[a-z]+"), {"max_tokens": 3}, ("abc", True, "length", True)),
    ("no-room-for-more", "abcdef", None, {"max_tokens": 3}, ("abc", True, "length", True)),
    ("closed-in-time", '"abcdef"', JsonSchema({"type": "string"}), {"max_tokens": 5}, ('"abc"', True, "stop", True)),
    ("stop", "abcdef", None, {"max_tokens": 5, "stop": "d"}, ("abc", True, "stop_sequence", False)),
    ("cut", "abcdef", Regex("[a-z]{6}"), {"max_tokens": 3, "truncate": "allow"}, ("abc", False, "length", True)),
]


@pytest.mark.parametrize(("text", "constraint", "options", "expected"), [e[1:] for e in ENDS], ids=[e[0] for e in ENDS])
def test_why_an_output_ended(
    text: str, constraint: Any, options: dict[str, Any], expected: tuple[str, bool, str, bool]
) -> None:
    # Beam search takes no stop texts.
    for strategy in (None,) if "stop" in options else (None, "beam"):
        result = WritingModel(text).generate("p", constraint, strategy=strategy, **options)
        assert (result.text, result.complete, result.finish_reason, result.limited) == expected


def test_certain_text_takes_the_fewest_tokens_where_there_is_no_room() -> None:
    """The choice of a long word leaves room for the certain text only in its longest tokens."""
    model = WritingModel("x", byte_vocabulary([b"certain", b" text", b"certain text"]))
    constraint = Choice(["certain text", "certain text!"])
    for limit in (1, 2, 3):
        result = model.generate("p", constraint, max_tokens=limit)
        assert result.complete
        assert len(result.tokens) <= limit


def test_drawing_again_keeps_proportions() -> None:
    """Under a budget that leaves only some choices, they are drawn in proportion to the model's probabilities."""
    vocabulary = byte_vocabulary()
    weights = {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}
    row = np.full(vocabulary.size, -np.inf)
    for letter, weight in weights.items():
        row[ord(letter)] = np.log(weight)
    model = FunctionModel(vocabulary, lambda tokens: row)
    # After a or c three more letters have to come, which do not fit into two tokens.
    constraint = Regex("[ac][abcd]{3}|[bd][abcd]")
    compiled = grammask.compile(constraint, vocabulary)
    sampling = Sampling(temperature=1, seed=11)
    counts = dict.fromkeys(weights, 0)
    runs = 1500
    for run in range(runs):
        result = model.generate("p", compiled, sampling=sampling, request=run, max_tokens=2)
        counts[result.text[0]] += 1
    assert counts["a"] == counts["c"] == 0
    expected = weights["b"] / (weights["b"] + weights["d"])
    assert counts["b"] / runs == pytest.approx(expected, abs=4 * (expected * (1 - expected) / runs) ** 0.5)


def test_greedy_takes_the_best_that_fits() -> None:
    vocabulary = byte_vocabulary()
    row = np.zeros(vocabulary.size)
    row[list(b"abcd")] = [9, 7, 8, 6]
    model = FunctionModel(vocabulary, lambda tokens: row)
    result = model.generate("p", Regex("[ac][abcd]{3}|[bd][abcd]"), max_tokens=2)
    assert result.text == "ba"
    assert result.limited


def test_the_same_seed_gives_the_same_output_at_the_limit() -> None:
    model = indifferent_model(byte_vocabulary(WORDS))
    constraint = JsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2})
    rng = random.Random(5)
    for _ in range(5):
        seed, limit = rng.randrange(1000), rng.randrange(7, 20)
        texts = {
            model.generate("p", constraint, sampling=Sampling(temperature=1.5), seed=seed, max_tokens=limit).text
            for _ in range(2)
        }
        assert len(texts) == 1
