"""Sequential Monte Carlo against a model whose exact conditional distribution can be enumerated."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import Regex, Sampling
from grammask.models import FunctionModel

A, B, C, STOP = range(4)
LETTERS = b"abc"


def model() -> FunctionModel:
    """Three letters and an end. After "a" it loves "c"; the end is likely after an odd number of letters."""
    vocabulary = grammask.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_token_ids=[STOP])

    def logits(tokens: Any) -> Any:
        written = list(tokens)[1:]
        row = np.array([1.5, 0.0, 0.0, -1.0])
        if written and written[-1] == A:
            row = np.array([-2.0, -3.0, 2.0, -2.0])
        if len(written) % 2:
            row[STOP] += 2.0
        return row

    return FunctionModel(vocabulary, logits)


CONSTRAINT = Regex("(a[ab]?b|[bc]{1,3})c?")
PROMPT = "a"


def exact() -> dict[str, float]:
    """The model's probabilities of all valid texts, normalized."""
    toy = model()
    compiled = grammask.compile(CONSTRAINT, toy.vocabulary)
    found = {}
    for length in range(1, 5):
        for letters in product(range(3), repeat=length):
            matcher = compiled.matcher()
            if not (all(matcher.accept(letter) for letter in letters) and matcher.is_complete):
                continue
            logprob, tokens = 0.0, [A]
            for token in (*letters, STOP):
                row = toy.session().forward(tokens).astype(float)
                logprob += row[token] - np.logaddexp.reduce(row)
                tokens.append(token)
            found["".join(chr(LETTERS[letter]) for letter in letters)] = float(np.exp(logprob))
    total = sum(found.values())
    return {text: probability / total for text, probability in found.items()}


def distance(counts: Counter[str], truth: dict[str, float]) -> float:
    """Total variation."""
    total = sum(counts.values())
    return 0.5 * sum(abs(counts[text] / total - probability) for text, probability in truth.items())


def draw(runs: int, **options: Any) -> Counter[str]:
    toy = model()
    compiled = grammask.compile(CONSTRAINT, toy.vocabulary)
    sampling = Sampling(temperature=1)
    return Counter(
        toy.generate(PROMPT, compiled, sampling=sampling, seed=9, request=run, **options).text for run in range(runs)
    )


def test_smc_comes_closer_to_the_truth_than_masking() -> None:
    truth = exact()
    masked = distance(draw(1000), truth)
    few = distance(draw(1000, method="smc", particles=4), truth)
    many = distance(draw(600, method="smc", particles=32), truth)
    assert masked > 0.3
    assert few < masked - 0.2
    assert many < 0.08


def test_the_evidence_is_unbiased() -> None:
    """The mean of the estimates of p(L) is p(L)."""
    toy = model()
    total = 0.0
    for text in exact():
        tokens, logprob = [A], 0.0
        for token in [*(LETTERS.index(letter) for letter in text.encode()), STOP]:
            row = toy.session().forward(tokens).astype(float)
            logprob += row[token] - np.logaddexp.reduce(row)
            tokens.append(token)
        total += float(np.exp(logprob))
    estimates = []
    for run in range(400):
        result = toy.generate(PROMPT, CONSTRAINT, method="smc", particles=8, seed=2, request=run)
        assert result.particles is not None
        estimates.append(np.exp(result.particles.log_evidence))
    assert np.mean(estimates) == pytest.approx(total, abs=4 * np.std(estimates) / np.sqrt(len(estimates)))


def test_report_and_seeds() -> None:
    result = model().generate(PROMPT, CONSTRAINT, method="smc", particles=6, seed=4)
    report = result.particles
    assert report is not None
    assert len(report.outputs) == 6
    assert sum(share for _, share in report.outputs) == pytest.approx(1)
    assert result.text in [text for text, share in report.outputs if share > 0]
    assert 1 <= report.effective <= 6 + 1e-9
    assert result.token_ids[-1] == STOP
    assert result.complete
    assert model().generate(PROMPT, CONSTRAINT, method="smc", particles=6, seed=4).text == result.text


def test_no_particle_in_time() -> None:
    result = model().generate(PROMPT, Regex("[ab]{6}"), method="smc", particles=3, max_tokens=4, seed=1)
    assert (result.complete, result.finish_reason, result.value) == (False, "length", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": Sampling(temperature=0)}, "temperature above 0"),
        ({"sampling": Sampling(top_p=0.9)}, "top_p changes the distribution"),
        ({"stop": "x"}, "stop does not go together"),
    ],
)
def test_refusals(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model().generate(PROMPT, CONSTRAINT, method="smc", **options)
