"""The company of other sequences in a batch changes a sequence's logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammask.lab import traces
from grammask.lab.experiment import Counter, Options, asked, setup_of
from grammask.lab.report import Plot, Result, Table

if TYPE_CHECKING:
    from grammask.models import Model

SIZES = (2, 4, 8, 16)
STEPS = 24


@dataclass(frozen=True)
class BatchingResult(Result):
    """One difference per batch size."""

    NAME = "batching"
    TITLE = "Logits by batch size"
    METHOD = (
        "A text is decoded greedily alone. Then the same tokens are read again: alone, in batches of equal copies, and "
        "in one pass in place of step by step. The first row of each batch is compared with the reference. A matrix "
        "product over more rows is split differently, so its sums are taken in another order."
    )

    differences: tuple[traces.Difference, ...]
    gaps: traces.Gaps

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
        return found

    def tables(self) -> list[Table]:
        return [traces.table(f"Beside a sequence alone; closest gap {self.gaps.closest:.2g}", self.differences)]

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
    counter = Counter(options.progress, steps * (len(SIZES) + 3))
    tokens, reference = traces.greedy(module, prompt_ids, steps, counter)
    others = {"nothing": traces.stepwise(module, prompt_ids, tokens, counter)}
    for size in SIZES:
        others[f"batch of {size}"] = traces.stepwise(module, prompt_ids, tokens, counter, batch=size)
    others["one pass"] = traces.in_one_pass(module, prompt_ids, tokens, counter)
    differences = tuple(traces.compare(name, reference, rows, options.seed) for name, rows in others.items())
    return BatchingResult(setup_of(model, steps, options.seed), differences, traces.gaps_of(reference))
