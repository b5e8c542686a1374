"""Checks while an output is written: a part that is refused is taken back, and written another way.

In the spirit of PICARD (Scholak, Schucher & Bahdanau 2021, "PICARD: Parsing incrementally for constrained
auto-regressive decoding from language models"): the constraint sees to the form token by token, and a check, any Python
function, judges each part as soon as it is complete. When it refuses one, decoding goes back to the likeliest way not
taken, within that part first, and on from there. So it is a best-first search over the continuations, which costs
nothing while nothing is refused.

Let a part begin after the last accepted one. The ways not taken are kept with their log-probability since then: at each
position the likeliest tokens besides the chosen one. A way that is taken up again is read from there on only; the
model's cache is cut to it. When a part has been refused too often, or in every way, what stands before it is written
another way, and at last the part before it is opened again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grammask.decoding import InvalidValue, Result, Usage
from grammask.decoding.output import resolve_output
from grammask.models.base import Model, Prompt
from grammask.sampling import SampledToken, Sampler, Sampling
from grammask.sampling.report import StepReport
from grammask.validation import parts as splitters
from grammask.validation.checks import Check, run_check
from grammask.validation.parts import Splitter
from grammask.validation.problems import listing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask._core import Matcher
    from grammask.decoding.output import Output

SPLITTERS: dict[str, Splitter] = {
    "json": splitters.json_values,
    "words": splitters.words,
    "lines": splitters.lines,
    "whole": splitters.whole,
}

_RESPELLING = 8.0
"""Taken off the log-probability of a way that begins to spell a refused part in other tokens."""


@dataclass(frozen=True)
class Rejection:
    """A part that was refused.

    Attributes:
        text: the part.
        start: where it stood in the output, in characters.
        message: why it was refused.
        taken_back: tokens that were taken back.
    """

    text: str
    start: int
    message: str
    taken_back: int


class ChecksFailed(InvalidValue):
    """The search was given up.

    Attributes:
        text: the output up to the part that was refused last.
        rejections: all of them.
    """

    def __init__(self, text: str, rejections: Sequence[Rejection], reason: str) -> None:
        super().__init__(text, ValueError(reason))
        self.rejections = tuple(rejections)
        last = "\n".join(f"- {rejection.text!r}: {rejection.message}" for rejection in self.rejections[-3:])
        self.args = (f"{reason}; the last rejections:\n{last}",)


def generate_checked(
    model: Model,
    prompt: Prompt,
    wanted: Any,
    check: Check,
    *,
    parts: Literal["json", "words", "lines", "whole"] | Splitter = "json",
    rejections: int = 64,
    per_part: int = 16,
    alternatives: int = 8,
    sampling: Sampling | None = None,
    max_tokens: int = 512,
    seed: int | None = None,
) -> Result[Any]:
    """Writes an output every part of which passes a check.

    Args:
        model: a model in this process.
        prompt: text, or chat messages.
        wanted: constraint or type, as for ``generate``.
        check: is given each complete ``Part`` once; returns None or True to accept it, False or a message to refuse it,
            or raises ValueError.
        parts: what a part is: the values of JSON, words, lines, only the whole output, or a splitter of one's own
            (``grammask.validation.parts``).
        rejections: how many parts may be refused before giving up.
        per_part: how often one part may be refused before what stands before it is written another way; and how often
            that, before the accepted part before it is opened again.
        alternatives: how many tokens besides the chosen one are kept at each position.
        sampling: draws the first way; after a refusal, the likeliest way comes next. None is greedy.
        max_tokens: a way that is longer is given up like one that was refused.
        seed: of the random numbers.

    Returns:
        The Result; ``history`` holds the rejections, ``usage`` counts all forward passes and the tokens of the output.

    Raises:
        ChecksFailed: no way was found within the limits.
        ConstraintError, ModelError, SamplingError, InvalidValue: as for ``generate``.
    """
    for name, value in (("rejections", rejections), ("per_part", per_part), ("alternatives", alternatives)):
        if value < 1:
            raise ValueError(f"{name} is {value}: use at least 1")
    output = resolve_output(wanted, model.vocabulary)
    splitter = SPLITTERS[parts] if isinstance(parts, str) else parts
    search = _Search(model, prompt, output, check, splitter, sampling or Sampling(temperature=0), seed)
    search.limits(rejections, per_part, alternatives, max_tokens)
    return search.run()


@dataclass(frozen=True)
class _Way:
    """A way not taken: where it leaves the one that was.

    Attributes:
        cost: minus its log-probability since the part began.
        prefix: tokens of the output before it.
        token: the one to take there.
        data: the bytes of the output with it.
    """

    cost: float
    prefix: tuple[int, ...]
    token: int
    data: bytes

    @property
    def length(self) -> int:
        return len(self.prefix)


@dataclass
class _Stage:
    """One part under way, or finished and kept in case it has to be opened again.

    Attributes:
        begin: tokens of the output before it.
        ways: those not taken.
        refusals: how often parts in it were refused, by what stood before each.
        refused: texts of the output up to where it was refused.
    """

    begin: int
    ways: list[_Way] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    refused: set[bytes] = field(default_factory=set)


class _Search:
    """The output under way, and everything that is needed to go back."""

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        output: Output,
        check: Check,
        splitter: Splitter,
        sampling: Sampling,
        seed: int | None,
    ) -> None:
        self._model = model
        self._vocabulary = model.vocabulary
        self._output = output
        self._check = check
        self._splitter = splitter
        self._prompt_ids = model.encode(prompt)
        self._session = model.session()
        self._matcher: Matcher = output.compiled.matcher()
        sampler = Sampler(
            sampling,
            self._vocabulary.size,
            eos_token_ids=self._vocabulary.eos_token_ids,
            structured=output.structured,
            token_bytes=self._vocabulary.token_bytes,
        )
        self._state = sampler.start(self._prompt_ids, seed=seed)
        self._ends = frozenset(self._vocabulary.eos_token_ids)
        self._mask = np.zeros((self._vocabulary.size + 31) // 32, dtype=np.int32)
        self._tokens: list[SampledToken] = []
        self._costs: list[float] = []
        self._stages = [_Stage(0)]
        self._accepted = 0
        self._passed: set[tuple[int, int, str]] = set()
        self._calls = 0
        self._rejections: list[Rejection] = []

    def limits(self, rejections: int, per_part: int, alternatives: int, max_tokens: int) -> None:
        """How long to search."""
        self._max_rejections = rejections
        self._per_part = per_part
        self._alternatives = alternatives
        self._max_tokens = max_tokens

    # -- the search

    def run(self) -> Result[Any]:
        start = time.perf_counter()
        ended = False
        while not ended:
            ended = self._advance()
            fault = self._judge(ended)
            if fault is None and not ended and len(self._tokens) >= self._max_tokens:
                fault = ("", len(self._text), f"it is longer than {self._max_tokens} tokens")
            if fault is not None:
                ended = self._take_another_way(self._refuse(*fault))
                while (fault := self._judge(ended)) is not None:
                    ended = self._take_another_way(self._refuse(*fault))
        return self._result(time.perf_counter() - start)

    def _advance(self) -> bool:
        """Writes forced tokens, or one that the model chooses; returns whether the output has ended."""
        forced = self._matcher.forced_tokens()
        if forced:
            for token_id in forced:
                report = StepReport(len(self._tokens), forced=True)
                self._take(SampledToken(token_id, None, 0.0, (), (), report), 0.0)
            return False
        self._matcher.fill_mask(self._mask)
        if self._matcher.is_complete and not self._can_go_on():
            return True
        logits = self._forward()
        choice = self._state.sampler.sample(logits, self._state, mask=self._mask)
        ids, logprobs = self._likeliest(logits)
        own = logprobs[ids == choice.token_id]
        cost = -float(own[0]) if own.size else self._cost_of(logits, choice.token_id)
        self._keep_ways(ids, logprobs, choice.token_id)
        return self._take(choice, cost)

    def _can_go_on(self) -> bool:
        words = self._mask.view(np.uint32).copy()
        for token in self._ends:
            words[token >> 5] &= np.uint32(0xFFFFFFFF ^ (1 << (token & 31)))
        return bool(words.any())

    def _forward(self) -> NDArray[np.float32]:
        """Logits after everything so far; what the session has not read is read."""
        sequence = [*self._prompt_ids, *[token.token_id for token in self._tokens]]
        self._calls += 1
        return self._session.forward(sequence[self._session.length :])

    def _likeliest(self, logits: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The likeliest tokens that the mask allows, best first, and their log-probabilities among all allowed."""
        allowed = np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: logits.size].astype(bool)
        ids = np.flatnonzero(allowed)
        row = logits[ids].astype(np.float64)
        row -= row.max() + np.log(np.exp(row - row.max()).sum())
        count = min(self._alternatives + 1, ids.size)
        best = np.argpartition(-row, count - 1)[:count]
        best = best[np.argsort(-row[best], kind="stable")]
        return ids[best], row[best]

    def _cost_of(self, logits: NDArray[np.float32], token_id: int) -> float:
        row = logits.astype(np.float64)
        return float(np.log(np.exp(row - row.max()).sum()) + row.max() - row[token_id])

    def _keep_ways(self, ids: NDArray[np.int64], logprobs: NDArray[np.float64], chosen: int) -> None:
        stage = self._stages[-1]
        before = sum(self._costs[stage.begin :])
        prefix = tuple(token.token_id for token in self._tokens)
        written = self._vocabulary.decode(prefix)
        for token_id, logprob in zip(ids.tolist(), logprobs.tolist(), strict=True):
            if token_id != chosen and np.isfinite(logprob):
                data = written + (self._vocabulary.token_bytes(token_id) or b"")
                stage.ways.append(_Way(before - logprob, prefix, token_id, data))

    def _take(self, choice: SampledToken, cost: float) -> bool:
        if not self._matcher.accept(choice.token_id):
            raise RuntimeError(f"the matcher refuses token {choice.token_id}, which it allowed")
        self._state.append(choice.token_id)
        self._tokens.append(choice)
        self._costs.append(cost)
        return choice.token_id in self._ends

    # -- judging

    @property
    def _text(self) -> str:
        return self._vocabulary.decode(token.token_id for token in self._tokens).decode("utf-8", "ignore")

    def _judge(self, ended: bool) -> tuple[str, int, str] | None:
        """Judges the parts that are complete and have not been judged: None, or the first that is refused (text, start,
        message). Accepted parts close the stage."""
        text = self._text
        closed = False
        for part in self._splitter(text, ended):
            key = (part.start, part.end, part.so_far)
            if key in self._passed:
                continue
            if part.so_far.encode() in self._stages[-1].refused:
                return part.text, part.start, "it was refused before"
            problems = run_check(self._check, part)
            if problems:
                self._stages[-1].refused.add(part.so_far.encode())
                return part.text, part.start, listing(problems).removeprefix("- ")
            self._passed.add(key)
            closed = True
        if closed and not ended:
            self._stages.append(_Stage(len(self._tokens)))
        return None

    def _refuse(self, text: str, start: int, message: str) -> int:
        """Records a refusal; returns the token from which on another way is looked for first."""
        stage = self._stages[-1]
        before = self._text[:start]
        stage.refusals[before] = stage.refusals.get(before, 0) + 1
        first = self._token_at(len(before.encode()))
        self._rejections.append(Rejection(text, start, message, len(self._tokens) - max(first, stage.begin)))
        if len(self._rejections) >= self._max_rejections:
            raise ChecksFailed(self._text, self._rejections, f"{self._max_rejections} parts were refused")
        return first if stage.refusals[before] <= self._per_part else stage.begin

    def _token_at(self, offset: int) -> int:
        """The token of the output that holds the byte at an offset."""
        for number, token in enumerate(self._tokens):
            offset -= len(self._vocabulary.token_bytes(token.token_id) or b"")
            if offset < 0:
                return number
        return len(self._tokens)

    # -- going back

    def _take_another_way(self, first: int) -> bool:
        """Goes back to the likeliest way not taken, from a token on if there is one; returns whether the output has
        ended with it."""
        while not self._stages[-1].ways or sum(self._stages[-1].refusals.values()) > self._per_part**2:
            if len(self._stages) == 1:
                raise ChecksFailed(self._text, self._rejections, "every way that was kept has been refused")
            self._stages.pop()
            first = self._stages[-1].begin
        stage = self._stages[-1]
        inside = [way for way in stage.ways if way.length >= first]
        way = min(inside or stage.ways, key=lambda way: way.cost + _RESPELLING * self._respells(stage, way))
        stage.ways.remove(way)
        self._go_back(way.prefix)
        before = sum(self._costs[stage.begin :])
        report = StepReport(len(self._tokens))
        cost = max(0.0, way.cost - before)
        return self._take(SampledToken(way.token, None, -cost, (), (), report), cost)

    def _respells(self, stage: _Stage, way: _Way) -> bool:
        """Whether a way begins like a refused part, in other tokens."""
        return way.token not in self._ends and any(refused.startswith(way.data) for refused in stage.refused)

    def _go_back(self, prefix: tuple[int, ...]) -> None:
        """Makes these the tokens of the output."""
        kept = 0
        while kept < min(len(prefix), len(self._tokens)) and self._tokens[kept].token_id == prefix[kept]:
            kept += 1
        surplus = len(self._tokens) - kept
        if surplus:
            self._matcher.rollback(surplus)
            self._state.rollback(surplus)
            del self._tokens[kept:]
            del self._costs[kept:]
        for token_id in prefix[kept:]:
            self._take(SampledToken(token_id, None, 0.0, (), (), StepReport(len(self._tokens))), 0.0)
        self._session.truncate(min(self._session.length, len(self._prompt_ids) + kept))

    # -- the end

    def _result(self, seconds: float) -> Result[Any]:
        text = self._text
        try:
            value = self._output.parse(text)
        except ValueError as error:
            raise InvalidValue(text, error) from error
        forced = sum(token.report.forced for token in self._tokens)
        return Result(
            value=value,
            text=text,
            complete=True,
            finish_reason="stop",
            usage=Usage(len(self._prompt_ids), len(self._tokens), forced, self._calls),
            tokens=tuple(self._tokens),
            seed=self._state.seed,
            seconds=seconds,
            history=tuple(self._rejections),
            pieces=tuple(self._vocabulary.token_bytes(token.token_id) or b"" for token in self._tokens),
        )
