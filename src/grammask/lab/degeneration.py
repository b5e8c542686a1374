"""Greedy decoding runs into loops; what each penalty does about it, and at what price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grammask.lab.experiment import Counter, Decoded, Options, asked, decode, setup_of
from grammask.lab.report import Plot, Result, Series, Table, mean, percent
from grammask.sampling import Sampling

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 96
REQUEST = "Write a poem about the sea."
BEGINNING = "The cat sat on the mat. The dog"
"""Continued as plain text."""
N = 4

PENALTIES: dict[str, dict[str, float | int]] = {
    "none": {},
    "presence 1.0": {"presence_penalty": 1.0},
    "frequency 0.5": {"frequency_penalty": 0.5},
    "repetition 1.1": {"repetition_penalty": 1.1},
    "repetition 1.3": {"repetition_penalty": 1.3},
    "DRY 0.8": {"dry_multiplier": 0.8},
    "no repeated 4-gram": {"no_repeat_ngram_size": 4},
}


@dataclass(frozen=True)
class Outcome:
    """What one penalty did, over all prompts.

    Attributes:
        repeated: share of the output's 4-grams that occurred in it before.
        first_repeat: tokens until the first repeated 4-gram, the earliest over the prompts; None if there is none.
        changed: share of the steps at which the penalty chose another token than the model's best.
        logprob: mean log-probability, under the model itself, of the tokens chosen (nats).
        texts: the outputs.
    """

    penalty: str
    repeated: float
    first_repeat: int | None
    changed: float
    logprob: float
    texts: tuple[str, ...]


@dataclass(frozen=True)
class DegenerationResult(Result):
    """One outcome per penalty."""

    NAME = "degeneration"
    TITLE = "Greedy degeneration and penalties"
    METHOD = (
        "A request is answered and the beginning of a text continued, greedily and with end-of-text excluded. A 4-gram "
        "is repeated if the same four tokens stood earlier in the output. A decision is changed where the penalized "
        "choice is not the most likely token of the model on that very text. Frequency and presence count the output, "
        "repetition, DRY and the ban on n-grams prompt and output."
    )

    outcomes: tuple[Outcome, ...]

    def findings(self) -> list[str]:
        plain, *others = self.outcomes
        best = min(others, key=lambda outcome: (outcome.repeated, outcome.changed))
        gentle = min(
            (outcome for outcome in others if outcome.repeated <= plain.repeated / 2),
            default=None,
            key=lambda outcome: outcome.changed,
        )
        found = [f"Without a penalty, {percent(plain.repeated)} of the 4-grams are repetitions."]
        if plain.repeated == 0:
            return [*found, "There is nothing to mend; longer outputs may loop."]
        if gentle is not None:
            found.append(
                f"Fewest decisions changed for at most half of that: {gentle.penalty}, {percent(gentle.changed)} of "
                f"the decisions, {percent(gentle.repeated)} repeated."
            )
        found.append(
            f"Least repetition: {best.penalty}, {percent(best.repeated)}, {percent(best.changed)} of the decisions "
            f"changed; the model gives its tokens {best.logprob:.2f} nats in the mean, and {plain.logprob:.2f} to the "
            f"plain ones."
        )
        return found

    def tables(self) -> list[Table]:
        return [
            Table(
                f"Greedy decoding, two texts of {self.setup.steps} tokens",
                ("penalty", "repeated 4-grams", "first after", "decisions changed", "log-probability"),
                tuple(
                    (o.penalty, percent(o.repeated), o.first_repeat, percent(o.changed), o.logprob)
                    for o in self.outcomes
                ),
            )
        ]

    def plots(self) -> list[Plot]:
        names = tuple(outcome.penalty for outcome in self.outcomes)
        series = (
            Series("repeated 4-grams", names, tuple(100 * outcome.repeated for outcome in self.outcomes)),
            Series("decisions changed", names, tuple(100 * outcome.changed for outcome in self.outcomes)),
        )
        return [Plot("penalties", self.TITLE, "", "percent", series, kind="bar")]


RESULT = DegenerationResult


def run(model: Model, options: Options = Options()) -> DegenerationResult:  # noqa: B008 - immutable
    """Continues each beginning with each penalty."""
    steps = options.steps or STEPS
    prompts = (asked(model, REQUEST), BEGINNING)
    counter = Counter(options.progress, steps * len(prompts) * len(PENALTIES))
    outcomes = []
    for name, settings in PENALTIES.items():
        sampling = Sampling(temperature=0, min_tokens=steps, **settings)  # type: ignore[arg-type]
        outputs = [decode(model, prompt, sampling, steps, seed=options.seed, counter=counter) for prompt in prompts]
        outcomes.append(_outcome(name, outputs, model))
    return DegenerationResult(setup_of(model, steps, options.seed), tuple(outcomes))


def repeated_ngrams(tokens: Sequence[int], n: int = N) -> list[bool]:
    """For each n-gram, in order, whether the same one stood earlier."""
    seen: set[tuple[int, ...]] = set()
    repeated = []
    for start in range(len(tokens) - n + 1):
        ngram = tuple(tokens[start : start + n])
        repeated.append(ngram in seen)
        seen.add(ngram)
    return repeated


def _outcome(name: str, outputs: Sequence[Decoded], model: Model) -> Outcome:
    end = list(model.vocabulary.eos_token_ids)
    repeated = [repeated_ngrams(output.output_ids) for output in outputs]
    first = [flags.index(True) + N for flags in repeated if True in flags]
    changed, logprobs = [], []
    for output in outputs:
        for token, row in zip(output.output_ids, output.rows, strict=True):
            open_row = row.astype(np.float64)
            open_row[end] = -np.inf
            changed.append(float(int(open_row.argmax()) != token))
            top = float(open_row.max())
            logprobs.append(float(open_row[token]) - top - math.log(float(np.exp(open_row - top).sum())))
    return Outcome(
        name,
        mean([float(flag) for flags in repeated for flag in flags]),
        min(first, default=None),
        mean(changed),
        mean(logprobs),
        tuple(model.vocabulary.decode(output.output_ids).decode("utf-8", "replace") for output in outputs),
    )
