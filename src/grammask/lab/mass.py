"""What a fixed k keeps, against what a fixed p keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grammask.lab.experiment import (
    FACTUAL,
    OPEN,
    Counter,
    Options,
    answers,
    descending,
    probabilities,
    rows_of,
    setup_of,
)
from grammask.lab.nucleus import nucleus_sizes
from grammask.lab.report import Plot, Result, Series, Table, percent

if TYPE_CHECKING:
    from grammask.models import Model

TOP_K = (1, 5, 10, 20, 40, 100)
TOP_P = (0.5, 0.8, 0.9, 0.95)
STEPS = 24


@dataclass(frozen=True)
class Spread:
    """Smallest, lower decile, median, upper decile and largest value over all steps."""

    cut: str
    least: float
    low: float
    median: float
    high: float
    most: float


@dataclass(frozen=True)
class MassResult(Result):
    """The mass that each k keeps, and the number of tokens that each p keeps."""

    NAME = "mass"
    TITLE = "Fixed k against fixed p"
    METHOD = (
        "Answers to factual and open prompts, drawn from the model's own distribution at temperature 1. At each step: "
        "the probability that the k most likely tokens hold, and how many tokens hold probability p."
    )

    kept: tuple[Spread, ...]
    sizes: tuple[Spread, ...]
    kept_by_40: tuple[float, ...]
    steps_counted: int

    def findings(self) -> list[str]:
        forty = next(spread for spread in self.kept if spread.cut == "top_k 40")
        ninety = next(spread for spread in self.sizes if spread.cut == "top_p 0.9")
        return [
            (
                f"top_k 40 keeps between {percent(forty.least)} and {percent(forty.most)} of the probability "
                f"({percent(forty.low)} at the lower decile): how much it cuts depends on the step."
            ),
            (
                f"top_p 0.9 keeps between {ninety.least:.0f} and {ninety.most:,.0f} tokens, median "
                f"{ninety.median:.0f}: the mass is fixed, not the number."
            ),
        ]

    def tables(self) -> list[Table]:
        columns = ("smallest", "10th percentile", "median", "90th percentile", "largest")
        return [
            Table("Probability kept", ("cut", *columns), tuple(_row(spread, percent) for spread in self.kept)),
            Table("Tokens kept", ("cut", *columns), tuple(_row(spread, "{:,.0f}".format) for spread in self.sizes)),
        ]

    def plots(self) -> list[Plot]:
        ordered = sorted(self.kept_by_40)
        x = tuple((number + 1) / len(ordered) for number in range(len(ordered)))
        series = (Series("top_k 40", x, tuple(ordered)), Series("top_p 0.9, at least", (x[0], 1.0), (0.9, 0.9)))
        return [Plot("kept", "Probability kept at each step", "share of the steps", "probability kept", series)]


RESULT = MassResult


def run(model: Model, options: Options = Options()) -> MassResult:  # noqa: B008 - immutable
    """Draws the answers and adds up."""
    steps = options.steps or STEPS
    counter = Counter(options.progress, steps * (len(FACTUAL) + len(OPEN)))
    sorted_rows = descending(rows_of(answers(model, (*FACTUAL, *OPEN), steps, options.seed, counter)))
    sums = np.cumsum(probabilities(sorted_rows), axis=1)
    kept = {k: np.minimum(sums[:, min(k, sums.shape[1]) - 1], 1.0) for k in TOP_K}
    return MassResult(
        setup_of(model, steps, options.seed),
        tuple(_spread(f"top_k {k}", masses) for k, masses in kept.items()),
        tuple(_spread(f"top_p {p:g}", nucleus_sizes(sorted_rows, 1.0, p)) for p in TOP_P),
        tuple(float(mass) for mass in kept[40]),
        len(sorted_rows),
    )


def _spread(cut: str, values: np.ndarray) -> Spread:
    return Spread(cut, *(float(np.percentile(values, at)) for at in (0, 10, 50, 90, 100)))


def _row(spread: Spread, text: object) -> tuple[str, ...]:
    assert callable(text)
    return spread.cut, *(text(v) for v in (spread.least, spread.low, spread.median, spread.high, spread.most))
