"""How many tokens a nucleus holds, by temperature, where the answer is known and where it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grammask.lab.experiment import (
    FACTUAL,
    OPEN,
    Counter,
    Options,
    Rows,
    answers,
    descending,
    probabilities,
    rows_of,
    setup_of,
)
from grammask.lab.report import Plot, Result, Series, Table, percent

if TYPE_CHECKING:
    from grammask.models import Model

TEMPERATURES = (0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0)
TOP_P = (0.5, 0.9, 0.95)
MIN_P = 0.05
STEPS = 24


@dataclass(frozen=True)
class Sizes:
    """The sizes of one cut at one temperature over all steps of one kind of prompt.

    Attributes:
        kind: "factual" or "open". cut: as text, "top_p 0.9".
        mean, median, p90: number of tokens that stay; p90 is exceeded at one step in ten.
        single: share of the steps at which one token stays.
    """

    kind: str
    cut: str
    temperature: float
    steps: int
    mean: float
    median: float
    p90: float
    single: float


@dataclass(frozen=True)
class NucleusResult(Result):
    """Sizes for every kind, cut and temperature."""

    NAME = "nucleus"
    TITLE = "How large a nucleus is"
    METHOD = (
        "Questions that have one answer and requests that have many are answered greedily. At each step, the logits "
        "are divided by the temperature, and the tokens that a cut would keep are counted. A fixed top_k that kept the "
        "same share would have to be as large as the nucleus."
    )

    sizes: tuple[Sizes, ...]

    def findings(self) -> list[str]:
        found = []
        for kind in ("factual", "open"):
            one = self._at(kind, "top_p 0.9", 1.0)
            found.append(
                f"{kind} prompts, temperature 1, top_p 0.9: one token is left at {percent(one.single)} of the steps, "
                f"{one.median:.0f} at the median, more than {one.p90:.0f} at one step in ten."
            )
        warm, hot = self._at("open", "top_p 0.9", 1.0), self._at("open", "top_p 0.9", 1.6)
        steady = self._at("open", f"min_p {MIN_P:g}", 1.6)
        found.append(
            f"Open prompts, from temperature 1 to 1.6: the mean nucleus grows from {warm.mean:,.0f} to {hot.mean:,.0f} "
            f"tokens; with min_p {MIN_P:g} it is {steady.mean:,.0f} at 1.6."
        )
        return found

    def tables(self) -> list[Table]:
        return [
            Table(
                f"Tokens kept, {kind} prompts",
                ("cut", "temperature", "mean", "median", "90th percentile", "one token left"),
                tuple(
                    (size.cut, size.temperature, size.mean, size.median, size.p90, percent(size.single))
                    for size in self.sizes
                    if size.kind == kind
                ),
            )
            for kind in ("factual", "open")
        ]

    def plots(self) -> list[Plot]:
        lines = []
        for kind in ("factual", "open"):
            for cut in ("top_p 0.9", f"min_p {MIN_P:g}"):
                chosen = [size for size in self.sizes if size.kind == kind and size.cut == cut]
                x, y = tuple(size.temperature for size in chosen), tuple(size.mean for size in chosen)
                lines.append(Series(f"{kind}, {cut}", x, y))
        return [Plot("sizes", self.TITLE, "temperature", "tokens kept (mean)", tuple(lines), log_y=True)]

    def _at(self, kind: str, cut: str, temperature: float) -> Sizes:
        return next(s for s in self.sizes if (s.kind, s.cut, s.temperature) == (kind, cut, temperature))


RESULT = NucleusResult


def run(model: Model, options: Options = Options()) -> NucleusResult:  # noqa: B008 - immutable
    """Writes the answers and counts."""
    steps = options.steps or STEPS
    counter = Counter(options.progress, steps * (len(FACTUAL) + len(OPEN)))
    sizes: list[Sizes] = []
    for kind, prompts in (("factual", FACTUAL), ("open", OPEN)):
        sorted_rows = descending(rows_of(answers(model, prompts, steps, options.seed, counter, temperature=0)))
        for top_p in TOP_P:
            for temperature in TEMPERATURES:
                counts = nucleus_sizes(sorted_rows, temperature, top_p)
                sizes.append(_summary(kind, f"top_p {top_p:g}", temperature, counts))
        for temperature in TEMPERATURES:
            counts = min_p_sizes(sorted_rows, temperature, MIN_P)
            sizes.append(_summary(kind, f"min_p {MIN_P:g}", temperature, counts))
    return NucleusResult(setup_of(model, steps, options.seed), tuple(sizes))


def nucleus_sizes(sorted_rows: Rows, temperature: float, top_p: float) -> np.ndarray:
    """How many tokens the smallest set with at least probability ``top_p`` has, int [n]."""
    sums = np.cumsum(probabilities(sorted_rows, temperature), axis=1)
    return np.asarray(np.minimum((sums < top_p).sum(axis=1) + 1, sorted_rows.shape[1]))


def min_p_sizes(sorted_rows: Rows, temperature: float, min_p: float) -> np.ndarray:
    """How many tokens are at least ``min_p`` times as likely as the most likely one, int [n]."""
    shares = probabilities(sorted_rows, temperature)
    return np.asarray((shares >= min_p * shares[:, :1]).sum(axis=1))


def _summary(kind: str, cut: str, temperature: float, counts: np.ndarray) -> Sizes:
    return Sizes(
        kind,
        cut,
        temperature,
        len(counts),
        float(counts.mean()),
        float(np.median(counts)),
        float(np.percentile(counts, 90)),
        float((counts == 1).mean()),
    )
