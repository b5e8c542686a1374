"""One call, timed by two clocks.

``wall`` is what a user waits for; on a machine that others use it also counts their turns. ``cpu`` is the time that
this thread was running, which others disturb only through shared caches. Both are in nanoseconds, and what the clocks
themselves cost is measured beforehand and taken off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Stopwatch:
    """Times single calls. ``wall`` and ``cpu`` hold the last one."""

    wall_overhead: int = 0
    cpu_overhead: int = 0
    wall: int = 0
    cpu: int = 0

    def __call__(self, call: Callable[[], T]) -> T:
        """Calls and times it, also when it raises."""
        cpu = time.thread_time_ns()
        wall = time.perf_counter_ns()
        try:
            return call()
        finally:
            wall_end = time.perf_counter_ns()
            cpu_end = time.thread_time_ns()
            self.wall = max(wall_end - wall - self.wall_overhead, 0)
            self.cpu = max(cpu_end - cpu - self.cpu_overhead, 0)


def calibrated(calls: int = 2000) -> Stopwatch:
    """A stopwatch that takes off the median of what an empty call of a C function seems to last."""
    watch = Stopwatch()
    walls, cpus = [], []
    empty = [].clear
    for _ in range(calls):
        watch(empty)
        walls.append(watch.wall)
        cpus.append(watch.cpu)
    return Stopwatch(wall_overhead=round(median(walls)), cpu_overhead=round(median(cpus)))
