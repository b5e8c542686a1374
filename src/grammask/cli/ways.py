"""How ``grammask generate`` makes outputs: strategies, samples and methods as options."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import TYPE_CHECKING, Any

from grammask.cli.console import UsageError

if TYPE_CHECKING:
    from grammask.decoding import Strategy


class StrategyName(str, Enum):
    """``--strategy``."""

    BEAM = "beam"
    DRAFT = "draft"
    REASONING = "reasoning"
    THINKING = "thinking"
    VOTE = "vote"


class Method(str, Enum):
    """``--method``."""

    MASK = "mask"
    SMC = "smc"


class Truncate(str, Enum):
    """``--truncate``."""

    NEVER = "never"
    ALLOW = "allow"


@dataclasses.dataclass(frozen=True)
class Way:
    """How outputs are made."""

    strategy: StrategyName | None
    n: int | None
    vote_on: str | None
    method: Method
    particles: int | None

    def __post_init__(self) -> None:
        from grammask.decoding.strategy import resolve_strategy

        if self.vote_on is not None and self.strategy is not StrategyName.VOTE:
            raise UsageError("--vote-on goes with --strategy vote")
        try:
            resolve_strategy(**self.options())
        except ValueError as error:
            raise UsageError(str(error)) from error

    @property
    def default_temperature(self) -> float:
        if self.method is Method.SMC:
            return 1.0
        if self.strategy is StrategyName.BEAM:
            return 0.0
        return 0.7 if self.strategy is StrategyName.VOTE or (self.n or 1) > 1 else 0.0

    def check(self, options: dict[str, Any]) -> None:
        """Raises UsageError where options of ``generate`` do not go together with this way."""
        from grammask.decoding.strategy import resolve_strategy

        strategy = resolve_strategy(**self.options())
        try:
            if strategy is not None:
                strategy.check(options)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def options(self) -> dict[str, Any]:
        """As ``generate`` takes them."""
        from grammask.decoding import Vote

        strategy: str | Strategy | None = None if self.strategy is None else self.strategy.value
        if self.vote_on is not None:
            strategy = Vote(field=self.vote_on)
        return {"strategy": strategy, "n": self.n, "method": self.method.value, "particles": self.particles}
