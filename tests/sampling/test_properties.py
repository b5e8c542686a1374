"""Laws that hold for any logits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grammask.sampling import Order, Sampler, Sampling
from grammask.sampling.candidates import smallest_prefix
from sampling import oracle

LOGITS = arrays(np.float32, st.integers(1, 40), elements=st.floats(-20, 20, width=32))
CUTS = st.sampled_from(
    [
        {"top_k": 1},
        {"top_k": 5},
        {"top_p": 0.0},
        {"top_p": 0.5},
        {"top_p": 0.9},
        {"min_p": 0.1},
        {"min_p": 1.0},
        {"typical_p": 0.5},
        {"top_n_sigma": 1.0},
        {"xtc_probability": 1.0, "xtc_threshold": 0.1},
    ]
)


def final(row, **settings) -> np.ndarray:
    """Probabilities [vocabulary]."""
    sampler = Sampler(Sampling(**settings), len(row))
    ids, probabilities = sampler.distribution(row, sampler.start(seed=0))
    full = np.zeros(len(row))
    full[ids] = probabilities
    return full


@given(LOGITS, CUTS)
def test_probabilities_sum_to_one_and_cuts_only_rescale(row, cut):
    before, after = final(row), final(row, **cut)
    kept = after > 0
    assert after.sum() == pytest.approx(1)
    assert kept.any()
    np.testing.assert_allclose(after[kept], before[kept] / before[kept].sum(), rtol=1e-9)


@given(LOGITS, st.sampled_from([{"top_k": 5}, {"min_p": 0.1}, {"top_k": 1}, {"min_p": 1.0}]))
def test_idempotent_cuts(row, cut):
    once = final(row, **cut)
    again = np.where(once > 0, row, -np.inf).astype(np.float32)
    np.testing.assert_array_equal(final(again, **cut) > 0, once > 0)


@given(LOGITS, st.floats(0, 1))
def test_top_p_is_the_smallest_set_that_reaches_p(row, p):
    probabilities, kept = final(row), final(row, top_p=p) > 0
    assert probabilities[kept].sum() >= p - 1e-12
    least = probabilities[kept].min()
    assert kept.sum() == 1 or probabilities[kept].sum() - least < p
    assert (probabilities[~kept] <= least).all()


@given(LOGITS, st.integers(1, 50))
def test_top_k_keeps_k_of_the_best(row, k):
    kept = final(row, top_k=k) > 0
    assert kept.sum() == min(k, len(row))
    assert (row[~kept] <= row[kept].min()).all()


@given(LOGITS, st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_larger_p_keeps_more(row, one, other):
    small, large = sorted((one, other))
    assert not (final(row, top_p=small).astype(bool) & ~final(row, top_p=large).astype(bool)).any()


@given(LOGITS, st.floats(0.1, 5), st.floats(0.1, 5))
def test_temperature_spreads(row, one, other):
    """Entropy rises with temperature, the best token's share falls, and the order of tokens stays."""
    cold, hot = sorted((one, other))
    colder, hotter = final(row, temperature=cold), final(row, temperature=hot)

    def entropy(shares):
        shares = shares[shares > 0]
        return float(-(shares * np.log(shares)).sum())

    assert entropy(colder) <= entropy(hotter) + 1e-6
    assert colder.max() >= hotter.max() - 1e-6
    best = oracle.best_first(row)
    assert (np.diff(hotter[best]) <= 1e-12).all()


@given(
    arrays(np.float32, st.integers(1, 40), elements=st.floats(-20, 20, width=32), unique=True),
    st.randoms(use_true_random=False),
)
def test_renaming_tokens_renames_the_result(row, generator):
    permutation = list(range(len(row)))
    generator.shuffle(permutation)
    settings = {"temperature": 0.9, "top_k": 10, "top_p": 0.9, "min_p": 0.02}
    # Sums in another order may differ in their last bit, so a token on the very boundary is left out of the comparison.
    expected, found = final(row, **settings)[permutation], final(row[permutation], **settings)
    assume((expected > 0).sum() == (found > 0).sum())
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(LOGITS, st.floats(-50, 50, width=32))
def test_adding_a_constant_changes_nothing(row, constant):
    row = np.round(row, 2).astype(np.float32)
    moved = (row.astype(np.float64) + float(np.round(constant))).astype(np.float32)
    np.testing.assert_allclose(final(moved, temperature=0.7), final(row, temperature=0.7), atol=1e-5)


