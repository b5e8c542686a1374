"""How many threads a forward pass should use on the processor.

Every operation of a forward pass is a few microseconds of work split among threads that then wait for each other. A
thread that has no core of its own makes all of them wait for a slice of the scheduler, some hundred times per token:
two threads on one free core are not as fast as one, they are tens of times slower. So no more threads are used than
there are cores to run on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def thread_count(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of threads to use; None where the environment says it (``OMP_NUM_THREADS``, ``MKL_NUM_THREADS``).

    Cores are those that this process may use (affinity, the CPU quota of its container), less those that other work
    keeps busy at the moment (load average of the last minute); at least 1.
    """
    if any(environment.get(name) for name in _VARIABLES):
        return None
    return max(1, usable_cores() - _busy_cores())


def usable_cores(quota_file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    try:
        quota, period = quota_file.read_text().split()
        cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no control groups of version 2, or no quota ("max")
        pass
    return cores


def _busy_cores() -> int:
    try:
        return round(os.getloadavg()[0])
    except (AttributeError, OSError):
        return 0
