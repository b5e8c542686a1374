"""Six tokens, every probability worked out by hand.

The model's distribution is 40, 30, 15, 10, 4 and 1 percent.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from grammask.sampling import Sampler, Sampling

PROBABILITIES = np.array([0.40, 0.30, 0.15, 0.10, 0.04, 0.01])
LOGITS = np.log(PROBABILITIES).astype(np.float32)


def final(sampling: Sampling, *, logits=LOGITS, prompt=(), output=(), mask=None):
    sampler = Sampler(sampling, len(logits), eos_token_ids=[len(logits) - 1])
    state = sampler.start(prompt, seed=0)
    for token in output:
        state.append(token)
    ids, probabilities = sampler.distribution(np.asarray(logits, dtype=np.float32), state, mask)
    row = np.zeros(len(logits))
    row[ids] = probabilities
    return row


CASES = [
    ("nothing set", {}, [0.40, 0.30, 0.15, 0.10, 0.04, 0.01]),
    ("temperature 0", {"temperature": 0}, [1, 0, 0, 0, 0, 0]),
    ("temperature below zero", {"temperature": -1.0}, [1, 0, 0, 0, 0, 0]),
    # p^2: 0.16, 0.09, 0.0225, 0.01, 0.0016, 0.0001, together 0.2842
    ("temperature 1/2", {"temperature": 0.5}, [1600 / 2842, 900 / 2842, 225 / 2842, 100 / 2842, 16 / 2842, 1 / 2842]),
    ("top_k 2", {"top_k": 2}, [4 / 7, 3 / 7, 0, 0, 0, 0]),
    ("top_k beyond the vocabulary", {"top_k": 100}, [0.40, 0.30, 0.15, 0.10, 0.04, 0.01]),
    ("top_p short of the first token", {"top_p": 0.3}, [1, 0, 0, 0, 0, 0]),
    ("top_p 0 keeps one", {"top_p": 0.0}, [1, 0, 0, 0, 0, 0]),
    ("top_p: the token that reaches p is in", {"top_p": 0.71}, [40 / 85, 30 / 85, 15 / 85, 0, 0, 0]),
    ("top_p just below a sum", {"top_p": 0.699}, [4 / 7, 3 / 7, 0, 0, 0, 0]),
    ("min_p: 0.3 · 0.4 = 0.12", {"min_p": 0.3}, [40 / 85, 30 / 85, 15 / 85, 0, 0, 0]),
    # Entropy 1.4216 nats; information 0.916, 1.204, 1.897, 2.303, 3.219, 4.605: nearest is 30 %, then 15 %, then 40 %
    ("typical_p keeps 30 and 15 %", {"typical_p": 0.44}, [0, 30 / 45, 15 / 45, 0, 0, 0]),
    ("typical_p then takes 40 %", {"typical_p": 0.46}, [40 / 85, 30 / 85, 15 / 85, 0, 0, 0]),
    # Mean of the logits -2.3574, deviation 1.2665: 0.5 deviations below -0.916 is -1.550, between 30 % and 15 %
    ("top_n_sigma 0.5", {"top_n_sigma": 0.5}, [4 / 7, 3 / 7, 0, 0, 0, 0]),
    (
        "xtc drops 40 and 30 %",
        {"xtc_probability": 1.0, "xtc_threshold": 0.12},
        [0, 0, 15 / 30, 10 / 30, 4 / 30, 1 / 30],
    ),
    (
        "xtc needs two above the threshold",
        {"xtc_probability": 1.0, "xtc_threshold": 0.35},
        [0.40, 0.30, 0.15, 0.10, 0.04, 0.01],
    ),
    (
        "logit_bias doubles 10 %",
        {"logit_bias": {3: math.log(2)}},
        [40 / 110, 30 / 110, 15 / 110, 20 / 110, 4 / 110, 1 / 110],
    ),
    ("logit_bias -inf", {"logit_bias": {0: -math.inf}}, [0, 30 / 60, 15 / 60, 10 / 60, 4 / 60, 1 / 60]),
    ("top_k, then top_p of what is left", {"top_k": 3, "top_p": 0.8}, [4 / 7, 3 / 7, 0, 0, 0, 0]),
]


@pytest.mark.parametrize(("name", "settings", "expected"), CASES, ids=[case[0] for case in CASES])
def test_distribution(name, settings, expected):
    np.testing.assert_allclose(final(Sampling(**settings)), expected, atol=1e-7)


def test_presence_and_frequency():
    # Token 1 was seen twice, token 2 once: their weights shrink by e^-(p+2f) and e^-(p+f).
    sampling = Sampling(presence_penalty=math.log(2), frequency_penalty=math.log(3))
    weights = np.array([0.40, 0.30 / 18, 0.15 / 6, 0.10, 0.04, 0.01])
    np.testing.assert_allclose(final(sampling, output=[1, 2, 1]), weights / weights.sum(), atol=1e-7)


def test_presence_counts_the_output_only_unless_told():
    sampling = Sampling(presence_penalty=math.log(2))
    np.testing.assert_allclose(final(sampling, prompt=[0]), PROBABILITIES, atol=1e-7)
    weights = np.array([0.20, 0.30, 0.15, 0.10, 0.04, 0.01])
    everything = sampling.replace(penalty_scope="all")
    np.testing.assert_allclose(final(everything, prompt=[0]), weights / weights.sum(), atol=1e-7)
    prompt = sampling.replace(penalty_scope="prompt")
    np.testing.assert_allclose(final(prompt, prompt=[0], output=[1]), weights / weights.sum(), atol=1e-7)


def test_repetition_divides_above_zero_and_multiplies_below():
    logits = [2.0, -1.0, 0.0, 1.0]
    weights = np.exp([1.0, -2.0, 0.0, 1.0])
    probabilities = final(Sampling(repetition_penalty=2.0), logits=logits, prompt=[0], output=[1, 2])
    np.testing.assert_allclose(probabilities, weights / weights.sum(), atol=1e-7)


def test_window_forgets():
    sampling = Sampling(presence_penalty=math.log(2), penalty_window=2)
    weights = np.array([0.40, 0.15, 0.075, 0.10, 0.04, 0.01])
    np.testing.assert_allclose(final(sampling, output=[0, 1, 2]), weights / weights.sum(), atol=1e-7)


def test_no_repeat_ngram():
    expected = [0, 30 / 60, 15 / 60, 10 / 60, 4 / 60, 1 / 60]
    sampling = Sampling(no_repeat_ngram_size=3)
    np.testing.assert_allclose(final(sampling, prompt=[1, 2, 0, 3], output=[1, 2]), expected, atol=1e-7)


def test_no_repeat_unigram_excludes_everything_seen():
    expected = [0, 30 / 60, 15 / 60, 10 / 60, 4 / 60, 1 / 60]
    np.testing.assert_allclose(final(Sampling(no_repeat_ngram_size=1), prompt=[0]), expected, atol=1e-7)


def test_dry():
    # "1 2 3" came before and "1 2 3" ends the text; "0" went on. Length 3, one beyond the two allowed: 0.8 · 1.75.
    sampling = Sampling(dry_multiplier=0.8, dry_breakers=[4])
    weights = PROBABILITIES * np.exp([-0.8 * 1.75, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(
        final(sampling, prompt=[1, 2, 3, 0, 5], output=[1, 2, 3]), weights / weights.sum(), atol=1e-7
    )
    # A breaker inside the repetition leaves only "3", which is shorter than allowed.
    np.testing.assert_allclose(final(sampling, prompt=[1, 4, 3, 0, 5], output=[1, 4, 3]), PROBABILITIES, atol=1e-7)


def test_min_tokens_holds_the_end_back():
    sampling = Sampling(min_tokens=1)
    expected = [40 / 99, 30 / 99, 15 / 99, 10 / 99, 4 / 99, 0]
    np.testing.assert_allclose(final(sampling), expected, atol=1e-7)
    np.testing.assert_allclose(final(sampling, output=[0]), PROBABILITIES, atol=1e-7)


def test_mask_before_the_cuts():
    # Tokens 1, 3 and 4 are allowed; top_k 2 then keeps 1 and 3.
    mask = np.array([0b011010], dtype=np.int32)
    np.testing.assert_allclose(final(Sampling(top_k=2), mask=mask), [0, 3 / 4, 0, 1 / 4, 0, 0], atol=1e-7)


def test_order_of_cut_and_temperature_matters():
    # Squaring sharpens: 56 % and 32 % reach 0.85 together. On the model's own distribution three tokens are needed.
    sharp = final(Sampling(temperature=0.5, top_p=0.85))
    np.testing.assert_allclose(sharp, [16 / 25, 9 / 25, 0, 0, 0, 0], atol=1e-7)
    late = final(Sampling(temperature=0.5, top_p=0.849, order="llama.cpp"))
    total = 1600 + 900 + 225
    np.testing.assert_allclose(late, [1600 / total, 900 / total, 225 / total, 0, 0, 0], atol=1e-7)


@pytest.mark.parametrize("temperature", [0.0, 9e-6, -3.0])
def test_greedy_takes_the_lowest_id_among_equals(temperature):
    sampler = Sampler(Sampling(temperature=temperature), 5)
    token = sampler.sample(np.array([1, 3, 3, 0, 3], dtype=np.float32), sampler.start())
    assert token.token_id == 1
    assert token.report.greedy
    assert token.report.single_choice


def test_cuts_break_ties_by_lowest_id():
    level = np.zeros(6, dtype=np.float32)
    np.testing.assert_allclose(final(Sampling(top_k=2), logits=level), [0.5, 0.5, 0, 0, 0, 0])
    np.testing.assert_allclose(final(Sampling(top_p=0.4), logits=level), [1 / 3, 1 / 3, 1 / 3, 0, 0, 0])
    kept_ties = final(Sampling(top_k=2, order="transformers"), logits=[0, 1, 0, 0, 2, 1])
    assert np.flatnonzero(kept_ties).tolist() == [1, 4, 5]


def test_report_and_logprobs():
    sampler = Sampler(Sampling(top_k=2, logprobs=True, top_logprobs=3), 6)
    mask = np.array([0b011110], dtype=np.int32)
    token = sampler.sample(LOGITS, sampler.start(seed=1), mask)
    assert token.report.mask_mass == pytest.approx(0.59)
    assert token.report.allowed == 4
    assert token.report.nucleus == 2
    assert token.report.entropy == pytest.approx(-(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3))
    assert [top.token_id for top in token.top_logprobs] == [0, 1, 2]
    assert [math.exp(top.logprob) for top in token.top_logprobs] == pytest.approx([0.40, 0.30, 0.15])
    assert [top.token_id for top in token.top_final_logprobs] == [1, 2]
    assert [math.exp(top.logprob) for top in token.top_final_logprobs] == pytest.approx([2 / 3, 1 / 3])
    assert token.logprob == pytest.approx(math.log(PROBABILITIES[token.token_id]))
    assert token.final_logprob == pytest.approx(math.log({1: 2 / 3, 2: 1 / 3}[token.token_id]))
