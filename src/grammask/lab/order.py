"""The same settings in another order: how far apart the distributions are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.lab.experiment import FACTUAL, OPEN, Counter, Decoded, LabError, Options, answers, setup_of
from grammask.lab.report import Plot, Result, Series, Table, mean, percent
from grammask.sampling import Sampler, Sampling

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 16

BEFORE = ("mask", "penalties", "temperature", "top_k", "top_p", "min_p")
"""Temperature and penalties first, as in grammask, vLLM and transformers."""
CUT_FIRST = ("mask", "penalties", "top_k", "top_p", "min_p", "temperature")
"""Cuts first, then the temperature, as in llama.cpp."""
PENALTY_LAST = ("mask", "temperature", "top_k", "top_p", "min_p", "penalties")
"""Cuts first, then penalties."""

PAIRS: dict[str, tuple[dict[str, Any], Sequence[str], Sequence[str]]] = {
    "temperature 0.5, top_p 0.9: cut after or before": ({"temperature": 0.5, "top_p": 0.9}, BEFORE, CUT_FIRST),
    "temperature 1.5, top_p 0.9: cut after or before": ({"temperature": 1.5, "top_p": 0.9}, BEFORE, CUT_FIRST),
    "temperature 1.5, min_p 0.1: cut after or before": ({"temperature": 1.5, "min_p": 0.1}, BEFORE, CUT_FIRST),
    "temperature 1.5, top_k 40: cut after or before": ({"temperature": 1.5, "top_k": 40}, BEFORE, CUT_FIRST),
    "repetition 1.3, top_k 5: penalty before or after": (
        {"repetition_penalty": 1.3, "top_k": 5},
        BEFORE,
        PENALTY_LAST,
    ),
    "frequency 1.0, top_p 0.9: penalty before or after": (
        {"frequency_penalty": 1.0, "top_p": 0.9},
        BEFORE,
        PENALTY_LAST,
    ),
}


@dataclass(frozen=True)
class Difference:
    """Two orders of the same settings.

    Attributes:
        first_size, second_size: tokens that can be drawn, mean over the steps.
        distance: total variation distance, the probability that draws coupled as well as possible differ; mean and
            largest.
        differing: share of the steps at which the distributions differ at all (by more than 1e-6).
    """

    pair: str
    first_size: float
    second_size: float
    distance: float
    largest: float
    differing: float


@dataclass(frozen=True)
class OrderResult(Result):
    """One difference per pair of orders."""

    NAME = "order"
    TITLE = "Order of stages"
    METHOD = (
        "Answers to factual and open prompts, drawn from the model's own distribution. At each step the sampler's "
        "distribution is computed under both orders, from the same logits and the same text so far."
    )

    differences: tuple[Difference, ...]
    steps_counted: int

    def findings(self) -> list[str]:
        return [
            f"{difference.pair}: {difference.first_size:.1f} or {difference.second_size:.1f} tokens in the mean; the "
            f"distributions differ at {percent(difference.differing)} of the steps, by {percent(difference.distance)} "
            f"in the mean and up to {percent(difference.largest)}."
            for difference in self.differences
        ]

    def tables(self) -> list[Table]:
        columns = ("settings", "tokens, first", "tokens, second", "distance", "largest", "steps that differ")
        rows = tuple(
            (d.pair, d.first_size, d.second_size, percent(d.distance), percent(d.largest), percent(d.differing))
            for d in self.differences
        )
        return [Table(f"The same settings in two orders, {self.steps_counted} steps", columns, rows)]

    def plots(self) -> list[Plot]:
        names = tuple(difference.pair.split(":")[0] for difference in self.differences)
        series = (
            Series("mean", names, tuple(100 * difference.distance for difference in self.differences)),
            Series("largest", names, tuple(100 * difference.largest for difference in self.differences)),
        )
        return [Plot("distance", "Distance between two orders", "", "total variation, percent", series, kind="bar")]


RESULT = OrderResult


def run(model: Model, options: Options = Options()) -> OrderResult:  # noqa: B008 - immutable
    """Draws the answers and compares."""
    steps = options.steps or STEPS
    counter = Counter(options.progress, steps * (len(FACTUAL) + len(OPEN)))
    outputs = answers(model, (*FACTUAL, *OPEN), steps, options.seed, counter)
    if not any(output.rows for output in outputs):
        raise LabError("the model ended every output at once: there is nothing to measure")
    differences = tuple(
        _compare(name, Sampling(order=first, **settings), Sampling(order=second, **settings), outputs, model)
        for name, (settings, first, second) in PAIRS.items()
    )
    return OrderResult(setup_of(model, steps, options.seed), differences, sum(len(output.rows) for output in outputs))


def _compare(name: str, first: Sampling, second: Sampling, outputs: Sequence[Decoded], model: Model) -> Difference:
    size = model.vocabulary.size
    one, two = Sampler(first, size), Sampler(second, size)
    sizes: tuple[list[float], list[float]] = ([], [])
    distances: list[float] = []
    for output in outputs:
        states = one.start(output.prompt_ids, seed=0), two.start(output.prompt_ids, seed=0)
        for token, row in zip(output.output_ids, output.rows, strict=True):
            found = [state.sampler.distribution(row, state) for state in states]
            distances.append(total_variation(*found[0], *found[1]))
            for place, (ids, _) in zip(sizes, found, strict=True):
                place.append(float(len(ids)))
            for state in states:
                state.append(token)
    differing = mean([float(distance > 1e-6) for distance in distances])
    return Difference(name, mean(sizes[0]), mean(sizes[1]), mean(distances), max(distances), differing)


def total_variation(
    ids: NDArray[np.int64], shares: NDArray[np.float64], other_ids: NDArray[np.int64], other: NDArray[np.float64]
) -> float:
    """Half the sum of the absolute differences of two distributions, each given by ascending ids and probabilities."""
    common, here, there = np.intersect1d(ids, other_ids, assume_unique=True, return_indices=True)
    shared = np.minimum(shares[here], other[there]).sum() if len(common) else 0.0
    return max(0.0, 1.0 - float(shared))
