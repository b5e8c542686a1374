"""The same arithmetic by other routines: threads, another attention kernel, no oneDNN."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask.lab import traces
from grammask.lab.experiment import Counter, Options, asked, setup_of
from grammask.lab.report import Plot, Result, Table

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 24


@dataclass(frozen=True)
class KernelsResult(Result):
    """One difference per change of routine."""

    NAME = "kernels"
    TITLE = "Logits by kernel"
    METHOD = (
        "A text is decoded greedily. Then the same tokens are read again with another number of threads, with the "
        "other attention kernel, and with matrix products that do not go through oneDNN. What another processor "
        "chooses is shown by `ATEN_CPU_CAPABILITY=avx2 grammask lab versions --against ...`."
    )

    differences: tuple[traces.Difference, ...]
    gaps: traces.Gaps

    def findings(self) -> list[str]:
        return [
            f"{difference.name}: logits move by up to {difference.largest:.1e} (closest gap {self.gaps.closest:.1e}); "
            + (
                "the best token is the same at every step."
                if difference.first_flip is None
                else f"greedy outputs part at step {difference.first_flip}."
            )
            for difference in self.differences
        ]

    def tables(self) -> list[Table]:
        return [
            traces.table(f"Beside the kernels chosen at first; closest gap {self.gaps.closest:.2g}", self.differences)
        ]

    def plots(self) -> list[Plot]:
        series = traces.bars(self.differences, self.gaps)
        return [Plot("differences", self.TITLE, "", "logits", series, kind="bar", log_y=True)]


RESULT = KernelsResult


def run(model: Model, options: Options = Options()) -> KernelsResult:  # noqa: B008 - immutable
    """Decodes, and reads again with each kernel.

    Raises:
        LabError: the model does not run through transformers.
    """
    import torch

    steps = options.steps or STEPS
    module = traces.module_of(model)
    here = torch.get_num_threads()
    count = 2 if here == 1 else 1
    implementation = str(getattr(module.config, "_attn_implementation", ""))
    other = "eager" if implementation == "sdpa" else "sdpa"
    changes: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
        "nothing": contextlib.nullcontext,
        f"{count} thread{'s' if count > 1 else ''} in place of {here}": lambda: traces.threads(count),
    }
    if implementation in ("sdpa", "eager") and hasattr(module, "set_attn_implementation"):
        changes[f"{other} attention in place of {implementation}"] = lambda: _attention(module, other, implementation)
    onednn: Any = torch.backends.mkldnn
    if onednn.is_available():
        changes["without oneDNN"] = lambda: _without(onednn)
    prompt_ids = model.encode(asked(model, traces.PROMPT))
    counter = Counter(options.progress, steps * (1 + len(changes)))
    tokens, reference = traces.greedy(module, prompt_ids, steps, counter)
    differences = []
    for name, changed in changes.items():
        with changed():
            rows = traces.stepwise(module, prompt_ids, tokens, counter)
        differences.append(traces.compare(name, reference, rows, options.seed))
    return KernelsResult(setup_of(model, steps, options.seed), tuple(differences), traces.gaps_of(reference))


@contextlib.contextmanager
def _without(library: Any) -> Iterator[None]:
    before = library.enabled
    library.enabled = False
    try:
        yield
    finally:
        library.enabled = before


@contextlib.contextmanager
def _attention(module: Any, implementation: str, before: str) -> Iterator[None]:
    module.set_attn_implementation(implementation)
    try:
        yield
    finally:
        module.set_attn_implementation(before)
