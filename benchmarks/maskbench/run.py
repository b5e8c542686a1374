"""Engines take turns on each case, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.engines import installed
from benchmarks.maskbench.cases import Case, spread
from benchmarks.maskbench.pool import EngineUnavailable, Worker
from benchmarks.maskbench.summary import EngineResults


@dataclass(frozen=True)
class Plan:
    """How a run is made.

    Attributes:
        engines: names, in the order of their turns.
        tokenizer: path of a ``tokenizer.json``.
        eos_token_id: the token that ends the output.
        seconds: CPU time that a case may take.
        limits: engine name to how many of the cases it gets, evenly spread (for engines that compile slowly).
        settings: engine name to its own options.
        forced: whether to ask for forced tokens after the timed part of a case.
        gc: whether Python's garbage collector stays on.
        memory_bytes: address space that a worker may take; 0 for no limit.
    """

    engines: Sequence[str]
    tokenizer: Path
    eos_token_id: int
    seconds: float = 30.0
    limits: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    forced: bool = True
    gc: bool = False
    memory_bytes: int = 0


def run(
    plan: Plan, cases: Sequence[Case], encode: Callable[[str], list[int]], progress: Callable[[int], None]
) -> dict[str, EngineResults]:
    """Runs all cases through all engines; ``progress`` is told how many cases are done.

    Raises:
        EngineUnavailable: an engine does not start.
    """
    versions = installed()
    results = {name: EngineResults(name, versions[name]) for name in plan.engines}
    turns = {name: spread(len(cases), plan.limits.get(name)) for name in plan.engines}
    workers: dict[str, Worker] = {}
    try:
        for name in plan.engines:
            config = {
                "engine": name,
                "tokenizer": str(plan.tokenizer.resolve()),
                "eos_token_id": plan.eos_token_id,
                "settings": plan.settings.get(name, {}),
                "seconds": plan.seconds,
                "forced": plan.forced,
                "gc": plan.gc,
                "memory_bytes": plan.memory_bytes,
            }
            workers[name] = Worker(config, patience=3 * plan.seconds + 10)
            results[name].load_seconds = workers[name].load_seconds
            results[name].ready_bytes = workers[name].ready_bytes
        for number, case in enumerate(cases):
            instances = [encode(instance.text) for instance in case.instances]
            valid = [instance.valid for instance in case.instances]
            first = number % len(plan.engines)
            for name in (*plan.engines[first:], *plan.engines[:first]):
                if number in turns[name]:
                    results[name].add(case.id, workers[name].ask(case.kind, case.source, instances), valid)
                    results[name].resident.append(workers[name].last_bytes)
            progress(number + 1)
    finally:
        for name, worker in workers.items():
            results[name].restarts = worker.restarts
            worker.close()
    return results


__all__ = ["EngineUnavailable", "Plan", "run"]
