"""Classification: the probability of each of several outputs, not just the likeliest one.

A choice is a text; a model gives probabilities to sequences of tokens. The tokens that the model's tokenizer writes for
a text ("canonical") carry nearly all of its probability, but not all: "positive" may also be spelled "pos" + "itive".
``tokenizations="all"`` sums over every spelling, the likeliest first, until what is left out is known to be small.
"""

from __future__ import annotations

import enum
import heapq
import math
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from grammask.models.prefix_cache import PromptSession

if TYPE_CHECKING:
    from grammask.constraints.choice import Choice
    from grammask.models import Model, Prompt

T = TypeVar("T")

MAX_PASSES = 2000
"""Forward passes that summing over all tokenizations may take."""


@dataclass(frozen=True)
class Classification(Generic[T]):
    """Probabilities of choices.

    Attributes:
        value: the likeliest choice.
        probabilities: choice to probability; they sum to 1.
        logprobs: choice to the natural logarithm of the model's own probability of it (the sum over its
            tokenizations), before normalization.
        mass: the sum of the model's own probabilities of all choices: how much of what the model would have written
            the choices cover.
        left_out: how much probability the tokenizations that were not looked at could add to ``mass`` at most; None
            where only the canonical ones were.
        model_calls: forward passes, that of the prompt included.
    """

    value: T
    probabilities: dict[T, float]
    logprobs: dict[T, float]
    mass: float
    left_out: float | None
    model_calls: int


def classify(
    model: Model,
    prompt: Prompt,
    choices: Any,
    *,
    tokenizations: Literal["canonical", "all"] = "canonical",
    ends: bool | None = None,
    tolerance: float = 0.01,
) -> Classification[Any]:
    """See ``Model.classify``."""
    if tokenizations not in ("canonical", "all"):
        raise ValueError(f"tokenizations is {tokenizations!r}: use 'canonical' or 'all'")
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}: use a share between 0 and 1")
    choice = _as_choice(choices)
    texts = [text.encode() for text in choice.texts]
    if b"" in texts and ends is False:
        raise ValueError("an empty choice has no tokens to score: let its end count, with ends=True")
    if ends is None:
        ordered = sorted(texts)
        starts = any(right.startswith(left) for left, right in pairwise(ordered))
        ends = starts or not isinstance(prompt, str)
    scorer = _Scorer(model, model.encode(prompt), ends)
    if tokenizations == "canonical":
        scores = {text: scorer.score(model.vocabulary.encode(text)) for text in texts}
        left_out = None
    else:
        scores, left_out = scorer.score_all(texts, tolerance)
    scorer.close()
    logprobs = {choice.value_of(text.decode()): scores[text] for text in texts}
    total = float(np.logaddexp.reduce(list(logprobs.values())))
    if total == -math.inf:
        raise ValueError("the model gives no probability to any of the choices")
    probabilities = {value: math.exp(logprob - total) for value, logprob in logprobs.items()}
    best = max(probabilities, key=lambda value: probabilities[value])
    return Classification(best, probabilities, logprobs, math.exp(total), left_out, scorer.calls)


def _as_choice(choices: Any) -> Choice:
    from grammask.constraints.choice import Choice

    if isinstance(choices, Choice):
        return choices
    if isinstance(choices, type) and issubclass(choices, enum.Enum):
        return Choice(choices)
    if typing.get_origin(choices) is typing.Literal:
        return Choice(typing.get_args(choices))
    if isinstance(choices, str) or not isinstance(choices, Iterable):
        raise TypeError(f"choices are a Choice, an Enum, a Literal or a list of values, not {choices!r}")
    return Choice(choices)


