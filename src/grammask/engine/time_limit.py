"""How long a constraint may still be worked on.

The core looks at the clock while it builds. Front ends can think for long before they ask the core for anything, so
they call ``check`` in the loops that a hostile constraint can make long. Outside of ``compile`` there is no limit.

Compiled modules (``grammask._compiled``) do not give way to other threads by themselves. A call of interpreted code
does, and this module stays interpreted: so loops that may take long call ``check`` for that as well.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from time import monotonic

from grammask.engine.errors import RAISE_LIMITS, ConstraintTooLarge

_end: ContextVar[float] = ContextVar("end of the time limit", default=float("inf"))


class Limited:
    """A scope in which ``check`` raises once so many seconds of wall time are over."""

    __slots__ = ("_outer", "_seconds")
    _outer: Token[float]

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._outer = _end.set(monotonic() + self._seconds)

    def __exit__(self, *error: object) -> None:
        _end.reset(self._outer)


def check() -> None:
    """Raises if the time is over.

    Raises:
        ConstraintTooLarge: without a place; whoever knows it adds it.
    """
    if monotonic() > _end.get():
        raise ConstraintTooLarge("the time limit was reached", hint=RAISE_LIMITS)
