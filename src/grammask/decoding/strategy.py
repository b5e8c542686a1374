"""How outputs are made, beyond one pass: the common form of strategies, and their names.

A Strategy is a small value with settings. It makes a stream out of the streams of ``LanguageModel``, so it works for
hosted models as well, unless it says otherwise.
"""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammask.decoding.result import FinishReason
    from grammask.decoding.streams import TextStream
    from grammask.models import LanguageModel, Prompt


class Strategy(ABC):
    """A way of making an output."""

    @abstractmethod
    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        """The output as a stream.

        Args:
            options: those of ``LanguageModel._stream_one``.
        """

    def check(self, options: Mapping[str, Any]) -> None:  # noqa: B027 - most strategies take all options
        """Raises ValueError where options of ``generate`` do not go together with this strategy."""


NAMES = ("beam", "draft", "reasoning", "thinking", "vote")


def resolve_strategy(
    strategy: str | Strategy | None, *, n: int | None, method: str, particles: int | None
) -> Strategy | None:
    """The strategy that the arguments of ``generate`` ask for, None for a single pass.

    Raises:
        ValueError: an unknown name, or arguments that exclude each other.
    """
    from grammask.decoding.beam import BeamSearch
    from grammask.decoding.draft import Draft
    from grammask.decoding.reasoning import ReasoningField
    from grammask.decoding.samples import Samples
    from grammask.decoding.smc import SequentialMonteCarlo
    from grammask.decoding.thinking import Thinking
    from grammask.decoding.vote import Vote

    if n is not None and n < 1:
        raise ValueError(f"n is {n}: use at least 1")
    if method not in ("mask", "smc"):
        raise ValueError(f"method is {method!r}: use 'mask' or 'smc'")
    if method == "smc":
        if strategy is not None or (n or 1) > 1:
            raise ValueError("method='smc' makes one output of many particles: leave out strategy and n")
        return SequentialMonteCarlo() if particles is None else SequentialMonteCarlo(particles=particles)
    if particles is not None:
        raise ValueError("particles are for method='smc': add it, or leave particles out")
    if strategy is None:
        return None if n is None or n == 1 else Samples(n)
    if isinstance(strategy, str):
        kinds: dict[str, Callable[[], Strategy]] = {
            "beam": BeamSearch,
            "draft": Draft,
            "reasoning": ReasoningField,
            "thinking": Thinking,
            "vote": Vote,
        }
        if strategy not in kinds:
            raise ValueError(f"strategy is {strategy!r}: use one of {', '.join(NAMES)}, a Strategy, or None")
        strategy = kinds[strategy]()
    if not isinstance(strategy, Strategy):
        raise TypeError(f"strategy is a {type(strategy).__name__}: use a name or a Strategy such as grammask.Draft()")
    if n is None:
        return strategy
    if isinstance(strategy, BeamSearch):
        return dataclasses.replace(strategy, n=n, width=max(n, strategy.width))
    if isinstance(strategy, Vote):
        return dataclasses.replace(strategy, n=n)
    return strategy if n == 1 else Samples(n, strategy)


class Interruption:
    """Why an output should end at once, if it should. A strategy with several passes shares one among them.

    Args:
        cancelled: of the caller.
        timeout: seconds from the first question on; None is no limit.

    Raises:
        ValueError: a timeout that is not above 0.
    """

    def __init__(self, cancelled: Callable[[], bool] | None, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout is {timeout}: use a number of seconds above 0, or None")
        self._cancelled = cancelled
        self._timeout = timeout
        self._deadline: float | None = None
        self._is_set = False

    def cancel(self) -> None:
        """From any thread."""
        self._is_set = True

    def reason(self) -> FinishReason | None:
        """Why to end, or None to go on."""
        if self._is_set or (self._cancelled is not None and self._cancelled()):
            return "cancelled"
        if self._timeout is not None:
            now = time.monotonic()
            self._deadline = now + self._timeout if self._deadline is None else self._deadline
            if now >= self._deadline:
                return "timeout"
        return None

    def options(self) -> dict[str, Any]:
        """The options ``cancelled`` and ``timeout`` of the next pass."""
        self.reason()
        left = None if self._deadline is None else max(self._deadline - time.monotonic(), 1e-9)
        return {"cancelled": lambda: self.reason() == "cancelled", "timeout": left}
