"""Compiling constraints beside an engine's loop: once per description, on threads of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

from grammask.engine.errors import ConstraintError

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.engine.compile import CompiledConstraint
    from grammask.engine.vocabulary import Vocabulary


class Compilations:
    """Compiled constraints by what describes them, the most recently used ones.

    Args:
        vocabulary: makes the vocabulary when the first constraint needs it.
        on_error: told of a constraint that cannot be compiled; the empty text then takes its place, so that an engine's
            loop goes on and that one request ends at once. None: the future has the error.
        capacity: constraints to keep. What they share is kept by the vocabulary in any case.
        threads: how many may be compiled at once.
    """

    def __init__(
        self,
        vocabulary: Callable[[], Vocabulary],
        *,
        on_error: Callable[[ConstraintError], None] | None = None,
        capacity: int = 512,
        threads: int = 2,
    ) -> None:
        self._vocabulary = vocabulary
        self._on_error = on_error
        self._capacity = capacity
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="grammask-compile")
        self._known: OrderedDict[str, Future[CompiledConstraint]] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, key: str, constraint: Callable[[], Constraint]) -> Future[CompiledConstraint]:
        """The compiled constraint, if need be from now on in the background.

        Args:
            key: equal keys stand for equal constraints.
            constraint: makes it; what it raises is the exception of the future.
        """
        with self._lock:
            future = self._known.pop(key, None)
            if future is None:
                future = self._pool.submit(self._compile, constraint)
            self._known[key] = future
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)
        return future

    def _compile(self, constraint: Callable[[], Constraint]) -> CompiledConstraint:
        from grammask.engine.compile import compile

        try:
            return compile(constraint(), self._vocabulary())
        except ConstraintError as error:
            if self._on_error is None:
                raise
            self._on_error(error)
            return compile("", self._vocabulary())

    def close(self) -> None:
        """Ends the threads; constraints that are waiting are not compiled."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def check_constraint(constraint: Constraint) -> None:
    """Compiles a constraint for the 256 bytes, where no model's tokenizer is at hand: finds whatever is wrong with it
    but special tokens, whose ids belong to a model.

    Raises:
        ConstraintError: it cannot be enforced.
    """
    from grammask.engine.compile import compile

    compile(constraint, _bytes_vocabulary())


@lru_cache(maxsize=1)
def _bytes_vocabulary() -> Vocabulary:
    from grammask.engine.vocabulary import Vocabulary

    return Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
