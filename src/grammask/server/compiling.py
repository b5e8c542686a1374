"""Compiled constraints, kept by what they say, and compiled outside of the event loop.

Two lanes keep a slow or hostile constraint from holding up the others. Everything starts in the quick lane, with a
fraction of a second; what does not fit there goes on in the slow lane, one at a time, with the full limits, and apart
from the states and masks of all others, which would have to wait for it. Both queues are bounded. Refusals are kept
like constraints, so a bad constraint that is sent again costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from grammask.engine.compile import CompiledConstraint, Limits, compile
from grammask.engine.errors import ConstraintError, ConstraintTooLarge
from grammask.engine.time_limit import Limited
from grammask.engine.vocabulary import Vocabulary
from grammask.server.errors import ApiError, invalid, overloaded
from grammask.server.metrics import Metrics
from grammask.server.wanted import Wanted, constraint_error

QUICK_SECONDS = 0.3
QUICK_EXPRESSIONS = 50_000
MAX_QUICK = 64
MAX_SLOW = 4
SEARCHES = 4
"""For a first completion, a quarter of a second each."""


@dataclass
class _Entry:
    """What came of a constraint.

    Attributes:
        apart: it shares nothing with others.
    """

    compiled: CompiledConstraint | None = None
    error: ApiError | None = None
    apart: bool = False

    def own_bytes(self) -> int:
        """Memory that is freed with it."""
        return self.compiled.memory_bytes()["total"] if self.compiled is not None and self.apart else 0


class CompileCache:
    """Compiles for one vocabulary. Used from one event loop.

    Args:
        vocabulary: of the model.
        limits: of one constraint.
        max_entries: constraints and refusals that are kept; the one unused for longest goes first.
        max_bytes: of a constraint as the client sends it.
    """

    def __init__(
        self, vocabulary: Vocabulary, limits: Limits, *, max_entries: int, max_bytes: int, metrics: Metrics
    ) -> None:
        self._vocabulary = vocabulary
        self._limits = limits
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._metrics = metrics
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._pending: dict[str, asyncio.Task[_Entry]] = {}
        self._quick = ThreadPoolExecutor(1, thread_name_prefix="compile-quick")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="compile-slow")
        self._waiting = {"quick": 0, "slow": 0}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, wanted: Wanted) -> CompiledConstraint:
        """The constraint, compiled now or before.

        Raises:
            ApiError: 400, it cannot be enforced or is too large; 429, too many others are being compiled.
        """
        if wanted.size > self._max_bytes:
            raise invalid(
                f"the constraint has {wanted.size} bytes, more than the {self._max_bytes} that the server takes",
                wanted.param,
                "constraint_too_large",
            )
        entry = self._entries.get(wanted.key)
        if entry is not None:
            self._entries.move_to_end(wanted.key)
            self._metrics.compile_cache.labels("hit").inc()
        else:
            entry = await self._compiled(wanted)
        if entry.compiled is None:
            assert entry.error is not None
            raise entry.error
        return entry.compiled

    def refuse(self, wanted: Wanted, error: ApiError) -> None:
        """From now on the constraint is refused: it has turned out to be too slow."""
        self._entries[wanted.key] = _Entry(error=error)

    async def _compiled(self, wanted: Wanted) -> _Entry:
        task = self._pending.get(wanted.key)
        if task is None:
            self._metrics.compile_cache.labels("miss").inc()
            task = self._pending[wanted.key] = asyncio.ensure_future(self._compile(wanted))
            task.add_done_callback(lambda _: self._pending.pop(wanted.key, None))
        else:
            self._metrics.compile_cache.labels("joined").inc()
        # The task belongs to everyone who waits for it: that one of them hangs up must not end it.
        return await asyncio.shield(task)

    async def _compile(self, wanted: Wanted) -> _Entry:
        quick = replace(
            self._limits,
            expressions=min(QUICK_EXPRESSIONS, self._limits.expressions),
            seconds=min(QUICK_SECONDS, self._limits.seconds),
        )
        try:
            entry = await self._run("quick", wanted, quick)
            if entry is None:
                entry = await self._run("slow", wanted, self._limits)
        except ApiError as refused:
            return _Entry(error=refused)  # for lack of room: the next one may try again
        if entry is None:
            entry = _Entry(
                error=invalid(
                    f"the constraint is too large: it takes more than {self._limits.seconds:g} seconds or "
                    f"{self._limits.expressions} expressions to compile. Simplify it",
                    wanted.param,
                    "constraint_too_large",
                )
            )
        self._entries[wanted.key] = entry
        self._evict(keep=wanted.key)
        return entry

    def _evict(self, keep: str) -> None:
        """Lets the entries go that were not used for longest: while there are too many, and of those that were compiled
        apart while they take more memory than all others together may."""
        unwanted = list(self._entries)[: max(0, len(self._entries) - self._max_entries)]
        sizes = {
            key: size for key, entry in self._entries.items() if key not in unwanted and (size := entry.own_bytes())
        }
        excess = sum(sizes.values()) - self._vocabulary.cache_budget
        for key, size in sizes.items():
            if excess > 0 and key != keep:
                unwanted.append(key)
                excess -= size
        for key in unwanted:
            del self._entries[key]
            self._metrics.compile_cache.labels("evicted").inc()

    async def _run(self, lane: str, wanted: Wanted, limits: Limits) -> _Entry | None:
        """None if the limits were reached."""
        executor, most = (self._quick, MAX_QUICK) if lane == "quick" else (self._slow, MAX_SLOW)
        if self._waiting[lane] >= most:
            raise overloaded("too many constraints are being compiled: try again", 1 if lane == "quick" else 5)
        self._waiting[lane] += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(executor, self._compile_now, wanted, limits, lane)
        finally:
            self._waiting[lane] -= 1

    def _compile_now(self, wanted: Wanted, limits: Limits, lane: str) -> _Entry | None:
        start = time.perf_counter()
        apart = lane == "slow"
        try:
            vocabulary = self._vocabulary.apart() if apart else self._vocabulary
            with Limited(limits.seconds):  # some constraints are read when they are made
                constraint = wanted.build()
            compiled = compile(constraint, vocabulary, limits)
            if apart:
                _look_for_completion(compiled)
            return _Entry(compiled=compiled, apart=apart)
        except ConstraintTooLarge:
            return None
        except ConstraintError as error:
            return _Entry(error=constraint_error(error, wanted.param))
        except ApiError as error:
            return _Entry(error=error)
        except RecursionError:
            return _Entry(error=invalid("the constraint is nested too deeply", wanted.param, "constraint_too_large"))
        finally:
            self._metrics.compile_seconds.labels(lane).observe(time.perf_counter() - start)

    def close(self) -> None:
        """Ends the workers once they are idle."""
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)


def _look_for_completion(compiled: CompiledConstraint) -> None:
    """A search that is given up goes on where it was when it is asked for again. Better here than when an output, with
    others beside it, needs a completion."""
    matcher = compiled.matcher()
    for _ in range(SEARCHES):
        if matcher.shortest_completion() is not None:
            return
