"""What a seed repeats: the same run again, other seeds and requests, and company in the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grammask.lab.experiment import OPEN, Counter, Decoded, Options, asked, decode, setup_of
from grammask.lab.report import Result, Table, percent
from grammask.sampling import Sampler, Sampling, sample_batch

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 24
COMPANY = 15
"""Other requests in the batch."""


@dataclass(frozen=True)
class Repetition:
    """One output beside the reference.

    Attributes:
        changed: what was changed.
        equal: share of the steps with the same token. first: the first step with another one; None if all are equal.
    """

    changed: str
    equal: float
    first: int | None


@dataclass(frozen=True)
class SeedsResult(Result):
    """One row per change."""

    NAME = "seeds"
    TITLE = "What a seed repeats"
    METHOD = (
        "One output at temperature 1, drawn again with one thing changed. Company in the batch: the logits of the "
        f"reference are sampled in one call together with {COMPANY} other rows under other settings, at every step."
    )

    repetitions: tuple[Repetition, ...]

    def findings(self) -> list[str]:
        same = [repetition.changed for repetition in self.repetitions if repetition.first is None]
        other = [repetition.changed for repetition in self.repetitions if repetition.first is not None]
        found = []
        if same:
            found.append(f"The same tokens with: {', '.join(same)}.")
        if other:
            found.append(f"Other tokens with: {', '.join(other)}.")
        return found

    def tables(self) -> list[Table]:
        rows = tuple((r.changed, percent(r.equal), r.first) for r in self.repetitions)
        return [Table("Beside the reference", ("changed", "equal tokens", "first other step"), rows)]


RESULT = SeedsResult


def run(model: Model, options: Options = Options()) -> SeedsResult:  # noqa: B008 - immutable
    """Draws the reference and the others."""
    steps, seed = options.steps or STEPS, options.seed
    counter = Counter(options.progress, steps * 4)
    prompt = asked(model, OPEN[0])
    reference = decode(model, prompt, Sampling(), steps, seed=seed, counter=counter)
    others = {
        "nothing": (seed, 0),
        "the seed": (seed + 1, 0),
        "the request's number": (seed, 1),
    }
    repetitions = []
    for name, (other_seed, request) in others.items():
        output = decode(model, prompt, Sampling(), steps, seed=other_seed, request=request, counter=counter)
        repetitions.append(compare(name, reference.output_ids, output.output_ids))
    repetitions.append(compare("company in the batch", reference.output_ids, _in_company(model, reference, seed)))
    return SeedsResult(setup_of(model, steps, seed), tuple(repetitions))


def compare(changed: str, reference: Sequence[int], other: Sequence[int]) -> Repetition:
    """Step by step; a missing step is another one."""
    length = max(len(reference), len(other))
    same = [reference[i : i + 1] == other[i : i + 1] for i in range(length)]
    first = same.index(False) if False in same else None
    return Repetition(changed, sum(same) / length if length else 1.0, first)


def _in_company(model: Model, reference: Decoded, seed: int) -> list[int]:
    """The reference's rows sampled again, each in the middle of a batch of others."""
    size = model.vocabulary.size
    sampler = Sampler(Sampling(), size, eos_token_ids=model.vocabulary.eos_token_ids)
    state = sampler.start(reference.prompt_ids, seed=seed)
    random = np.random.default_rng(seed)
    settings = [
        Sampling(temperature=0.5 + i / 10, top_p=0.9) if i % 2 else Sampling(top_k=5 + i) for i in range(COMPANY)
    ]
    company = [Sampler(s, size).start(seed=seed + i, request=i + 1) for i, s in enumerate(settings)]
    tokens = []
    for row, token in zip(reference.rows, reference.output_ids, strict=True):
        noise = random.normal(scale=3, size=(COMPANY, size)).astype(np.float32)
        middle = COMPANY // 2
        logits = np.concatenate([noise[:middle], row[None], noise[middle:]])
        drawn = sample_batch(logits, [*company[:middle], state, *company[middle:]])
        tokens.append(drawn[middle].token_id)
        state.append(token)
    return tokens
