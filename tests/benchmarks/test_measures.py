"""Figures and tables of the benchmarks, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.clocks import Stopwatch, calibrated
from benchmarks.statistics import Spread, logarithmic_histogram, ratio
from benchmarks.tables import Table, figure, percent, times_faster


def test_spread_is_in_microseconds_and_its_percentiles_are_times_that_occurred() -> None:
    spread = Spread.of([n * 1000 for n in range(1, 101)])
    assert spread == Spread(count=100, p50=50, p90=90, p99=99, mean=50.5, max=100)


def test_spread_of_one_and_of_none() -> None:
    assert Spread.of([1500]) == Spread(1, 1.5, 1.5, 1.5, 1.5, 1.5)
    assert Spread.of([]) == Spread(0, 0, 0, 0, 0, 0)


def test_one_slow_call_in_a_thousand_shows_in_the_maximum_only() -> None:
    spread = Spread.of([1000] * 999 + [10**9])
    assert (spread.p50, spread.p90, spread.p99, spread.max) == (1, 1, 1, 10**6)
    assert spread.mean == pytest.approx(1000.999)


def test_ratio_needs_two_times() -> None:
    assert ratio(30, 10) == 3
    assert ratio(0, 10) is None
    assert ratio(10, 0) is None


def test_histogram_keeps_every_time() -> None:
    times = np.array([0, 1, 150, 2_000, 10**15], dtype=np.int64)
    histogram = logarithmic_histogram(times)
    assert sum(histogram["counts"]) == len(times)
    assert histogram["microseconds"] == sorted(histogram["microseconds"])
    assert histogram["microseconds"][0] == 0.1
    assert histogram["counts"][0] == 2


def test_stopwatch_returns_the_result_and_takes_the_overhead_off() -> None:
    watch = Stopwatch(wall_overhead=10**15, cpu_overhead=10**15)
    assert watch(lambda: "result") == "result"
    assert (watch.wall, watch.cpu) == (0, 0)


def test_stopwatch_times_a_call_that_raises() -> None:
    watch = calibrated(10)

    def fail() -> None:
        for _ in range(100_000):
            pass
        raise LookupError

    with pytest.raises(LookupError):
        watch(fail)
    assert watch.cpu > 0
    assert watch.wall > 0


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.123, "0.12"), (12.34, "12.3"), (99.96, "100.0"), (1234.5, "1,234")]
)
def test_figures(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_shares_and_ratios() -> None:
    assert percent(1, 8) == "12.5 %"
    assert percent(0, 0) == "–"
    assert times_faster(12.34) == "12.3×"


def test_tables_hold_every_cell() -> None:
    table = Table("Title", ["name", "µs"], [["a|b", "1.0"], ["c", "20.0"]], note="Below.")
    assert table.markdown() == ("**Title**\n\n| name | µs |\n| --- | ---: |\n| a\\|b | 1.0 |\n| c | 20.0 |\n\nBelow.\n")
    assert table.plain() == "Title\nname    µs\na|b    1.0\nc     20.0\nBelow.\n"