class _Scorer:
    """Log-probabilities of token sequences behind one prompt, which is read once."""

    def __init__(self, model: Model, prompt_ids: list[int], ends: bool) -> None:
        self._vocabulary = model.vocabulary
        self._end_ids = model.vocabulary.eos_token_ids
        self._ends = ends
        if ends and not self._end_ids:
            raise ValueError(f"{model.name} has no end-of-text token, so the end of a choice has no probability")
        self._prompt_ids = prompt_ids
        self._reader = PromptSession.cached(model.session, model.prefix_cache, len(prompt_ids))
        self._first = _log_softmax(self._reader.forward(prompt_ids))
        self._session = self._reader.inner
        self.calls = 1

    def score(self, token_ids: Sequence[int]) -> float:
        """The log-probability of these tokens, and of an end after them if that counts."""
        rows = [self._first]
        read = token_ids if self._ends else token_ids[:-1]
        if read:
            self._session.truncate(len(self._prompt_ids))
            rows.extend(map(_log_softmax, self._session.forward_all(read)))
            self.calls += 1
        total = math.fsum(float(row[token_id]) for row, token_id in zip(rows, token_ids, strict=False))
        return total + self._end(rows[-1]) if self._ends else total

    def score_all(self, texts: list[bytes], tolerance: float) -> tuple[dict[bytes, float], float]:
        """Log-probabilities over all tokenizations, and a bound on what is left out.

        Best first: a beginning of a tokenization has the probability of its tokens, which bounds what all of its
        continuations can add up to.
        """
        found = dict.fromkeys(texts, -math.inf)
        waiting: list[tuple[float, tuple[int, ...], bytes]] = []
        self._expand((), b"", 0.0, self._first, found, waiting)
        while waiting and self.calls < MAX_PASSES:
            open_mass = float(np.logaddexp.reduce([-cost for cost, _, _ in waiting]))
            closed = float(np.logaddexp.reduce(list(found.values())))
            if open_mass < closed + math.log(tolerance):
                return found, math.exp(open_mass)
            cost, path, spelled = heapq.heappop(waiting)
            self._session.truncate(len(self._prompt_ids))
            row = _log_softmax(self._session.forward(path))
            self.calls += 1
            self._expand(path, spelled, -cost, row, found, waiting)
        return found, math.fsum(math.exp(-cost) for cost, _, _ in waiting)

    def _expand(
        self,
        path: tuple[int, ...],
        spelled: bytes,
        logprob: float,
        row: NDArray[np.float64],
        found: dict[bytes, float],
        waiting: list[tuple[float, tuple[int, ...], bytes]],
    ) -> None:
        """Adds what follows a beginning: whole texts to ``found``, longer beginnings to ``waiting``."""
        if self._ends and spelled in found:
            found[spelled] = float(np.logaddexp(found[spelled], logprob + self._end(row)))
        nexts = {
            text[len(spelled) : end]
            for text in found
            if text.startswith(spelled)
            for end in range(len(spelled) + 1, len(text) + 1)
        }
        for data in nexts:
            for token_id in self._tokens_of(data):
                total = logprob + float(row[token_id])
                text = spelled + data
                if not self._ends and text in found:
                    found[text] = float(np.logaddexp(found[text], total))
                if self._ends or any(other != text and other.startswith(text) for other in found):
                    heapq.heappush(waiting, (-total, (*path, token_id), text))

    def _tokens_of(self, data: bytes) -> list[int]:
        if self._ids_by_bytes is None:
            self._ids_by_bytes = {}
            for token_id in range(self._vocabulary.size):
                spelled = self._vocabulary.token_bytes(token_id)
                if spelled is not None:
                    self._ids_by_bytes.setdefault(spelled, []).append(token_id)
        return self._ids_by_bytes.get(data, [])

    _ids_by_bytes: dict[bytes, list[int]] | None = None

    def _end(self, row: NDArray[np.float64]) -> float:
        return float(np.logaddexp.reduce(row[self._end_ids]))

    def close(self) -> None:
        self._reader.close()


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    row = logits.astype(np.float64)
    row -= np.logaddexp.reduce(row)
    return row
