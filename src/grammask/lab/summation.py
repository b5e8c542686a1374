"""Floating-point addition is not associative: one sum in several orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammask.lab.experiment import FACTUAL, OPEN, Counter, Options, answers, rows_of, setup_of
from grammask.lab.report import Plot, Result, Series, Table, percent

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 8
COUNT = 100_000
"""Numbers in the sum that needs no model."""

Row = NDArray[np.float32]


def _from_left(values: Row) -> float:
    return float(np.cumsum(values, dtype=np.float32)[-1])


def _in_lanes(values: Row, lanes: int) -> float:
    """Every ``lanes``-th number into one running sum, as vector instructions add; then the lanes."""
    padded = np.zeros(-(-len(values) // lanes) * lanes, dtype=np.float32)
    padded[: len(values)] = values
    return _from_left(np.cumsum(padded.reshape(-1, lanes), axis=0, dtype=np.float32)[-1])


ORDERS: dict[str, Callable[[Row], float]] = {
    "pairwise": lambda values: float(np.sum(values, dtype=np.float32)),
    "from the left": _from_left,
    "from the right": lambda values: _from_left(values[::-1]),
    "ascending": lambda values: _from_left(np.sort(values)),
    "descending": lambda values: _from_left(np.sort(values)[::-1]),
    "in 8 lanes": lambda values: _in_lanes(values, 8),
    "in 16 lanes": lambda values: _in_lanes(values, 16),
}


@dataclass(frozen=True)
class OrderOfSum:
    """One order of additions.

    Attributes:
        normal: the sum of 100,000 normal numbers.
        error: largest relative error of a softmax's denominator against the exactly rounded sum.
        differing: share of the rows at which it is another float32 than the pairwise sum.
    """

    order: str
    normal: float
    error: float
    differing: float


@dataclass(frozen=True)
class SummationResult(Result):
    """One row per order, and the exactly rounded sum."""

    NAME = "summation"
    TITLE = "Order of float32 additions"
    METHOD = (
        f"{COUNT:,} normal numbers (numpy's default_rng(0)) are added in float32 in several orders, and so are the "
        "denominators of the softmax over the model's logits. Exact sums are by math.fsum."
    )

    sums: tuple[OrderOfSum, ...]
    exact: float
    rows: int

    def findings(self) -> list[str]:
        values = [order.normal for order in self.sums]
        worst = max(self.sums, key=lambda order: order.error)
        apart = max(order.differing for order in self.sums)
        return [
            (
                f"The same {COUNT:,} numbers add up to between {min(values):.5f} and {max(values):.5f}; exactly "
                f"{self.exact:.5f}."
            ),
            (
                f"The denominator of a softmax over the vocabulary is another float32 in up to {percent(apart)} of the "
                f"rows; the largest relative error is {worst.error:.1e} ({worst.order})."
            ),
        ]

    def tables(self) -> list[Table]:
        columns = ("order", f"sum of {COUNT:,} normal numbers", "largest error of a softmax", "rows that differ")
        rows = tuple((o.order, f"{o.normal:.5f}", o.error, percent(o.differing)) for o in self.sums)
        return [Table(f"Exact sum {self.exact:.5f}; softmax over {self.rows} rows", columns, rows)]

    def plots(self) -> list[Plot]:
        names = tuple(order.order for order in self.sums)
        errors = tuple(max(order.error, 1e-9) for order in self.sums)
        label = "largest relative error"
        return [Plot("error", self.TITLE, "", label, (Series("softmax", names, errors),), kind="bar", log_y=True)]


RESULT = SummationResult


def run(model: Model, options: Options = Options()) -> SummationResult:  # noqa: B008 - immutable
    """Adds."""
    steps = options.steps or STEPS
    counter = Counter(options.progress, steps * (len(FACTUAL) + len(OPEN)))
    rows = rows_of(answers(model, (*FACTUAL, *OPEN), steps, options.seed, counter))
    weights = np.exp(rows - rows.max(axis=1, keepdims=True))
    exact = [math.fsum(row.tolist()) for row in weights]
    numbers = np.random.default_rng(0).normal(size=COUNT).astype(np.float32)
    sums = []
    reference = [ORDERS["pairwise"](row) for row in weights]
    for name, add in ORDERS.items():
        found = [add(row) for row in weights]
        error = max(abs(value - true) / true for value, true in zip(found, exact, strict=True))
        differing = sum(value != other for value, other in zip(found, reference, strict=True)) / len(found)
        sums.append(OrderOfSum(name, add(numbers), error, differing))
    return SummationResult(setup_of(model, steps, options.seed), tuple(sums), math.fsum(numbers.tolist()), len(weights))
