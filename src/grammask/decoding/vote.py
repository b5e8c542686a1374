"""Self-consistency: several samples, and a majority over what they say (Wang et al. 2023)."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask.decoding.samples import check_random, draw_samples, together
from grammask.decoding.strategy import Interruption, Strategy
from grammask.decoding.streams import StreamEvent, TextStream

if TYPE_CHECKING:
    from grammask.decoding.result import Result
    from grammask.models import LanguageModel, Prompt

TEMPERATURE = 0.7
"""Of the samples, when the call says nothing about sampling."""


class MissingField(ValueError):
    """A value does not have the member that is voted on."""


@dataclass(frozen=True)
class VoteReport:
    """How the samples voted.

    Attributes:
        counts: (what they said, how many said it), most votes first, then in the order of appearance.
        agreement: the share of all samples that said what won.
        tied: another one has as many votes; the one that appeared first won.
        invalid: samples without a complete, valid output; they have no vote.
        n: all samples.
    """

    counts: tuple[tuple[Any, int], ...]
    agreement: float
    tied: bool
    invalid: int
    n: int


@dataclass(frozen=True)
class Vote(Strategy):
    """``strategy="vote", n=5``: the output that most samples agree on. ``Result.vote`` is the VoteReport,
    ``Result.samples`` are the samples, and ``Result.usage`` is what all of them cost.

    Attributes:
        n: how many samples.
        field: compare only this part of the value: a member's name, or several with dots ("total.amount").
        key: compare what this function makes of the value, instead of ``field``.
        strategy: how each sample is made, ``Draft()`` for instance; None is in one pass.
    """

    n: int = 5
    field: str | None = None
    key: Callable[[Any], Any] | None = None
    strategy: Strategy | None = None

    def __post_init__(self) -> None:
        if self.n < 2:
            raise ValueError(f"a vote of {self.n}: use at least 2 samples")
        if self.field is not None and self.key is not None:
            raise ValueError("field and key both say what is compared: give one of them")

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        from grammask.decoding.partial import partial_reader
        from grammask.sampling import Sampling

        options = dict(options)
        if options.get("sampling") is None:
            options["sampling"] = Sampling(temperature=TEMPERATURE)
        self.check(options)
        interruption = Interruption(options.get("cancelled"), options.get("timeout"))
        events = self._run(model, prompt, constraint, options, interruption)
        return TextStream(events, cancel=interruption.cancel, partial=partial_reader(constraint))

    def check(self, options: Mapping[str, Any]) -> None:
        if options.get("sampling") is not None:
            check_random(options)
        if self.strategy is not None:
            self.strategy.check(options)

    def _run(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: dict[str, Any], stop: Interruption
    ) -> Generator[StreamEvent, None, Result[Any]]:
        samples = draw_samples(model, prompt, constraint, options, n=self.n, strategy=self.strategy, stop=stop)
        winner, report = self.count(samples)
        if winner.text:
            yield StreamEvent(winner.text)
        return dataclasses.replace(winner, samples=tuple(samples), vote=report, **together(samples))

    def count(self, samples: list[Result[Any]]) -> tuple[Result[Any], VoteReport]:
        """The first sample that says what most of them say (the first of all if none is valid), and the report."""
        ballots: dict[Any, list[tuple[Any, Result[Any]]]] = {}
        for sample in samples:
            if sample.complete:
                said = self._said(sample.value)
                ballots.setdefault(_ballot(said), []).append((said, sample))
        ranked = sorted(ballots.values(), key=len, reverse=True)  # stable, so first come, first served among ties
        invalid = len(samples) - sum(map(len, ranked))
        if not ranked:
            return samples[0], VoteReport((), 0.0, False, invalid, len(samples))
        counts = tuple((votes[0][0], len(votes)) for votes in ranked)
        tied = len(ranked) > 1 and len(ranked[0]) == len(ranked[1])
        return ranked[0][0][1], VoteReport(counts, len(ranked[0]) / len(samples), tied, invalid, len(samples))

    def _said(self, value: Any) -> Any:
        if self.key is not None:
            return self.key(value)
        for name in self.field.split(".") if self.field else ():
            try:
                value = value[name] if isinstance(value, Mapping) else getattr(value, name)
            except (KeyError, AttributeError) as error:
                raise MissingField(f"the output has no field {self.field!r} to vote on: {value!r}") from error
        return value


def _ballot(value: Any) -> str:
    """A text that is the same for equal values: JSON with sorted keys, where the order of a set does not count."""
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(map(_ballot, value))
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else repr(value)
