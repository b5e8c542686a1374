"""Beam search under a constraint: the likeliest valid outputs, as far as a beam can see.

A hypothesis is a sequence of tokens that the constraint allows. Its score is the sum of the log-probabilities that the
model itself gives to its tokens, end of text included, divided by its number of tokens to the power of
``length_penalty`` (the normalization of transformers; Wu et al. 2016 use another base). The mask excludes, it does not
renormalize: a beginning that leads the model into a corner pays for it, which drawing under masks never does.

At each step all hypotheses are extended by every allowed token, and the ``width`` best go on. Those that end are set
aside at once, whatever their rank, and the search is over when no hypothesis that goes on could still beat the ``n``
best of them. With a width of at least the number of valid beginnings of each length, nothing is ever dropped, and the
outputs are the n best there are. (Of one hypothesis, at most ``MAX_ASKED`` extensions, or the width, are looked at.)

Two spellings of one text are different hypotheses. Of equal texts, the best one counts. Covered by
tests/decoding/test_beam.py.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.decoding.budget import MAX_ASKED, completion_within, known_completion
from grammask.decoding.output import Output, resolve_output
from grammask.decoding.result import FinishReason, InvalidValue, Result, Usage
from grammask.decoding.strategy import Interruption, Strategy
from grammask.decoding.streams import StreamEvent, TextStream

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.models import LanguageModel, Model, Prompt
    from grammask.models.batch import SequenceBatch
    from grammask.sampling import SampledToken, Sampling

_PLAIN = {"temperature", "seed", "max_tokens", "logprobs"}
"""What ``Sampling`` may set: everything else would change the distribution that is searched."""


@dataclass(frozen=True)
class BeamSearch(Strategy):
    """``strategy="beam"``. The Result is the best hypothesis, ``Result.samples`` has the ``n`` best, best first.

    Nothing is drawn. ``Result.logprob`` is the sum that the score is made of. Where ``max_tokens`` leaves no room for
    the end of text, an output counts as ended there.

    Attributes:
        width: how many hypotheses are followed.
        length_penalty: the exponent of the length in the score. 0 compares sums, which favours short outputs; 1
            compares means per token; more favours long outputs, and less than 0 short ones.
        n: how many outputs to return, at most ``width``.
    """

    width: int = 4
    length_penalty: float = 1.0
    n: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width is {self.width}: use at least 1")
        if not 1 <= self.n <= self.width:
            raise ValueError(f"n is {self.n}: use 1 to {self.width}, which is the width of the beam")
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty is {self.length_penalty}: use a finite number")

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        """See Strategy. The text comes in one piece, at the end.

        Raises:
            ModelError: a hosted model, which does not show its logits.
            ValueError: options that do not go together with beam search.
        """
        from grammask.models.base import Model
        from grammask.models.errors import ModelError
        from grammask.sampling import Sampling

        if not isinstance(model, Model):
            raise ModelError(f"{model.name} does not show its logits, so there is no beam search over its outputs")
        self.check(options)
        sampling = options.get("sampling") or Sampling(temperature=0)
        output = resolve_output(constraint, model.vocabulary)
        interruption = Interruption(options.get("cancelled"), options.get("timeout"))
        search = _Search(self, model, prompt, output, sampling, dict(options), interruption)
        return TextStream(search.events(), cancel=interruption.cancel, partial=output.partial)

    def check(self, options: Mapping[str, Any]) -> None:
        for name in ("stop", "heal", "session", "thinking"):
            if options.get(name):
                raise ValueError(f"{name} does not go together with beam search: leave it out")
        sampling = options.get("sampling")
        if sampling is None:
            return
        neutral = type(sampling)()
        for setting in fields(sampling):
            name = setting.name
            if name not in _PLAIN and getattr(sampling, name) != getattr(neutral, name):
                raise ValueError(f"{name} changes the distribution that beam search looks through: leave it out")
        if not sampling.is_greedy and sampling.temperature != 1:
            raise ValueError(f"temperature is {sampling.temperature}, but beam search draws nothing: leave it out")

    def score(self, logprob: float, length: int) -> float:
        """The score of ``length`` tokens with this sum of log-probabilities."""
        return float(logprob / length**self.length_penalty)

    def best_score(self, logprob: float, length: int, max_tokens: int) -> float:
        """An upper bound of the scores of what a hypothesis can be extended to."""
        return max(self.score(logprob, length + 1), self.score(logprob, max_tokens))


@dataclass(frozen=True)
class _Hypothesis:
    """A beginning of an output, or a whole one.

    Attributes:
        slot: its sequence in the batch; None once it has ended.
        plan: tokens that complete it, None if none are known.
        row: log-probabilities of the next token, float64 [vocabulary size].
    """

    matcher: Matcher
    slot: int | None
    plan: list[int] | None = None
    tokens: tuple[SampledToken, ...] = ()
    logprob: float = 0.0
    row: NDArray[np.float64] | None = None
    finish_reason: FinishReason = "stop"


@dataclass(frozen=True)
class _Extension:
    """A hypothesis and one more token."""

    parent: _Hypothesis
    token: SampledToken
    logprob: float


class _Search:
    def __init__(
        self,
        beam: BeamSearch,
        model: Model,
        prompt: Prompt,
        output: Output,
        sampling: Sampling,
        options: Mapping[str, Any],
        interruption: Interruption,
    ) -> None:
        from grammask.decoding.generate import token_limit

        self._beam = beam
        self._model = model
        self._output = output
        self._prompt_ids = model.encode(prompt)
        self._limit = token_limit(model, self._prompt_ids, options.get("max_tokens"), sampling)
        self._may_cut = options.get("truncate", "never") == "allow"
        self._interruption = interruption
        self._ends: frozenset[int] = frozenset(model.vocabulary.eos_token_ids)
        self._ended: list[_Hypothesis] = []
        self._calls = 0
        self._written = 0
        self._limited = False

    def events(self) -> Generator[StreamEvent, None, Result[Any]]:
        from grammask.models.batch import sequence_batch

        start = time.perf_counter()
        matcher = self._output.compiled.matcher()
        if self._may_cut:
            plan = known_completion(matcher)
        else:
            plan = completion_within(matcher, self._limit, self._model.vocabulary)
        batch = sequence_batch(self._model)
        slot = batch.add()
        rows = batch.forward({slot: self._prompt_ids})
        self._calls += 1
        live = [_Hypothesis(matcher, slot, plan, row=_log_softmax(rows[slot]))]
        prompt_seconds = time.perf_counter() - start
        interrupted: FinishReason | None = None
        while live and not self._is_decided(live):
            interrupted = self._interruption.reason()
            if interrupted is not None:
                break
            live = self._advance(live, batch)
        best = self._best(live, interrupted or "length")
        samples = [self._result(hypothesis, time.perf_counter() - start, prompt_seconds) for hypothesis in best]
        if samples[0].text:
            yield StreamEvent(samples[0].text)
        usage = Usage(len(self._prompt_ids), self._written, 0, self._calls)
        return replace(samples[0], usage=usage, samples=tuple(samples))

    # -- one step

    def _advance(self, live: Sequence[_Hypothesis], batch: SequenceBatch) -> list[_Hypothesis]:
        """The hypotheses that go on, one token longer; those that end are set aside."""
        for parent in live:
            self._set_ends_aside(parent)
        # Merging is stable: of equal ones, that of the better parent comes first, and below one parent the lower token.
        ranked = heapq.merge(*map(self._extensions, live), key=lambda extension: -extension.logprob)
        chosen: list[tuple[_Extension, _Hypothesis]] = []
        for extension in ranked:
            matcher = extension.parent.matcher.copy()
            token_id, length = extension.token.token_id, len(extension.parent.tokens) + 1
            if not matcher.accept(token_id):
                raise RuntimeError(
                    f"the matcher refuses token {token_id}, which it allowed: please report this as a bug"
                )
            plan = _plan_after(extension, matcher)
            longer = _Hypothesis(matcher, extension.parent.slot, plan, _tokens(extension), extension.logprob)
            if not self._may_cut and (plan is None or length + len(plan) > self._limit):
                self._limited = True
            elif length == self._limit:
                self._set_aside(replace(longer, slot=None, finish_reason=self._reason_at_limit(matcher)))
            else:
                chosen.append((extension, longer))
                if len(chosen) == self._beam.width:
                    break
        self._written += len(chosen)
        return self._read(live, chosen, batch)

    def _set_ends_aside(self, parent: _Hypothesis) -> None:
        """The outputs that are complete with this hypothesis."""
        if not parent.matcher.is_complete:
            return
        if not self._ends:
            self._set_aside(parent)
        for token_id in sorted(self._ends):
            extension = self._extension(parent, token_id, self._allowed(parent))
            if extension.logprob > -math.inf:
                self._set_aside(_Hypothesis(parent.matcher, None, [], _tokens(extension), extension.logprob))

    def _extensions(self, parent: _Hypothesis) -> Iterator[_Extension]:
        """The extensions of a hypothesis that go on, best first: the likeliest, and the one that leads to an end."""
        assert parent.row is not None
        ids = self._allowed(parent)
        logprobs = parent.row[ids]
        going_on = ids[np.argsort(-logprobs, kind="stable")]
        going_on = going_on[~np.isin(going_on, list(self._ends)) & (parent.row[going_on] > -math.inf)]
        asked = going_on[: max(MAX_ASKED, self._beam.width)].tolist()
        if parent.plan and parent.plan[0] not in asked and parent.plan[0] in going_on:
            asked.append(parent.plan[0])
        return (self._extension(parent, token_id, ids) for token_id in asked)

    def _allowed(self, parent: _Hypothesis) -> NDArray[np.int32]:
        return parent.matcher.allowed_token_ids()

    def _extension(self, parent: _Hypothesis, token_id: int, allowed: NDArray[np.int32]) -> _Extension:
        from grammask.sampling.report import SampledToken, StepReport

        assert parent.row is not None
        logprob = float(parent.row[token_id])
        mass = min(1.0, float(np.exp(parent.row[allowed]).sum()))
        report = StepReport(len(parent.tokens), mask_mass=mass, allowed=len(allowed), greedy=True)
        return _Extension(parent, SampledToken(token_id, logprob, logprob, (), (), report), parent.logprob + logprob)

    def _read(
        self, live: Sequence[_Hypothesis], chosen: Sequence[tuple[_Extension, _Hypothesis]], batch: SequenceBatch
    ) -> list[_Hypothesis]:
        """One forward pass over the new tokens. The first extension of a hypothesis takes over its sequence."""
        taken: set[int] = set()
        slots = []
        for extension, _ in chosen:
            slot = extension.parent.slot
            assert slot is not None
            slots.append(batch.fork(slot) if slot in taken else slot)
            taken.add(slot)
        for hypothesis in live:
            if hypothesis.slot is not None and hypothesis.slot not in taken:
                batch.remove(hypothesis.slot)
        if not chosen:
            return []
        unread = {slot: [extension.token.token_id] for slot, (extension, _) in zip(slots, chosen, strict=True)}
        rows = batch.forward(unread)
        self._calls += 1
        return [
            replace(longer, slot=slot, row=_log_softmax(rows[slot]))
            for slot, (_, longer) in zip(slots, chosen, strict=True)
        ]

    def _reason_at_limit(self, matcher: Matcher) -> FinishReason:
        """Why an output ends that has used up its tokens."""
        nothing_follows = matcher.is_complete and not set(matcher.allowed_token_ids().tolist()) - self._ends
        return "stop" if nothing_follows else "length"

    # -- what has ended

    def _set_aside(self, hypothesis: _Hypothesis) -> None:
        """Keeps the n best of the texts that have ended."""
        best: dict[bytes, _Hypothesis] = {}
        for each in sorted([*self._ended, hypothesis], key=self._order):
            best.setdefault(self._bytes(each), each)
        self._ended = list(best.values())[: self._beam.n]

    def _order(self, hypothesis: _Hypothesis) -> tuple[bool, float]:
        """Complete outputs come before those that were cut."""
        return not self._is_complete(hypothesis), -self._beam.score(hypothesis.logprob, max(1, len(hypothesis.tokens)))

    def _is_complete(self, hypothesis: _Hypothesis) -> bool:
        return hypothesis.matcher.is_complete

    def _is_decided(self, live: Sequence[_Hypothesis]) -> bool:
        """Whether none of the hypotheses that go on could be among the n best."""
        if len(self._ended) < self._beam.n or not self._is_complete(self._ended[-1]):
            return False
        worst = self._beam.score(self._ended[-1].logprob, max(1, len(self._ended[-1].tokens)))
        return all(
            self._beam.best_score(hypothesis.logprob, len(hypothesis.tokens), self._limit) <= worst
            for hypothesis in live
        )

    def _best(self, live: Sequence[_Hypothesis], reason: FinishReason) -> list[_Hypothesis]:
        if self._ended:
            return self._ended
        return [replace(max(live, key=lambda hypothesis: hypothesis.logprob), finish_reason=reason)]

    # -- results

    def _bytes(self, hypothesis: _Hypothesis) -> bytes:
        vocabulary = self._model.vocabulary
        return b"".join(vocabulary.token_bytes(token.token_id) or b"" for token in hypothesis.tokens)

    def _result(self, hypothesis: _Hypothesis, seconds: float, prompt_seconds: float) -> Result[Any]:
        from grammask.models.fingerprint import fingerprint_of_results

        vocabulary = self._model.vocabulary
        text = self._bytes(hypothesis).decode(errors="ignore")
        complete = self._is_complete(hypothesis)
        try:
            value = self._output.parse(text) if complete else None
        except ValueError as error:
            raise InvalidValue(text, error) from error
        return Result(
            value=value,
            text=text,
            complete=complete,
            finish_reason=hypothesis.finish_reason,
            usage=Usage(len(self._prompt_ids), len(hypothesis.tokens), 0, len(hypothesis.tokens)),
            tokens=hypothesis.tokens,
            pieces=tuple(vocabulary.token_bytes(token.token_id) or b"" for token in hypothesis.tokens),
            system_fingerprint=fingerprint_of_results(self._model),
            seconds=seconds,
            prompt_seconds=prompt_seconds,
            limited=self._limited or hypothesis.finish_reason == "length",
        )


def _tokens(extension: _Extension) -> tuple[SampledToken, ...]:
    return (*extension.parent.tokens, extension.token)


def _plan_after(extension: _Extension, matcher: Matcher) -> list[int] | None:
    """Tokens that complete the output after an extension; None if none are known."""
    plan, known = extension.parent.plan, known_completion(matcher)
    if plan and plan[0] == extension.token.token_id and (known is None or len(known) >= len(plan)):
        return plan[1:]
    return known


def _log_softmax(row: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64, summing to 1 as probabilities.

    Raises:
        SamplingError: NaN, +inf or nothing but -inf.
    """
    from grammask.sampling.inputs import check_maximum

    check_maximum(float(row.max()))
    shifted = row.astype(np.float64)
    shifted -= shifted.max()
    return shifted - math.log(float(np.exp(shifted).sum()))
