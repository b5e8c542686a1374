"""What a generation returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from grammask.decoding.smc import ParticleReport
    from grammask.decoding.vote import VoteReport
    from grammask.sampling import SampledToken, SamplingSummary

T = TypeVar("T")

FinishReason = Literal["stop", "stop_sequence", "length", "cancelled", "timeout", "error"]
"""Why an output ended.

``stop``            the model chose to end, or nothing could follow. (``limited`` tells whether the limit led there.)
``stop_sequence``   a stop text or a stop token appeared.
``length``          ``max_tokens`` or the model's context was used up where more could have followed.
``cancelled``       the caller asked to end.
``timeout``         the call's ``timeout`` ran out.
``error``           generation failed; only ``generate_many`` reports failures this way.
"""


class InvalidValue(ValueError):
    """A valid text that the type's own checks refuse: those that a constraint cannot express, such as Pydantic
    validators. The cause is what the type raised.

    Attributes:
        text: the output.
    """

    def __init__(self, text: str, error: Exception) -> None:
        self.text = text
        super().__init__(f"the output is well-formed, but its type refuses it: {error}")


@dataclass(frozen=True)
class Usage:
    """What an output cost. Two usages add up.

    Attributes:
        prompt_tokens: tokens of the prompt, special tokens included.
        completion_tokens: tokens of the output, an end-of-text token that the model chose included.
        forced_tokens: those of them that the constraint left no choice about, so that the model was not asked.
        model_calls: forward passes; reading the prompt, in however many blocks, is part of the first.
        cached_tokens: tokens of the prompt whose keys and values were there from an earlier call.
    """

    prompt_tokens: int
    completion_tokens: int
    forced_tokens: int = 0
    model_calls: int = 0
    cached_tokens: int = 0

    @property
    def sampled_tokens(self) -> int:
        """Tokens of the output that were drawn from the model's distribution."""
        return self.completion_tokens - self.forced_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.forced_tokens + other.forced_tokens,
            self.model_calls + other.model_calls,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True)
class Result(Generic[T]):
    """One output.

    Attributes:
        value: the output parsed as the constraint says: the Python type asked for, the JSON value, or the text itself.
            None if the output is not complete.
        text: the output as text. If it was cut inside a character, that character is left out.
        complete: the whole output is valid under the constraint; not so when it was cut too early.
        finish_reason: why it ended.
        usage: token and model-call counts; of a strategy with several passes or samples, all of them together.
        tokens: each token of the output with its log-probabilities and the sampler's report; an end-of-text token that
            the model chose is the last of them. Empty where a hosted model does not tell.
        pieces: the bytes that each of ``tokens`` adds to the output; none for special tokens.
        seed: with this seed, the same call gives the same output; None where it is unknown.
        system_fingerprint: what decided the model's logits, in one short name: with an equal one and an equal seed,
            equal calls are expected to give equal outputs (``grammask.system_fingerprint`` tells what is in it).
        seconds: wall time of the whole call.
        prompt_seconds: the part of it up to the end of the first forward pass, which reads the prompt.
        limited: the token limit had a say: it forbade a token that the constraint alone allows, so that the output
            could be completed, or the finish reason is "length".
        reasoning: what the model wrote before (or beside) the output: a draft, a reasoning field, thinking.
        samples: all outputs, where ``n`` of them were asked for or voted.
        vote: how the samples voted.
        particles: how sequential Monte Carlo went.
        history: earlier attempts, where the output was asked for again.
        trace: the steps of the program that it was part of.
        error: why there is no output, with the finish reason "error".
    """

    value: T | None
    text: str
    complete: bool
    finish_reason: FinishReason
    usage: Usage
    tokens: tuple[SampledToken, ...] = field(default=(), repr=False)
    pieces: tuple[bytes, ...] = field(default=(), repr=False)
    seed: int | None = field(default=None, repr=False)
    system_fingerprint: str | None = field(default=None, repr=False)
    seconds: float = field(default=0.0, repr=False)
    prompt_seconds: float = field(default=0.0, repr=False)
    limited: bool = field(default=False, repr=False)
    reasoning: str | None = field(default=None, repr=False)
    samples: tuple[Result[T], ...] = field(default=(), repr=False)
    vote: VoteReport | None = field(default=None, repr=False)
    particles: ParticleReport | None = field(default=None, repr=False)
    history: tuple[Any, ...] = field(default=(), repr=False)
    trace: Any = field(default=None, repr=False)
    error: str | None = field(default=None, repr=False)

    @property
    def token_ids(self) -> list[int]:
        """The ids of ``tokens``."""
        return [token.token_id for token in self.tokens]

    @property
    def logprobs(self) -> list[float]:
        """For each token, the natural logarithm of the probability that it was drawn with: after mask, temperature and
        cuts. 0.0 where nothing else was possible. ``tokens`` has the model's own, if ``Sampling(logprobs=True)`` asked
        for it."""
        return [token.final_logprob for token in self.tokens]

    @property
    def logprob(self) -> float:
        """Natural logarithm of the probability of drawing this sequence of tokens: the sum of ``logprobs``."""
        return math.fsum(self.logprobs)

    @property
    def sampling_summary(self) -> SamplingSummary:
        """The sampler's reports summed up, the probability mass that the constraint kept among them."""
        from grammask.sampling import SamplingSummary

        return SamplingSummary.of(token.report for token in self.tokens)

    @property
    def tokens_per_second(self) -> float:
        """Tokens of the output per second after the prompt was read; 0.0 if there was no such time."""
        seconds = self.seconds - self.prompt_seconds
        return self.usage.completion_tokens / seconds if seconds > 0 else 0.0

    def _repr_html_(self) -> str:
        from grammask.display import result_html

        html: str = result_html(self)
        return html

    def __rich__(self) -> Any:
        from grammask.display import result_rich

        return result_rich(self)
