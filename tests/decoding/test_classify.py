"""Classification: exact scores, whatever the tokenization."""

from __future__ import annotations

import enum
import math
from typing import Any, Literal

import numpy as np
import pytest

import grammask
from grammask import Choice
from grammask.models import FunctionModel, Model
from support.models import byte_vocabulary, indifferent_model

END = 6
PIECES: list[bytes | None] = [b"y", b"e", b"s", b"n", b"o", b"ye", None, b"yes", b"es", b"not", b"no", b"t"]


def pieces_model() -> FunctionModel:
    vocabulary = grammask.Vocabulary.from_tokens(PIECES, eos_token_ids=[END])

    def logits(tokens: Any) -> Any:
        return np.random.default_rng(list(tokens)).normal(scale=2, size=vocabulary.size)

    return FunctionModel(vocabulary, logits)


def sequence_logprob(model: Model, prompt: list[int], tokens: list[int]) -> float:
    total, path = 0.0, list(prompt)
    for token in tokens:
        row = model.session().forward(path).astype(float)
        total += row[token] - np.logaddexp.reduce(row)
        path.append(token)
    return float(total)


def tokenizations(text: bytes) -> list[list[int]]:
    if not text:
        return [[]]
    return [
        [token, *rest]
        for token, piece in enumerate(PIECES)
        if piece and text.startswith(piece)
        for rest in tokenizations(text[len(piece) :])
    ]


@pytest.mark.parametrize("ends", [True, False])
def test_all_tokenizations(ends: bool) -> None:
    """Against the sum over every tokenization, enumerated."""
    model = pieces_model()
    prompt = model.encode("no")
    found = model.classify("no", ["yes", "no", "not"], tokenizations="all", ends=ends, tolerance=1e-12)
    tail = [END] if ends else []
    for text in ("yes", "no", "not"):
        expected = np.logaddexp.reduce(
            [sequence_logprob(model, prompt, [*tokens, *tail]) for tokens in tokenizations(text.encode())]
        )
        assert found.logprobs[text] == pytest.approx(expected, abs=1e-5)
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.mass == pytest.approx(sum(map(math.exp, found.logprobs.values())))
    assert found.value == max(found.logprobs, key=lambda text: found.logprobs[text])


def test_tolerance_bounds_what_is_left_out() -> None:
    model = pieces_model()
    exact = model.classify("no", ["yes", "no"], tokenizations="all", tolerance=1e-12)
    rough = model.classify("no", ["yes", "no"], tokenizations="all", tolerance=0.2)
    assert rough.left_out is not None
    assert rough.model_calls < exact.model_calls
    assert rough.mass <= exact.mass <= rough.mass + rough.left_out + 1e-9
    assert rough.left_out <= 0.2 * rough.mass


def test_canonical_scores() -> None:
    model = pieces_model()
    prompt = model.encode("no")
    found = model.classify("no", Choice(["yes", "not"]))
    for text in ("yes", "not"):
        tokens = model.vocabulary.encode(text)
        assert found.logprobs[text] == pytest.approx(sequence_logprob(model, prompt, tokens), abs=1e-5)
    assert found.left_out is None


def test_ends_count_where_one_choice_begins_another() -> None:
    model = pieces_model()
    prompt = model.encode("y")
    found = model.classify("y", ["no", "not"])
    tokens = [*model.vocabulary.encode("no"), END]
    assert found.logprobs["no"] == pytest.approx(sequence_logprob(model, prompt, tokens), abs=1e-5)


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


def test_values() -> None:
    model = indifferent_model()
    assert set(model.classify("p", Mood).probabilities) == {Mood.GOOD, Mood.BAD}
    assert set(model.classify("p", Literal[1, 2]).probabilities) == {1, 2}
    assert set(model.classify("p", [True, None]).probabilities) == {True, None}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"choices": "yes"}, TypeError, "list of values"),
        ({"choices": ["a"], "tolerance": 0}, ValueError, "tolerance"),
        ({"choices": ["a"], "tokenizations": "some"}, ValueError, "tokenizations"),
        ({"choices": ["", "a"], "ends": False}, ValueError, "empty choice"),
    ],
)
def test_refusals(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        indifferent_model().classify("p", **options)


def test_a_model_that_gives_no_probability() -> None:
    row = np.full(258, -np.inf)
    row[ord("x")] = 0
    model = FunctionModel(byte_vocabulary(), lambda tokens: row)
    with pytest.raises(ValueError, match="no probability"):
        model.classify("p", ["a", "b"])
