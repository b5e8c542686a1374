"""A batch of rows, each with its own settings, history and random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from grammask.sampling.inputs import Logits, Mask
from grammask.sampling.report import SampledToken
from grammask.sampling.state import SamplerState


def sample_batch(
    logits: Logits | Sequence[Logits],
    states: Sequence[SamplerState],
    masks: Mask | Sequence[Mask | None] | None = None,
    forced: Sequence[int | None] | None = None,
) -> list[SampledToken]:
    """Choose the next token of every row, each as its own sampler says.

    What a row draws does not depend on the other rows.

    Args:
        logits: [rows, vocab_size], or a sequence of rows.
        states: one per row; their samplers may differ.
        masks: int32 [rows, (vocab_size + 31) // 32], or one mask or None per row.
        forced: for each row the token that comes, or None.

    Raises:
        SamplingError, ValueError: as ``Sampler.sample``, with the number of the row.
    """
    rows = len(states)
    for name, values in (("logits", logits), ("masks", masks), ("forced", forced)):
        if values is not None and len(values) != rows:
            raise ValueError(f"{name} has {len(values)} rows, but there are {rows} states")
    sampled = []
    for row, state in enumerate(states):
        mask = None if masks is None else masks[row]
        token = None if forced is None else forced[row]
        try:
            sampled.append(state.sampler.sample(logits[row], state, mask, token))
        except ValueError as error:
            raise type(error)(f"row {row}: {error}") from error
    return sampled