@given(LOGITS, st.lists(st.integers(0, 39), max_size=20), st.floats(0.01, 3))
def test_penalties_only_lower_what_was_seen(row, seen, penalty):
    seen = [token % len(row) for token in seen]
    for settings in (
        {"presence_penalty": penalty},
        {"frequency_penalty": penalty},
        {"repetition_penalty": 1 + penalty, "repetition_scope": "output"},
    ):
        sampler = Sampler(Sampling(**settings), len(row))
        state = sampler.start(seed=0)
        for token in seen:
            state.append(token)
        _, probabilities = sampler.distribution(row, state)
        unseen = np.setdiff1d(np.arange(len(row)), seen)
        before = final(row)
        if len(unseen):
            np.testing.assert_allclose(
                probabilities[unseen] / probabilities[unseen].sum(), before[unseen] / before[unseen].sum(), rtol=1e-6
            )
            assert probabilities[unseen].sum() >= before[unseen].sum() - 1e-9


@given(LOGITS, st.integers(0, 2**64 - 1), CUTS)
def test_the_token_drawn_is_one_that_could_be(row, seed, cut):
    sampler = Sampler(Sampling(seed=seed, temperature=3.0, **cut), len(row))
    state = sampler.start()
    token = sampler.sample(row, state)
    ids, probabilities = sampler.distribution(row, state)
    position = ids.tolist().index(token.token_id)
    assert math.exp(token.final_logprob) == pytest.approx(probabilities[position], rel=1e-6)
    assert token.report.nucleus == len(ids)


@given(
    arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 8).map(float)),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_smallest_prefix_with_many_equal_keys(keys, share, seed):
    weights = np.random.default_rng(seed).random(len(keys)) + 0.01
    target = share * weights.sum()
    ordered = np.argsort(keys, kind="stable")
    count = min(int((np.cumsum(weights[ordered]) < target).sum()) + 1, len(keys))
    assert smallest_prefix(keys, weights, target).tolist() == sorted(ordered[:count].tolist())


@pytest.mark.parametrize("levels", [1, 2, 7, 5000])
@pytest.mark.parametrize("width", [1e-9, 1.0, 300.0])
def test_smallest_prefix_of_long_rows(levels, width):
    """Rows long enough that the boundary is bracketed, not sorted for."""
    generator = np.random.default_rng(levels)
    for dtype in (np.float32, np.float64):
        keys = (generator.integers(0, levels, 9000) * (width / levels)).astype(dtype) - dtype(3)
        weights = generator.random(9000)
        for share in (0.0, 1e-6, 0.3, 0.9, 1 - 1e-9, 1.0):
            target = share * float(weights.sum())
            ordered = np.argsort(keys, kind="stable")
            count = min(int((np.cumsum(weights[ordered]) < target - 1e-9).sum()) + 1, 9000)
            found = smallest_prefix(keys, weights, target - 1e-9)
            assert len(found) == count
            assert found.tolist() == sorted(ordered[:count].tolist())


def test_a_custom_order_is_followed():
    """Cut first, then flatten: what the cut removed stays removed."""
    row = np.log(np.array([0.5, 0.3, 0.2])).astype(np.float32)
    order = Order(("mask", "top_p", "temperature"))
    late = final(row, order=order, top_p=0.5, temperature=4.0)
    assert late.tolist() == [1, 0, 0]
    early = final(row, top_p=0.5, temperature=4.0)
    assert (early > 0).sum() == 2
