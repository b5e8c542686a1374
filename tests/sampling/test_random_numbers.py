"""Philox against its authors' vectors, and what is drawn with it."""

from __future__ import annotations

import numpy as np
import pytest

from grammask.sampling import Sampler, Sampling
from grammask.sampling.random_numbers import DRAW_TOKEN, DRAW_XTC, philox4x32, uniform

# The known-answer vectors that come with Random123 (philox4x32, 10 rounds): counter, key, output.
KNOWN_ANSWERS = [
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN_ANSWERS)
def test_known_answers(counter, key, output):
    assert philox4x32(counter, key) == output


def test_uniform_uses_the_first_64_bits():
    low, high, _, _ = KNOWN_ANSWERS[0][2]
    assert uniform(0, 0, 0) == ((high << 32 | low) >> 11) / 2**53


def test_known_draws():
    """Numbers that must never change, whatever the platform or version."""
    drawn = [uniform(1, 2, step) for step in range(3)] + [uniform(2**64 - 1, 2**64 - 1, 2**32 - 1, sample=2**24 - 1)]
    assert [number.hex() for number in drawn] == [
        "0x1.19db8ba7ce680p-1",
        "0x1.635e31dcb8e04p-3",
        "0x1.0339342dc9d9bp-1",
        "0x1.1a9513cab5a13p-1",
    ]


def test_every_part_of_the_key_counts():
    keys = [
        uniform(seed, request, step, sample=sample, draw=draw)
        for seed in (0, 1, 1 << 32)
        for request in (0, 1, 1 << 32)
        for step in (0, 1)
        for sample in (0, 1)
        for draw in (DRAW_TOKEN, DRAW_XTC)
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("vary", ["seed", "request", "step", "sample"])
def test_uniform_in_sixty_four_bins(vary):
    draws = 20_000
    numbers = np.array(
        [uniform(**{"seed": 7, "request": 3, "step": 5, "sample": 2, vary: value}) for value in range(draws)]
    )
    counts, _ = np.histogram(numbers, bins=64, range=(0, 1))
    chi_square = float(((counts - draws / 64) ** 2 / (draws / 64)).sum())
    assert 25 < chi_square < 115  # 63 degrees of freedom: both tails beyond 1 in 10^4


@pytest.mark.parametrize(
    ("sampling", "distribution"),
    [
        (Sampling(seed=11), [0.4, 0.3, 0.15, 0.1, 0.04, 0.01]),
        (Sampling(seed=12, top_p=0.8), [0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85, 0, 0, 0]),
        (Sampling(seed=13, top_k=2), [0.4 / 0.7, 0.3 / 0.7, 0, 0, 0, 0]),
    ],
)
def test_draws_follow_the_distribution(sampling, distribution):
    logits = np.log(np.array([0.4, 0.3, 0.15, 0.1, 0.04, 0.01])).astype(np.float32)
    sampler = Sampler(sampling, 6)
    draws = 6_000
    counts = np.zeros(6)
    for request in range(draws):
        counts[sampler.sample(logits, sampler.start(request=request)).token_id] += 1
    expected = draws * np.array(distribution)
    possible = expected > 0
    assert not counts[~possible].any()
    chi_square = float(((counts - expected)[possible] ** 2 / expected[possible]).sum())
    assert chi_square < 25  # at most 5 degrees of freedom: beyond 1 in 5000
