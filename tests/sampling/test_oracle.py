"""The pipeline against the plain one in ``oracle``, and torch against numpy: every order, all settings, many rows."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from grammask.sampling import PRESETS, STAGES, Order, Sampler, Sampling, sample_batch
from grammask.sampling.order import STAGE_SETTINGS
from grammask.sampling.random_numbers import DRAW_XTC
from sampling import oracle

VOCABULARY = 300


def random_settings(generator: random.Random, order) -> dict:
    """A few settings at a time out of all that the order knows."""
    names = {
        name for stage in (PRESETS[order] if isinstance(order, str) else order).stages for name in STAGE_SETTINGS[stage]
    }
    values = {
        "temperature": lambda: generator.choice([0.0, 0.3, 0.8, 1.7]),
        "top_k": lambda: generator.choice([1, 3, 20, 250]),
        "top_p": lambda: generator.choice([0.0, 0.2, 0.9, 0.999]),
        "min_p": lambda: generator.choice([0.01, 0.2, 1.0]),
        "typical_p": lambda: generator.choice([0.1, 0.6, 0.95]),
        "top_n_sigma": lambda: generator.choice([0.5, 1.0, 3.0]),
        "xtc_probability": lambda: generator.choice([0.5, 1.0]),
        "presence_penalty": lambda: generator.choice([-0.5, 0.7]),
        "frequency_penalty": lambda: generator.choice([-0.3, 0.4]),
        "repetition_penalty": lambda: generator.choice([0.8, 1.3]),
        "no_repeat_ngram_size": lambda: generator.choice([1, 2, 3]),
        "dry_multiplier": lambda: 0.8,
        "min_tokens": lambda: generator.choice([2, 50]),
        "logit_bias": lambda: {
            generator.randrange(VOCABULARY): generator.choice([2.0, -3.5, -math.inf]) for _ in range(3)
        },
    }
    chosen = {name: value() for name, value in values.items() if name in names and generator.random() < 0.4}
    if "xtc_probability" in chosen:
        chosen["xtc_threshold"] = generator.choice([0.01, 0.05, 0.3])
    if "dry_multiplier" in chosen:
        chosen |= {"dry_breakers": [3], "dry_allowed_length": generator.choice([1, 2])}
    if chosen.keys() & {"presence_penalty", "repetition_penalty"} and generator.random() < 0.5:
        chosen["penalty_window"] = generator.choice([1, 7, 40])
    return chosen | {"order": order, "logprobs": True, "top_logprobs": generator.choice([0, 4])}


def random_row(generator: np.random.Generator) -> np.ndarray:
    row = (generator.standard_normal(VOCABULARY) * generator.choice([0.3, 2.0, 8.0])).astype(np.float32)
    if generator.random() < 0.3:
        row = np.round(row)  # equal logits in plenty
    if generator.random() < 0.2:
        row[generator.integers(0, VOCABULARY, 30)] = -np.inf
    return row


def random_case(seed: int, order, *, ties: bool = True):
    generator = np.random.default_rng(seed)
    picker = random.Random(seed)
    sampling = Sampling(seed=seed, **random_settings(picker, order))
    row = random_row(generator)
    if not ties:
        row = row + generator.standard_normal(VOCABULARY).astype(np.float32) * 1e-3
    allowed = None
    if picker.random() < 0.6:
        allowed = generator.random(VOCABULARY) < picker.choice([0.05, 0.5, 0.98])
    tokens = generator.integers(0, picker.choice([4, 40]), 40).tolist()
    split = picker.choice([0, 20, 40])
    return sampling, row, allowed, tokens[:split], tokens[split:]


def start(sampling, prompt, output):
    sampler = Sampler(sampling, VOCABULARY, eos_token_ids=[7])
    state = sampler.start(prompt, request=len(output))
    for token in output:
        state.append(token)
    return sampler, state


SHUFFLED = [
    Order(("mask", "temperature", "min_p", "typical_p", "penalties", "top_p", "top_k", "xtc", "top_n_sigma"), name="a"),
    Order(("top_n_sigma", "xtc", "penalties", "mask", "top_k", "temperature", "top_p", "min_p"), name="b", window=9),
    Order(("mask", "top_p", "temperature", "typical_p"), name="c"),
]
ORDERS = [*PRESETS, *SHUFFLED]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_numpy_equals_the_oracle(order):
    compared = 0
    for seed in range(120):
        sampling, row, allowed, prompt, output = random_case(seed, order)
        sampler, state = start(sampling, prompt, output)
        mask = None if allowed is None else oracle.pack(allowed)
        with np.errstate(invalid="ignore"):
            expected = oracle.final_distribution(
                row,
                sampling,
                prompt=prompt,
                output=output,
                allowed=allowed,
                end_ids=[7],
                xtc_coin=state.uniform(DRAW_XTC),
            )
        if np.isnan(expected).any():
            continue  # the settings exclude everything: what then happens is tested elsewhere
        ids, probabilities = sampler.distribution(row, state, mask)
        assert ids.tolist() == np.flatnonzero(expected).tolist()
        np.testing.assert_allclose(probabilities, expected[ids], atol=1e-12)
        token = sampler.sample(row, state, mask)
        position = ids.tolist().index(token.token_id)
        before = probabilities[:position].sum()
        assert before - 1e-12 <= state.uniform() <= before + probabilities[position] + 1e-12
        compared += 1
    assert compared > 80


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_torch_equals_numpy(order):
    """Rows with different settings, histories and masks in one batch; also rows in which the constraint must win."""
    torch = pytest.importorskip("torch")
    cases = [random_case(seed, order, ties=seed % 2 == 0) for seed in range(1000, 1060)]
    started = [start(sampling, prompt, output) for sampling, _, _, prompt, output in cases]
    rows = np.stack([row for _, row, _, _, _ in cases])
    masks = [None if allowed is None else oracle.pack(allowed) for _, _, allowed, _, _ in cases]
    possible = []
    for index, (sampler, state) in enumerate(started):
        try:
            sampler.sample(rows[index], state, masks[index])
        except ValueError:
            continue
        possible.append(index)
    assert len(possible) > 40
    states = [started[index][1] for index in possible]
    chosen_masks = [masks[index] for index in possible]
    tensor = torch.from_numpy(rows[possible])
    in_numpy = sample_batch(rows[possible], states, chosen_masks, backend="numpy")
    in_torch = sample_batch(tensor, states, chosen_masks, backend="torch")
    for ours, theirs in zip(in_numpy, in_torch, strict=True):
        assert theirs.token_id == ours.token_id
        assert theirs.report.nucleus == ours.report.nucleus
        assert theirs.report.allowed == ours.report.allowed
        assert theirs.report.lifted == ours.report.lifted
        assert theirs.report.greedy == ours.report.greedy
        assert theirs.report.mask_mass == pytest.approx(ours.report.mask_mass, abs=1e-6)
        assert theirs.report.entropy == pytest.approx(ours.report.entropy, abs=1e-6)
        assert theirs.logprob == pytest.approx(ours.logprob, abs=1e-5)
        assert theirs.final_logprob == pytest.approx(ours.final_logprob, abs=1e-6)
        for own, other in (
            (ours.top_logprobs, theirs.top_logprobs),
            (ours.top_final_logprobs, theirs.top_final_logprobs),
        ):
            assert [top.token_id for top in other] == [top.token_id for top in own]
            assert [top.logprob for top in other] == pytest.approx([top.logprob for top in own], abs=1e-5)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_torch_selects_what_numpy_selects(order):
    """The whole distribution, not only the token drawn from it."""
    torch = pytest.importorskip("torch")
    from grammask.sampling import torch_batch, torch_rows

    for seed in range(2000, 2060):
        sampling, row, allowed, prompt, output = random_case(seed, order)
        sampler, state = start(sampling, prompt, output)
        try:
            ids, probabilities = sampler.distribution(row, state, None if allowed is None else oracle.pack(allowed))
        except ValueError:
            continue
        if sampler.run(row, state, allowed)[1]:
            continue  # bans gave way: such rows go through numpy
        permitted = None if allowed is None else torch.from_numpy(allowed)[None]
        final = torch_batch.run(torch.from_numpy(row)[None], [state], permitted)
        assert (final[0] > -math.inf).nonzero().squeeze(1).tolist() == ids.tolist()
        weights = torch_rows.weights_of(final)[0]
        np.testing.assert_allclose((weights / weights.sum()).numpy()[ids], probabilities, atol=1e-6)


@pytest.mark.parametrize(
    ("spread", "settings"),
    [
        (0.01, {"top_p": 0.9}),
        (1.0, {"top_p": 0.95, "temperature": 1.5}),
        (4.0, {"top_p": 0.9}),
        (4.0, {"typical_p": 0.7}),
        (0.5, {"typical_p": 0.9}),
        (3.0, {"top_k": 50}),
        (3.0, {"top_k": 9000}),
        (0.0, {"top_p": 0.50001}),
        (0.0, {"top_k": 1234}),
        (3.0, {}),
        (8.0, {"min_p": 0.001, "top_n_sigma": 3}),
    ],
)
def test_large_vocabularies(spread, settings):
    """Where selection replaces sorting: flat, peaked and level rows of 40,000 tokens."""
    torch = pytest.importorskip("torch")
    size = 40_000
    for seed in range(3):
        row = (np.random.default_rng(seed).standard_normal(size) * spread).astype(np.float32)
        for logits in (row, np.round(row * 2) / 2):
            sampling = Sampling(seed=seed, **settings)
            sampler = Sampler(sampling, size)
            state = sampler.start()
            expected = oracle.final_distribution(logits, sampling)
            ids, probabilities = sampler.distribution(logits, state)
            assert ids.tolist() == np.flatnonzero(expected).tolist()
            np.testing.assert_allclose(probabilities, expected[ids], atol=1e-12)
            drawn = sampler.sample(logits, state)
            position = int(np.searchsorted(ids, drawn.token_id))
            before = float(probabilities[:position].sum())
            assert before - 1e-9 <= state.uniform() <= before + float(probabilities[position]) + 1e-9
            (again,) = sample_batch(torch.from_numpy(logits)[None], [state], backend="torch")
            assert again.token_id == drawn.token_id
            assert again.report.nucleus == len(ids)


def test_the_orders_cover_every_stage():
    assert {stage for order in PRESETS.values() for stage in order.stages} == set(STAGES)
