"""A batch of rows, each with its own settings, history and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from grammask.sampling.inputs import Logits, Mask
from grammask.sampling.report import SampledToken
from grammask.sampling.state import SamplerState


def sample_batch(
    logits: Logits | Sequence[Logits],
    states: Sequence[SamplerState],
    masks: Mask | Sequence[Mask | None] | None = None,
    forced: Sequence[int | None] | None = None,
    *,
    backend: Literal["auto", "numpy", "torch"] = "auto",
) -> list[SampledToken]:
    """Choose the next token of every row, each as its own sampler says.

    What a row draws does not depend on the other rows.

    Args:
        logits: [rows, vocab_size], or a sequence of rows.
        states: one per row; their samplers may differ.
        masks: int32 [rows, (vocab_size + 31) // 32], or one mask or None per row.
        forced: for each row the token that comes, or None.
        backend: ``"auto"`` computes where the logits are: a tensor on an accelerator is sampled there, all rows
            together; arrays, and tensors in main memory, row by row in numpy, which is faster on a processor. Both
            choose the same tokens.

    Raises:
        SamplingError, ValueError: as ``Sampler.sample``, with the number of the row.
    """
    rows = len(states)
    for name, values in (("logits", logits), ("masks", masks), ("forced", forced)):
        if values is not None and len(values) != rows:
            raise ValueError(f"{name} has {len(values)} rows, but there are {rows} states")
    row_masks = [None if masks is None else masks[row] for row in range(rows)]
    tokens = [None if forced is None else forced[row] for row in range(rows)]
    sampled: list[SampledToken | None] = [None] * rows
    if backend == "torch" or (backend == "auto" and _on_accelerator(logits)):
        free = [row for row in range(rows) if tokens[row] is None and _fits(logits[row], states[row], row_masks[row])]
        for row, token in zip(free, _sample_in_torch(logits, states, row_masks, free), strict=True):
            sampled[row] = token
    return [
        found if found is not None else _sample_row(logits[row], states[row], row_masks[row], tokens[row], row)
        for row, found in enumerate(sampled)
    ]


def _sample_row(logits: Logits, state: SamplerState, mask: Mask | None, forced: int | None, row: int) -> SampledToken:
    try:
        return state.sampler.sample(logits, state, mask, forced)
    except ValueError as error:
        raise type(error)(f"row {row}: {error}") from error


def _fits(logits: Logits, state: SamplerState, mask: Mask | None) -> bool:
    """Whether a row can go with others; one that cannot is refused by ``Sampler.sample``, which says why."""
    size = state.sampler.vocab_size
    return tuple(logits.shape) == (size,) and (
        mask is None or (tuple(mask.shape) == ((size + 31) // 32,) and str(mask.dtype) in ("int32", "torch.int32"))
    )


def _on_accelerator(logits: Logits | Sequence[Logits]) -> bool:
    device = getattr(logits, "device", None)
    return not isinstance(logits, np.ndarray) and device is not None and device.type != "cpu"


def _sample_in_torch(
    logits: Logits | Sequence[Logits],
    states: Sequence[SamplerState],
    masks: Sequence[Mask | None],
    rows: Sequence[int],
) -> Sequence[SampledToken | None]:
    import torch

    from grammask.sampling.torch_batch import sample_rows

    if not rows:
        return []
    tensor = torch.stack([torch.as_tensor(logits[row]) for row in rows])
    return sample_rows(tensor, [states[row] for row in rows], [masks[row] for row in rows])
