"""One case through one engine, timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from benchmarks.clocks import Stopwatch
from benchmarks.engines.base import Engine, Refused, Session


@dataclass(slots=True)
class Outcome:
    """What happened to one instance.

    Attributes:
        accepted: every token was allowed, and then the end of the text.
        position: how many tokens were allowed before the first that was not (all of them if none).
        error: why the engine gave up, "" if it did not.
    """

    accepted: bool
    position: int
    error: str = ""


@dataclass(slots=True)
class Measurement:
    """One case through one engine. Times are nanoseconds, as pairs or parallel lists of wall and CPU.

    Attributes:
        refusal: kind and message when the constraint was not compiled.
        compile: from the constraint's text to something that can start sequences.
        first_mask: from the text to the first mask (compile, start a sequence, mask).
        mask_wall, mask_cpu: every mask, in order.
        accept_wall, accept_cpu: every token taken.
        outcomes: one per instance, as far as they were reached.
        slowest: [CPU, instance, token position] of the slowest mask.
        forced: tokens of accepted instances, and how many of them the engine knew beforehand; None where it cannot say.
        forced_calls: how often the engine was asked for forced tokens, and the time for all calls.
        timed_out: the case took longer than allowed.
    """

    refusal: tuple[str, str] | None = None
    compile: tuple[int, int] = (0, 0)
    first_mask: tuple[int, int] | None = None
    mask_wall: list[int] = field(default_factory=list)
    mask_cpu: list[int] = field(default_factory=list)
    accept_wall: list[int] = field(default_factory=list)
    accept_cpu: list[int] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    slowest: tuple[int, int, int] = (0, 0, 0)
    forced: tuple[int, int] | None = None
    forced_calls: tuple[int, int, int] = (0, 0, 0)
    timed_out: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Measurement:
        """The inverse of ``to_json``."""
        outcomes = [Outcome(**outcome) for outcome in data.pop("outcomes")]
        return cls(**data, outcomes=outcomes)


class TookTooLong(Exception):
    """The time for a case is used up."""


class Case:
    """The measurement of one case, while it is going on."""

    def __init__(self, engine: Engine[Any], eos_token_id: int, watch: Stopwatch, seconds: float) -> None:
        self._engine = engine
        self._eos = eos_token_id
        self._watch = watch
        self._deadline = time.thread_time() + seconds
        self.result = Measurement()

    def run(self, kind: str, source: str, instances: Sequence[Sequence[int]], forced: bool) -> Measurement:
        """Compiles, feeds every instance, then asks for forced tokens along the accepted ones."""
        result, watch = self.result, self._watch
        compiler = self._engine.compiler(kind, source)
        try:
            compiled = watch(compiler)
        except Refused as refusal:
            result.refusal = (refusal.kind, str(refusal))
            return result
        finally:
            result.compile = (watch.wall, watch.cpu)
        try:
            self._check_time()
            for number, tokens in enumerate(instances):
                session = watch(partial(self._engine.session, compiled))
                if number == 0:
                    result.first_mask = (result.compile[0] + watch.wall, result.compile[1] + watch.cpu)
                result.outcomes.append(self._feed(session, number, tokens))
            if forced:
                for tokens, outcome in zip(instances, list(result.outcomes), strict=True):
                    if outcome.accepted:
                        self._count_forced(self._engine.session(compiled), tokens)
        except TookTooLong:
            result.timed_out = True
        return result

    def _check_time(self) -> None:
        if time.thread_time() > self._deadline:
            raise TookTooLong

    def _feed(self, session: Session, number: int, tokens: Sequence[int]) -> Outcome:
        for position, token in enumerate(tokens):
            error = self._mask(session, number, position)
            if error or not self._engine.allows(token):
                return Outcome(False, position, error or session.error())
            try:
                self._accept(session, token)
            except Exception as failure:  # whatever an engine raises in the middle of a sequence
                return Outcome(False, position, describe(failure))
            self._check_time()
        error = self._mask(session, number, len(tokens)) or session.error()
        return Outcome(not error and self._engine.allows(self._eos), len(tokens), error)

    def _mask(self, session: Session, number: int, position: int) -> str:
        """Computes and times a mask; returns the error, if there was one."""
        result, watch = self.result, self._watch
        try:
            watch(session.fill)
        except Exception as failure:  # likewise
            return describe(failure)
        result.mask_wall.append(watch.wall)
        result.mask_cpu.append(watch.cpu)
        if number == 0 and position == 0 and result.first_mask is not None:
            result.first_mask = (result.first_mask[0] + watch.wall, result.first_mask[1] + watch.cpu)
        if watch.cpu > result.slowest[0]:
            result.slowest = (watch.cpu, number, position)
        return ""

    def _accept(self, session: Session, token: int) -> None:
        self._watch(partial(session.accept, token))
        self.result.accept_wall.append(self._watch.wall)
        self.result.accept_cpu.append(self._watch.cpu)

    def _count_forced(self, session: Session, tokens: Sequence[int]) -> None:
        """Adds to the tokens of this instance those that the engine knew before they came.

        Tokens that are forced in another tokenization than the instance's own do not count.
        """
        if session.forced is None:
            return
        known, calls, wall, cpu, position = 0, 0, 0, 0, 0
        while position < len(tokens):
            ahead = self._watch(session.forced)
            calls, wall, cpu = calls + 1, wall + self._watch.wall, cpu + self._watch.cpu
            if ahead and list(tokens[position : position + len(ahead)]) == list(ahead):
                known += len(ahead)
                taken = len(ahead)
            else:
                taken = 1
            for token in tokens[position : position + taken]:
                session.accept(token)
            position += taken
            self._check_time()
        before = self.result.forced or (0, 0)
        self.result.forced = (before[0] + len(tokens), before[1] + known)
        total = self.result.forced_calls
        self.result.forced_calls = (total[0] + calls, total[1] + wall, total[2] + cpu)


def describe(failure: BaseException) -> str:
    """An exception in one line."""
    return f"{type(failure).__name__}: {failure}".splitlines()[0][:300]
