"""From measurements to verdicts and figures."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.maskbench.measure import Measurement
from benchmarks.maskbench.pool import Answer
from benchmarks.statistics import Spread, logarithmic_histogram

STATUSES = ("passed", "refused", "over", "under", "error", "timeout", "crash")
"""``refused``: not compiled. ``over``: an invalid instance accepted. ``under``: a valid one not accepted. ``error``:
the engine gave up within an instance. ``timeout``, ``crash``: no verdict. A case has one status, the last that
applies."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """An instance that came out wrong: ``kind`` is over, under or error; ``position`` counts tokens."""

    kind: str
    instance: int
    position: int
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, "instance": self.instance, "position": self.position, "error": self.error}


@dataclass(slots=True)
class CaseResult:
    """One case through one engine, judged. Times in nanoseconds (wall, CPU)."""

    id: str
    status: str
    kind: str
    message: str
    mistakes: list[Mistake]
    compile: tuple[int, int]
    first_mask: tuple[int, int] | None
    masks: slice
    accepts: slice
    slowest: tuple[int, int, int]

    @property
    def compiled(self) -> bool:
        """Whether the schema was taken."""
        return self.status in ("passed", "over", "under", "error")


def judge(answer: Answer, valid: Sequence[bool]) -> tuple[str, str, str, list[Mistake]]:
    """Status, kind of refusal, message, and the instances that came out wrong."""
    result = answer.result
    if answer.failure and answer.failure != "timeout":
        return "crash", answer.failure.partition(":")[0], answer.failure, []
    if answer.failure or result.timed_out:
        return "timeout", "", "", []
    if result.refusal is not None:
        return "refused", result.refusal[0], result.refusal[1], []
    mistakes = []
    for number, (outcome, right) in enumerate(zip(result.outcomes, valid, strict=True)):
        if outcome.error:
            mistakes.append(Mistake("error", number, outcome.position, outcome.error))
        elif outcome.accepted != right:
            mistakes.append(Mistake("under" if right else "over", number, outcome.position))
    kinds = {mistake.kind for mistake in mistakes}
    status = next((kind for kind in ("error", "under", "over") if kind in kinds), "passed")
    message = next((mistake.error for mistake in mistakes if mistake.error), "")
    return status, "", message, mistakes


@dataclass
class EngineResults:
    """All cases through one engine. ``resident``: bytes of memory that its process held after each case."""

    name: str
    version: str
    load_seconds: float = 0.0
    ready_bytes: int = 0
    resident: list[int] = field(default_factory=list)
    restarts: int = 0
    cases: dict[str, CaseResult] = field(default_factory=dict)
    forced_tokens: int = 0
    forced_known: int = 0
    forced_calls: tuple[int, int, int] = (0, 0, 0)
    _mask: tuple[array[int], array[int]] = field(default_factory=lambda: (array("q"), array("q")))
    _accept: tuple[array[int], array[int]] = field(default_factory=lambda: (array("q"), array("q")))

    def add(self, case_id: str, answer: Answer, valid: Sequence[bool]) -> CaseResult:
        """Judges an answer and keeps its times."""
        measured: Measurement = answer.result
        status, kind, message, mistakes = judge(answer, valid)
        masks, accepts = len(self._mask[0]), len(self._accept[0])
        self._mask[0].extend(measured.mask_wall)
        self._mask[1].extend(measured.mask_cpu)
        self._accept[0].extend(measured.accept_wall)
        self._accept[1].extend(measured.accept_cpu)
        if measured.forced is not None:
            self.forced_tokens += measured.forced[0]
            self.forced_known += measured.forced[1]
            calls, wall, cpu = self.forced_calls
            more = measured.forced_calls
            self.forced_calls = (calls + more[0], wall + more[1], cpu + more[2])
        first = measured.first_mask
        result = CaseResult(
            id=case_id,
            status=status,
            kind=kind,
            message=message,
            mistakes=mistakes,
            compile=(measured.compile[0], measured.compile[1]),
            first_mask=None if first is None else (first[0], first[1]),
            masks=slice(masks, len(self._mask[0])),
            accepts=slice(accepts, len(self._accept[0])),
            slowest=(measured.slowest[0], measured.slowest[1], measured.slowest[2]),
        )
        self.cases[case_id] = result
        return result

    # -- times, as arrays of nanoseconds; clock 0 is wall, 1 is CPU

    def compile_times(self, clock: int, ids: Sequence[str]) -> NDArray[np.int64]:
        """Of these cases, where they compiled."""
        return _integers([self.cases[i].compile[clock] for i in ids if self.cases[i].compiled])

    def first_mask_times(self, clock: int, ids: Sequence[str]) -> NDArray[np.int64]:
        """Of these cases, where there was a first mask."""
        return _integers([first[clock] for i in ids if (first := self.cases[i].first_mask) is not None])

    def mask_times(self, clock: int, ids: Sequence[str]) -> NDArray[np.int64]:
        """All masks of these cases."""
        return _joined(self._mask[clock], [self.cases[i].masks for i in ids])

    def accept_times(self, clock: int, ids: Sequence[str]) -> NDArray[np.int64]:
        """All tokens taken in these cases."""
        return _joined(self._accept[clock], [self.cases[i].accepts for i in ids])

    def with_status(self, *statuses: str) -> list[CaseResult]:
        """The cases of these statuses, in order."""
        return [case for case in self.cases.values() if case.status in statuses]


def _integers(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _joined(times: array[int], parts: list[slice]) -> NDArray[np.int64]:
    whole = np.frombuffer(times, dtype=np.int64) if len(times) else np.zeros(0, dtype=np.int64)
    return np.concatenate([whole[part] for part in parts]) if parts else whole[:0]


TIMES: dict[str, Callable[[EngineResults, int, Sequence[str]], NDArray[np.int64]]] = {
    "compile": EngineResults.compile_times,
    "first mask": EngineResults.first_mask_times,
    "mask": EngineResults.mask_times,
    "accept": EngineResults.accept_times,
}
"""What is timed. ``first mask`` is all that a request waits for: compile, start a sequence, compute one mask."""

CLOCKS = ("wall", "cpu")


def spreads(results: EngineResults, ids: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """{"compile": {"wall": {"p50": ...}, "cpu": ...}, ...} over these cases."""
    return {
        name: {clock: Spread.of(times(results, i, ids)).to_json() for i, clock in enumerate(CLOCKS)}
        for name, times in TIMES.items()
    }


def both_passed(one: EngineResults, other: EngineResults) -> list[str]:
    """Ids of the cases that both engines pass: there they did the same work."""
    return [
        case.id
        for case in one.with_status("passed")
        if case.id in other.cases and other.cases[case.id].status == "passed"
    ]


def summarize(results: EngineResults) -> dict[str, Any]:
    """The figures of one engine, ready for JSON. Times in microseconds."""
    statuses = Counter(case.status for case in results.cases.values())
    kinds = Counter(case.kind for case in results.with_status("refused", "crash"))
    mistakes = [{mistake.kind for mistake in case.mistakes} for case in results.cases.values()]
    calls, wall, cpu = results.forced_calls
    return {
        "version": results.version,
        "cases": len(results.cases),
        "statuses": {status: statuses[status] for status in STATUSES},
        "cases_over": sum("over" in kinds_of for kinds_of in mistakes),
        "cases_under": sum("under" in kinds_of for kinds_of in mistakes),
        "refusals": dict(kinds.most_common()),
        "times": spreads(results, list(results.cases)),
        "mask_histogram": logarithmic_histogram(results.mask_times(1, list(results.cases))),
        "compile_histogram": logarithmic_histogram(results.compile_times(1, list(results.cases))),
        "forced": {
            "tokens": results.forced_tokens,
            "known": results.forced_known,
            "share": round(results.forced_known / results.forced_tokens, 4) if results.forced_tokens else None,
            "call_mean_wall": round(wall / calls / 1000, 3) if calls else None,
            "call_mean_cpu": round(cpu / calls / 1000, 3) if calls else None,
        },
        "load_seconds": round(results.load_seconds, 3),
        "ready_megabytes": round(results.ready_bytes / 1e6, 1),
        "last_megabytes": round((results.resident or [results.ready_bytes])[-1] / 1e6, 1),
        "resident_megabytes": resident_curve(results.resident),
        "restarts": results.restarts,
    }


def resident_curve(resident: Sequence[int], points: int = 50) -> dict[str, list[float]]:
    """Memory after so many cases, at about so many points, the last among them."""
    step = max(len(resident) // points, 1)
    at = [*range(0, len(resident) - 1, step), len(resident) - 1] if resident else []
    return {"cases": [i + 1 for i in at], "megabytes": [round(resident[i] / 1e6, 1) for i in at]}


def case_records(results: EngineResults) -> dict[str, dict[str, Any]]:
    """Case id to its status and CPU times in microseconds, ready for JSON."""
    records = {}
    for case in results.cases.values():
        masks = results.mask_times(1, [case.id])
        record: dict[str, Any] = {"status": case.status}
        if case.kind or case.message:
            record["kind"], record["message"] = case.kind, case.message[:500]
        if case.mistakes:
            record["mistakes"] = [mistake.to_json() for mistake in case.mistakes]
        if case.compiled:
            record["compile"] = round(case.compile[1] / 1000, 1)
            record["masks"] = len(masks)
            record["mask_sum"] = round(float(masks.sum()) / 1000, 1)
            record["mask_max"] = round(case.slowest[0] / 1000, 1)
        records[case.id] = record
    return records
