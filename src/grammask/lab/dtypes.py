"""Fewer bits per number change the logits by far more than another order of additions."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammask.lab import traces
from grammask.lab.experiment import Counter, Options, asked, setup_of
from grammask.lab.report import Plot, Result, Table

if TYPE_CHECKING:
    from grammask.models import Model

DTYPES = ("bfloat16", "float16")
STEPS = 16


@dataclass(frozen=True)
class DtypesResult(Result):
    """One difference per dtype, alone and in a batch."""

    NAME = "dtypes"
    TITLE = "Logits by dtype"
    METHOD = (
        "A text is decoded greedily with the model as it was loaded. Then the same tokens are read by copies of the "
        "model in other dtypes, alone and in a batch of 8. Weights and activations are of that dtype."
    )

    dtype: str
    differences: tuple[traces.Difference, ...]
    gaps: traces.Gaps

    def findings(self) -> list[str]:
        return [
            f"{difference.name} in place of {self.dtype}: logits move by up to {difference.largest:.2g}; "
            + (
                f"greedy outputs part at step {difference.first_flip}"
                if difference.first_flip is not None
                else "the best token is the same at every step"
            )
            + f", and {100 * difference.draws:.1f} % of the draws at temperature 1 give another token."
            for difference in self.differences
        ]

    def tables(self) -> list[Table]:
        return [traces.table(f"Beside {self.dtype}; closest gap {self.gaps.closest:.2g}", self.differences)]

    def plots(self) -> list[Plot]:
        series = traces.bars(self.differences, self.gaps)
        return [Plot("differences", self.TITLE, "", "logits", series, kind="bar", log_y=True)]


RESULT = DtypesResult


def run(model: Model, options: Options = Options()) -> DtypesResult:  # noqa: B008 - immutable
    """Decodes, and reads again with each dtype.

    Raises:
        LabError: the model does not run through transformers.
    """
    import torch

    steps = options.steps or STEPS
    module = traces.module_of(model)
    dtype = str(module.dtype).removeprefix("torch.")
    others = [name for name in DTYPES if name != dtype]
    prompt_ids = model.encode(asked(model, traces.PROMPT))
    counter = Counter(options.progress, steps * (1 + 2 * len(others)))
    tokens, reference = traces.greedy(module, prompt_ids, steps, counter)
    differences = []
    for name in others:
        converted = copy.deepcopy(module).to(getattr(torch, name))
        for batch in (1, 8):
            rows = traces.stepwise(converted, prompt_ids, tokens, counter, batch=batch)
            label = name if batch == 1 else f"{name}, batch of {batch}"
            differences.append(traces.compare(label, reference, rows, options.seed))
    return DtypesResult(setup_of(model, steps, options.seed), dtype, tuple(differences), traces.gaps_of(reference))
