"""Several outputs of one prompt."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask.decoding.parallel import compiled_once, run_all
from grammask.decoding.result import InvalidValue, Result, Usage
from grammask.decoding.strategy import Interruption, Strategy
from grammask.decoding.streams import StreamEvent, TextStream

if TYPE_CHECKING:
    from grammask.models import LanguageModel, Prompt

_SAMPLE_BIT = 40
"""The number of a sample stands in the high bits of its ``request``, above those that tell requests apart."""


@dataclass(frozen=True)
class Samples(Strategy):
    """``n`` outputs; ``Result.samples`` has all of them, and the Result itself is the first, with what all cost.

    Attributes:
        n: how many.
        strategy: how each one is made; None is in one pass.
    """

    n: int
    strategy: Strategy | None = None

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        from grammask.decoding.partial import partial_reader

        self.check(options)
        interruption = Interruption(options.get("cancelled"), options.get("timeout"))
        events = self._run(model, prompt, constraint, dict(options), interruption)
        return TextStream(events, cancel=interruption.cancel, partial=partial_reader(constraint))

    def check(self, options: Mapping[str, Any]) -> None:
        check_random(options)
        if self.strategy is not None:
            self.strategy.check(options)

    def _run(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: dict[str, Any], stop: Interruption
    ) -> Generator[StreamEvent, None, Result[Any]]:
        samples = draw_samples(model, prompt, constraint, options, n=self.n, strategy=self.strategy, stop=stop)
        if samples[0].text:
            yield StreamEvent(samples[0].text)
        return dataclasses.replace(samples[0], samples=tuple(samples), **together(samples))


def check_random(options: Mapping[str, Any]) -> None:
    """Raises ValueError where all samples would be equal."""
    sampling = options.get("sampling")
    if sampling is None or sampling.is_greedy:
        raise ValueError(
            "several greedy outputs are all equal: use a temperature above 0, as in Sampling(temperature=0.7)"
        )


def draw_samples(
    model: LanguageModel,
    prompt: Prompt,
    constraint: Any,
    options: Mapping[str, Any],
    *,
    n: int,
    strategy: Strategy | None,
    stop: Interruption,
) -> list[Result[Any]]:
    """Independent outputs: each draws its own random numbers, all of them from one seed."""
    sampling = options["sampling"]
    seed = options.get("seed")
    seed = sampling.seed if seed is None else seed
    shared = {**options, **stop.options(), "seed": secrets.randbits(63) if seed is None else seed}
    if shared.get("session") is not None:
        raise ValueError("several outputs cannot share one session: leave it out")

    wanted = compiled_once(model, constraint)

    def job(number: int) -> Callable[[LanguageModel], Result[Any]]:
        own = {**shared, "request": shared.get("request", 0) | number << _SAMPLE_BIT}

        def run(any_model: LanguageModel) -> Result[Any]:
            try:
                if strategy is None:
                    return any_model._stream_one(prompt, wanted, **own).result
                return strategy.stream(any_model, prompt, wanted, own).result
            except InvalidValue as error:
                return Result(None, error.text, False, "error", Usage(0, 0), error=str(error))

        return run

    return run_all(model, [job(number) for number in range(n)], at_once=n)


def together(samples: list[Result[Any]]) -> dict[str, Any]:
    """What several outputs cost in all, as fields of a Result."""
    usage = samples[0].usage
    for sample in samples[1:]:
        usage += sample.usage
    return {"usage": usage, "seconds": max(sample.seconds for sample in samples)}
