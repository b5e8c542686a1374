"""What all experiments share: their options, progress, prompts, and decoding that keeps the logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grammask.lab.report import Result, Setup
from grammask.models.fingerprint import system_fingerprint
from grammask.sampling import Sampler, Sampling

if TYPE_CHECKING:
    from grammask.models import Model, Prompt

Rows = NDArray[np.float32]
"""Logits, [steps, vocabulary size]."""


class LabError(RuntimeError):
    """An experiment cannot run on this model."""


Progress = Callable[[int, int], None]
"""Told how far an experiment is: steps done, and steps in all."""


def silent(done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Options:
    """How an experiment runs.

    Attributes:
        steps: decoding steps per prompt; None is the experiment's own number.
        seed: of all random numbers.
        progress: told after each forward pass.
        against: an earlier result to compare with, as parsed JSON; only some experiments take one.
    """

    steps: int | None = None
    seed: int = 0
    progress: Progress = silent
    against: dict[str, Any] | None = None


class Experiment(Protocol):
    """An experiment is a module with these."""

    RESULT: type[Result]
    STEPS: int
    """Decoding steps per prompt unless the options say otherwise."""

    @staticmethod
    def run(model: Model, options: Options = ...) -> Result:
        """Runs it."""


@dataclass
class Counter:
    """Counts forward passes towards a total that is known beforehand."""

    progress: Progress
    total: int
    done: int = 0

    def step(self, count: int = 1) -> None:
        """``count`` more."""
        self.done += count
        self.progress(min(self.done, self.total), self.total)


@dataclass
class Decoded:
    """One output with the logits of each step.

    Attributes:
        prompt_ids, output_ids: tokens.
        rows: one row per token of output, the logits that it was chosen from.
    """

    prompt_ids: list[int]
    output_ids: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32]] = field(default_factory=list)


FACTUAL = (
    "What is the capital of France?",
    "How many days does a week have?",
    "Write the numbers from one to ten.",
)
OPEN = (
    "Write the beginning of a story about a lighthouse.",
    "Describe a walk through an autumn forest.",
    "What would you cook for a rainy evening, and why?",
)


def asked(model: Model, text: str) -> Prompt:
    """A question in the form that the model expects."""
    return [{"role": "user", "content": text}] if model.has_chat_template else text


def setup_of(model: Model, steps: int, seed: int) -> Setup:
    """The Setup of a result."""
    fingerprint = system_fingerprint(model)
    return Setup(model.name, str(fingerprint), dict(fingerprint.components), steps, seed)


def decode(
    model: Model, prompt: Prompt, sampling: Sampling, steps: int, *, seed: int, request: int = 0, counter: Counter
) -> Decoded:
    """Up to ``steps`` tokens, end-of-text not included; the logits of every step are kept."""
    vocabulary = model.vocabulary
    sampler = Sampler(
        sampling,
        vocabulary.size,
        eos_token_ids=vocabulary.eos_token_ids,
        token_bytes=vocabulary.token_bytes,
    )
    decoded = Decoded(model.encode(prompt))
    state = sampler.start(decoded.prompt_ids, seed=seed, request=request)
    session = model.session()
    unread: Sequence[int] = decoded.prompt_ids
    for step in range(steps):
        row = session.forward(unread).copy()
        counter.step()
        token = sampler.sample(row, state).token_id
        if token in vocabulary.eos_token_ids:
            counter.step(steps - step - 1)
            break
        state.append(token)
        decoded.output_ids.append(token)
        decoded.rows.append(row)
        unread = [token]
    return decoded


def answers(
    model: Model, prompts: Sequence[str], steps: int, seed: int, counter: Counter, *, temperature: float = 1.0
) -> list[Decoded]:
    """One output per prompt, by default drawn from the model's own distribution."""
    sampling = Sampling(temperature=temperature)
    return [
        decode(model, asked(model, prompt), sampling, steps, seed=seed, request=number, counter=counter)
        for number, prompt in enumerate(prompts)
    ]


def rows_of(outputs: Sequence[Decoded]) -> Rows:
    """All rows of several outputs, [n, vocabulary size].

    Raises:
        LabError: there are none.
    """
    rows = [row for output in outputs for row in output.rows]
    if not rows:
        raise LabError("the model ended every output at once: there is nothing to measure")
    return np.stack(rows)


def forced_rows(model: Model, prompt_ids: Sequence[int], text_ids: Sequence[int], counter: Counter) -> Iterator[Any]:
    """The logits before each token of a given text, one row at a time."""
    session = model.session()
    unread: Sequence[int] = prompt_ids
    for token in text_ids:
        row = session.forward(unread)
        counter.step()
        yield row
        unread = [token]


def descending(rows: Rows) -> Rows:
    """Each row's logits, highest first."""
    return np.sort(rows, axis=1)[:, ::-1]


def probabilities(sorted_rows: Rows, temperature: float = 1.0) -> NDArray[np.float64]:
    """Softmax of rows whose first logit is the highest, [n, vocabulary size]."""
    logits = sorted_rows.astype(np.float64) / temperature
    weights: NDArray[np.float64] = np.exp(logits - logits[:, :1])
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
