"""The company of other sequences in a batch changes a sequence's logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammask.lab import traces
from grammask.lab.experiment import Counter, Options, asked, setup_of
from grammask.lab.report import Plot, Result, Table

if TYPE_CHECKING:
    from grammask.models import Model

SIZES = (2, 4, 8, 16)
STEPS = 24
OTHERS = 15
"""Texts beside the one that is measured, in packed passes."""


@dataclass(frozen=True)
class BatchingResult(Result):
    """One difference per batch size."""

    NAME = "batching"
    TITLE = "Logits by batch size"
    METHOD = (
        "A text is decoded greedily alone. Then the same tokens are read again: alone, in batches of equal copies, and "
        "in one pass in place of step by step. The first row of each batch is compared with the reference. A matrix "
        "product over more rows is split differently, so its sums are taken in another order. At last the text is read "
        "in packed passes (grammask.ConcurrentModel), alone and beside 15 other texts that come and go, and these two "
        "are compared."
    )

    differences: tuple[traces.Difference, ...]
    gaps: traces.Gaps
    packed: traces.Difference | None
    """Packed passes in company beside packed passes alone; None for a model that cannot be packed."""

    def findings(self) -> list[str]:
        again, *others = self.differences
        largest = max(difference.largest for difference in others)
        flips = [difference for difference in others if difference.first_flip is not None]
        found = [
            (
                f"The same run again differs by {again.largest:g}, other shapes of the pass by up to {largest:.1e}; "
                f"the closest gap of the two best tokens is {self.gaps.closest:.1e}."
            )
        ]
        if flips:
            first = min(flips, key=lambda difference: difference.first_flip or 0)
            found.append(f"Greedy outputs part at step {first.first_flip} ({first.name}).")
        else:
            found.append("No step of this text has its best token changed, since every gap is wider than that.")
        if self.packed is not None:
            found.append(f"In packed passes, 15 other texts beside it change its logits by {self.packed.largest:g}.")
        return found

    def tables(self) -> list[Table]:
        tables = [traces.table(f"Beside a sequence alone; closest gap {self.gaps.closest:.2g}", self.differences)]
        if self.packed is not None:
            tables.append(traces.table("Packed passes in company, beside packed passes alone", [self.packed]))
        return tables

    def plots(self) -> list[Plot]:
        series = traces.bars(self.differences, self.gaps)
        return [Plot("differences", self.TITLE, "", "logits", series, kind="bar", log_y=True)]


RESULT = BatchingResult


def run(model: Model, options: Options = Options()) -> BatchingResult:  # noqa: B008 - immutable
    """Decodes, and reads again in each shape.

    Raises:
        LabError: the model does not run through transformers.
    """
    steps = options.steps or STEPS
    module = traces.module_of(model)
    prompt_ids = model.encode(asked(model, traces.PROMPT))
    counter = Counter(options.progress, steps * (len(SIZES) + 5))
    tokens, reference = traces.greedy(module, prompt_ids, steps, counter)
    others = {"nothing": traces.stepwise(module, prompt_ids, tokens, counter)}
    for size in SIZES:
        others[f"batch of {size}"] = traces.stepwise(module, prompt_ids, tokens, counter, batch=size)
    others["one pass"] = traces.in_one_pass(module, prompt_ids, tokens, counter)
    differences = tuple(traces.compare(name, reference, rows, options.seed) for name, rows in others.items())
    alone = _packed(model, prompt_ids, tokens, counter, others=0, seed=options.seed)
    packed = None
    if alone is None:
        counter.step(2 * steps)
    else:
        crowd = _packed(model, prompt_ids, tokens, counter, others=OTHERS, seed=options.seed)
        assert crowd is not None
        packed = traces.compare(f"{OTHERS} other texts", alone, crowd, options.seed)
    return BatchingResult(setup_of(model, steps, options.seed), differences, traces.gaps_of(reference), packed)


def _packed(
    model: Model, prompt_ids: Sequence[int], tokens: Sequence[int], counter: Counter, *, others: int, seed: int
) -> NDArray[np.float32] | None:
    """The rows of a given text in packed passes, beside random texts, each of which ends now and then for another one;
    None for a model that is read one sequence after the other."""
    from grammask.models.batch import sequence_batch
    from grammask.models.packed_batch import PackedBatch

    batch = sequence_batch(model)
    if not isinstance(batch, PackedBatch):
        return None
    generator = np.random.default_rng(seed)
    slot = batch.add()
    company = [batch.add() for _ in range(others)]
    rows = []
    for unread in [list(prompt_ids), *([token] for token in tokens[:-1])]:
        for place, other in enumerate(company):
            if generator.random() < 0.2:
                batch.remove(other)
                company[place] = batch.add()
        beside = {other: generator.integers(0, model.vocabulary.size, 1).tolist() for other in company}
        rows.append(batch.forward({**beside, slot: unread})[slot])
        counter.step()
    return np.stack(rows)
