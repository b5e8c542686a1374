"""One text under several computations of its logits, and what the differences do to the choice of tokens.

All computations read the same tokens, those that the reference chose greedily. So their logits can be compared step by
step, and the first step at which another computation would choose another token is the step at which its own greedy
output would leave the reference's.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.lab.experiment import Counter, LabError
from grammask.lab.report import Series, Table, percent
from grammask.sampling import Sampler, Sampling

if TYPE_CHECKING:
    from grammask.models import Model

PROMPT = "Write a short poem about the sea and the stars."
SEEDS = 16
"""Each step is drawn with so many seeds."""


@dataclass(frozen=True)
class Difference:
    """One computation beside the reference.

    Attributes:
        name: what was changed.
        largest: largest absolute difference of a logit. typical: the median over steps of each step's largest.
        flips: steps at which the most likely token is another one. first_flip: the first of them, which is where
            greedy outputs part; None if there is none.
        draws: share of all draws at temperature 1, over the steps and seeds, that give another token.
    """

    name: str
    largest: float
    typical: float
    flips: int
    first_flip: int | None
    draws: float


@dataclass(frozen=True)
class Gaps:
    """The reference's distance between its two best logits at each step."""

    each: tuple[float, ...]

    @property
    def closest(self) -> float:
        """The smallest."""
        return min(self.each)


COLUMNS = (
    "changed",
    "largest difference",
    "typical difference",
    "steps with another best token",
    "first",
    "other draws",
)


def table(title: str, differences: Sequence[Difference]) -> Table:
    """The differences as a table."""
    rows = tuple((d.name, d.largest, d.typical, d.flips, d.first_flip, percent(d.draws)) for d in differences)
    return Table(title, COLUMNS, rows)


def bars(differences: Sequence[Difference], gaps: Gaps) -> tuple[Series, ...]:
    """Largest differences, and the closest gap beside each; both above zero for a logarithmic axis."""
    names = tuple(difference.name for difference in differences)
    return (
        Series("largest difference of a logit", names, tuple(max(d.largest, 1e-7) for d in differences)),
        Series("closest gap of the two best", names, (gaps.closest,) * len(names)),
    )


def gaps_of(rows: NDArray[np.float32]) -> Gaps:
    """The reference's gaps, one per row."""
    best = np.partition(rows, -2, axis=1)[:, -2:]
    return Gaps(tuple(float(gap) for gap in np.abs(best[:, 1] - best[:, 0])))


def compare(name: str, reference: NDArray[np.float32], other: NDArray[np.float32], seed: int) -> Difference:
    """Rows of the same steps under two computations, [steps, vocabulary size]."""
    finite = np.isfinite(reference) & np.isfinite(other)
    apart = np.abs(np.where(finite, reference, 0) - np.where(finite, other, 0)).max(axis=1)
    flips = np.flatnonzero(reference.argmax(axis=1) != other.argmax(axis=1))
    sampler = Sampler(Sampling(), reference.shape[1])
    others = 0
    for number in range(SEEDS):
        state = sampler.start(seed=seed, request=number)
        for row, other_row in zip(reference, other, strict=True):
            token = sampler.sample(row, state).token_id
            others += token != sampler.sample(other_row, state).token_id
            state.append(token)
    return Difference(
        name,
        float(apart.max()),
        float(np.median(apart)),
        len(flips),
        int(flips[0]) if len(flips) else None,
        others / (SEEDS * len(reference)),
    )


# -- computing rows with torch


def module_of(model: Model) -> Any:
    """The torch module of a model.

    Raises:
        LabError: the model does not run through transformers, or keeps no key-value cache.
    """
    module = getattr(model, "module", None)
    if module is None:
        raise LabError(f"{model.name} does not run through transformers, whose kernels this experiment varies")
    if not _cache_name(module):
        raise LabError(f"{model.name} keeps no key-value cache, which this experiment needs")
    return module


def _cache_name(module: Any) -> str:
    """What this version of transformers calls the cache, as an argument and in the output; empty without a cache."""
    parameters = inspect.signature(module.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in parameters), "")


def greedy(
    module: Any, prompt_ids: Sequence[int], steps: int, counter: Counter
) -> tuple[list[int], NDArray[np.float32]]:
    """The reference: the tokens and the rows that they were chosen from."""
    tokens: list[int] = []
    rows: list[NDArray[np.float32]] = []
    for row in _feed(module, prompt_ids, tokens, 1, steps):
        rows.append(row)
        tokens.append(int(row.argmax()))
        counter.step()
    return tokens, np.stack(rows)


def stepwise(
    module: Any, prompt_ids: Sequence[int], tokens: Sequence[int], counter: Counter, *, batch: int = 1
) -> NDArray[np.float32]:
    """The rows of a given text, read token by token, in a batch of that many copies."""
    rows = []
    for row in _feed(module, prompt_ids, list(tokens), batch, len(tokens)):
        rows.append(row)
        counter.step()
    return np.stack(rows)


def in_one_pass(module: Any, prompt_ids: Sequence[int], tokens: Sequence[int], counter: Counter) -> NDArray[np.float32]:
    """The rows of a given text, read at once."""
    import torch

    ids = [*prompt_ids, *tokens[:-1]]
    with torch.inference_mode():
        logits = module(input_ids=torch.tensor([ids], device=module.device)).logits[0, len(prompt_ids) - 1 :]
    counter.step(len(tokens))
    rows: NDArray[np.float32] = logits.float().cpu().numpy()
    return rows


def _feed(module: Any, prompt_ids: Sequence[int], tokens: list[int], batch: int, steps: int) -> Iterator[Any]:
    """One row per step; ``tokens`` may grow while this runs."""
    import torch

    name = _cache_name(module)
    cache = None
    unread = list(prompt_ids)
    for step in range(steps):
        with torch.inference_mode():
            ids = torch.tensor([unread] * batch, device=module.device)
            output = module(input_ids=ids, use_cache=True, **{name: cache})
        cache = getattr(output, name)
        yield output.logits[0, -1].float().cpu().numpy()
        unread = [tokens[step]] if step < steps - 1 else []


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Lets torch use so many threads within the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
