"""Draft, then constrain: a free pass in which the model thinks as it likes, then a constrained one that has read it.

A constraint that holds from the first token leaves a model no room to work the answer out, and pushes it onto texts
that it finds unlikely. Here the constraint comes second: the draft is context, and the constrained pass only has to
bring it into form (draft-conditioned constrained decoding).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask.decoding.strategy import Interruption, Strategy
from grammask.decoding.streams import StreamEvent, TextStream

if TYPE_CHECKING:
    from grammask.decoding.result import Result
    from grammask.models import LanguageModel, Prompt
    from grammask.sampling import Sampling

INSTRUCTION = "Now write the final answer in the required form, and nothing else."


@dataclass(frozen=True)
class Draft(Strategy):
    """``strategy="draft"``. The draft is streamed on the channel "reasoning" and kept as ``Result.reasoning``.

    Attributes:
        max_tokens: the longest draft; a longer one is cut, which does no harm.
        instruction: what is asked after the draft, as the user's next message (for a plain prompt: as a paragraph).
        sampling: for the draft; None is as for the output.
        stop: texts that end the draft.
    """

    max_tokens: int = 256
    instruction: str = INSTRUCTION
    sampling: Sampling | None = None
    stop: str | tuple[str, ...] = ()

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        from grammask.decoding.partial import partial_reader

        interruption = Interruption(options.get("cancelled"), options.get("timeout"))
        events = self._run(model, prompt, constraint, dict(options), interruption)
        return TextStream(events, cancel=interruption.cancel, partial=partial_reader(constraint))

    def _run(
        self,
        model: LanguageModel,
        prompt: Prompt,
        constraint: Any,
        options: dict[str, Any],
        interruption: Interruption,
    ) -> Generator[StreamEvent, None, Result[Any]]:
        free = {
            **options,
            **interruption.options(),
            "max_tokens": self.max_tokens,
            "truncate": "allow",
            "stop": self.stop,
        }
        if self.sampling is not None:
            free["sampling"] = self.sampling
        first = model._stream_one(prompt, None, **free)
        for event in first.events():
            yield StreamEvent(event.text, "reasoning")
        draft = first.result
        if draft.finish_reason in ("cancelled", "timeout"):
            return dataclasses.replace(draft, text="", value=None, complete=False, reasoning=draft.text, tokens=())
        second = model._stream_one(
            self._with_draft(prompt, draft.text), constraint, **{**options, **interruption.options(), "heal": False}
        )
        yield from second.events()
        result = second.result
        return dataclasses.replace(
            result,
            usage=draft.usage + result.usage,
            seconds=draft.seconds + result.seconds,
            prompt_seconds=draft.prompt_seconds,
            reasoning=draft.text,
        )

    def _with_draft(self, prompt: Prompt, draft: str) -> Prompt:
        if isinstance(prompt, str):
            return f"{prompt}{draft}\n\n{self.instruction}\n"
        said = {"role": "assistant", "content": draft}
        return [*prompt, said, {"role": "user", "content": self.instruction}]
