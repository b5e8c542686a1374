"""What callers hand in, checked: logits and packed masks, from numpy or torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from grammask.sampling.candidates import FloatArray
from grammask.sampling.errors import SamplingError

if TYPE_CHECKING:
    import torch

Logits: TypeAlias = Union[NDArray[Any], "torch.Tensor"]
"""Floating-point numbers."""
Mask: TypeAlias = Union[NDArray[np.int32], "torch.Tensor"]
"""Packed int32 words: bit t % 32 of word t // 32 allows token t."""


def as_row(logits: Logits, vocab_size: int) -> FloatArray:
    """Logits as a float32 numpy row, without a copy where they already are one.

    Raises:
        ValueError: not [vocab_size] floating-point numbers.
        SamplingError: NaN, +inf, or nothing but −inf.
    """
    row = logits if isinstance(logits, np.ndarray) else _from_torch(logits)
    if row.ndim != 1 or len(row) != vocab_size:
        raise ValueError(f"logits have shape {tuple(row.shape)}: use one row of {vocab_size}")
    if row.dtype != np.float32:
        if not np.issubdtype(row.dtype, np.floating):
            raise ValueError(f"logits have dtype {row.dtype}: use floating-point numbers")
        row = row.astype(np.float32)
    check_maximum(float(row.max()))
    return row


def check_maximum(highest: float) -> None:
    """Refuse a row by its maximum, which is NaN if the row has one.

    Raises:
        SamplingError: NaN, +inf or −inf.
    """
    if math.isnan(highest):
        raise SamplingError("the logits contain NaN: the model's computation failed (overflow in float16 is common)")
    if highest == math.inf:
        raise SamplingError("the logits contain +inf, which makes probabilities undefined: use a large finite number")
    if highest == -math.inf:
        raise SamplingError("every logit is -inf: no token can be chosen")


def unpack_mask(mask: Mask, vocab_size: int) -> NDArray[np.bool_]:
    """A packed mask as bool [vocab_size].

    Raises:
        ValueError: not int32 [(vocab_size + 31) // 32].
    """
    words = mask if isinstance(mask, np.ndarray) else mask.detach().cpu().numpy()
    if words.dtype != np.int32 or words.shape != ((vocab_size + 31) // 32,):
        expected = f"int32 [{(vocab_size + 31) // 32}] for {vocab_size} tokens"
        raise ValueError(f"the mask is {words.dtype} {tuple(words.shape)}: use {expected}")
    little = np.ascontiguousarray(words).astype("<i4", copy=False)
    return np.unpackbits(little.view(np.uint8), bitorder="little", count=vocab_size).view(np.bool_)


def _from_torch(tensor: torch.Tensor) -> FloatArray:
    if not hasattr(tensor, "detach"):
        raise ValueError(f"logits are a {type(tensor).__name__}: use a numpy array or a torch tensor")
    if not tensor.is_floating_point():
        raise ValueError(f"logits have dtype {tensor.dtype}: use floating-point numbers")
    row: FloatArray = tensor.detach().float().cpu().numpy()
    return row
