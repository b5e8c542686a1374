"""Percentiles of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Spread:
    """How a set of times is spread, in microseconds. ``count`` is how many there are; without any, all is 0."""

    count: int
    p50: float
    p90: float
    p99: float
    mean: float
    max: float

    @classmethod
    def of(cls, nanoseconds: Sequence[int] | NDArray[np.int64]) -> Spread:
        """From times in nanoseconds. A percentile is the smallest time that at least so many of all do not exceed."""
        times = np.asarray(nanoseconds, dtype=np.float64) / 1000
        if times.size == 0:
            return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0)
        p50, p90, p99 = np.percentile(times, (50, 90, 99), method="inverted_cdf")
        return cls(times.size, float(p50), float(p90), float(p99), float(times.mean()), float(times.max()))

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, rounded to nanoseconds."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


MEASURES = ("p50", "p90", "p99", "mean", "max")
"""The columns of a table of times."""


def ratio(other: float, own: float) -> float | None:
    """How many times faster than the other; None where there is nothing to compare."""
    return other / own if own > 0 and other > 0 else None


def logarithmic_histogram(nanoseconds: NDArray[np.int64], bins_per_decade: int = 20) -> dict[str, list[float]]:
    """Counts in bins of equal width on a logarithmic scale from 0.1 µs to 1,000 s, the ends open."""
    edges = np.logspace(-1, 9, 10 * bins_per_decade + 1)
    times = np.clip(np.asarray(nanoseconds, dtype=np.float64) / 1000, edges[0], edges[-1] * (1 - 1e-12))
    counts, _ = np.histogram(times, edges)
    used = np.flatnonzero(counts)
    return {"microseconds": [round(float(edges[i]), 4) for i in used], "counts": [int(counts[i]) for i in used]}
