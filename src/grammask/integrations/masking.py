"""Masks on torch logits, in place and on whatever device they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


def unpack_masks(words: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Packed masks as booleans.

    Args:
        words: int32 [rows, words]; bit t of word t // 32 is token t.
        vocab_size: tokens of the result; those beyond the last word are not allowed.

    Returns:
        bool [rows, vocab_size].
    """
    import torch

    shifts = torch.arange(32, dtype=torch.int32, device=words.device)
    allowed = ((words.unsqueeze(2) >> shifts) & 1).bool().flatten(1)
    if allowed.shape[1] < vocab_size:
        return torch.nn.functional.pad(allowed, (0, vocab_size - allowed.shape[1]))
    return allowed[:, :vocab_size]


def apply_masks_(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Sets the logits of all tokens that the masks do not allow to −inf, in place.

    Where everything that a mask allows has a logit of −inf already, because something else excluded it, those tokens
    become equally likely: the constraint has the last word, and a row never ends up empty. Tensor operations only, so
    ``torch.compile(fullgraph=True)`` takes it.

    Args:
        logits: floating [rows, vocab_size].
        words: int32 [rows, words], packed as ``fill_mask`` writes them, on the device of the logits.

    Returns:
        ``logits``.
    """
    allowed = unpack_masks(words, logits.shape[1])
    logits.masked_fill_(~allowed, -math.inf)
    excluded = (logits == -math.inf).all(dim=1, keepdim=True)
    return logits.masked_fill_(excluded & allowed, 0.0)


def apply_masks_to_rows_(logits: torch.Tensor, rows: list[int], words: NDArray[np.int32]) -> torch.Tensor:
    """``apply_masks_`` on some rows of a batch.

    Args:
        logits: floating [batch, vocab_size].
        rows: the rows that have a mask.
        words: int32 [len(rows), words], in host memory.
    """
    import torch

    if not rows:
        return logits
    packed = torch.from_numpy(words).to(logits.device, non_blocking=True)
    if rows == list(range(logits.shape[0])):
        return apply_masks_(logits, packed)
    index = torch.tensor(rows, device=logits.device)
    logits[index] = apply_masks_(logits[index], packed)
    return logits
