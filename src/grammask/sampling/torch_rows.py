"""The stages on a batch of rows at once, in torch, on whatever device the logits are.

Imported only where torch is in use. Every function takes and returns float32 [rows, vocabulary] in which −inf means
excluded, and settings as one number per row; a row whose stage is off has a number that changes nothing. Selections are
those of ``candidates`` in numpy, ties included; sums are taken in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from grammask.sampling.edits import Edit
from grammask.sampling.order import Ties

_FIRST_SELECTED = 1024
"""A nucleus is looked for among this many tokens before everything is sorted."""


def weights_of(scores: torch.Tensor) -> torch.Tensor:
    """float64 [rows, vocabulary], proportional to probability, the largest of each row being 1."""
    doubles = scores.double()
    return (doubles - doubles.amax(1, keepdim=True)).exp_()


def entropy_of(scores: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """float64 [rows], in nats."""
    total = weights.sum(1)
    shifted = scores.double() - scores.amax(1, keepdim=True).double()
    moment = torch.where(weights > 0, weights * shifted, 0.0).sum(1)
    return (total.log() - moment / total).clamp_(min=0.0)


def unpack(words: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Packed masks, int32 [rows, words], as bool [rows, vocab_size]."""
    shifts = torch.arange(32, dtype=torch.int32, device=words.device)
    bits = (words.unsqueeze(2) >> shifts) & 1
    return bits.reshape(len(words), -1)[:, :vocab_size].bool()


def apply_edits(scores: torch.Tensor, rows: Sequence[int], edits: Sequence[Edit]) -> torch.Tensor:
    """``edits[i]`` applied to row ``rows[i]``; all are of one kind, and no row has two."""
    device = scores.device
    lengths = [len(edit.ids) for edit in edits]
    at_rows = torch.from_numpy(np.repeat(np.asarray(rows, dtype=np.int64), lengths)).to(device)
    at_ids = torch.from_numpy(np.concatenate([edit.ids for edit in edits])).to(device)
    if edits[0].kind == "ban":
        scores[at_rows, at_ids] = -math.inf
        return scores
    operands = [np.broadcast_to(edit.operand, edit.ids.shape) for edit in edits]
    operand = torch.from_numpy(np.concatenate(operands)).to(device)
    values = scores[at_rows, at_ids]
    if edits[0].kind == "add":
        values = values + operand
    else:
        values = torch.where(values > 0, values / operand, values * operand)
    scores[at_rows, at_ids] = values
    return scores


def divide(scores: torch.Tensor, temperature: torch.Tensor, greedy: torch.Tensor) -> torch.Tensor:
    """Divided by the temperature (float32 [rows]); only the best where ``greedy`` (bool [rows])."""
    best = scores.argmax(1, keepdim=True)
    only = torch.full_like(scores, -math.inf).scatter_(1, best, scores.gather(1, best))
    return torch.where(greedy.unsqueeze(1), only, scores / temperature.unsqueeze(1))


def keep_best(scores: torch.Tensor, count: torch.Tensor, boundary: torch.Tensor, ties: Ties) -> torch.Tensor:
    """bool: the ``count`` best of each row, given the value of the last of them; equal ones by lowest id, or all."""
    bound = boundary.unsqueeze(1)
    if ties == "keep":
        return scores >= bound
    above = scores > bound
    equal = scores == bound
    rank = equal.cumsum(1)
    return above | (equal & (rank <= (count - above.sum(1)).unsqueeze(1)))


def top_k(scores: torch.Tensor, k: torch.Tensor, ties: Ties) -> torch.Tensor:
    """k: int64 [rows]; 0 is off."""
    width = scores.shape[1]
    k = torch.where(k == 0, width, k.clamp(max=width))
    limited = k < width
    if not bool(limited.any()):
        return scores
    largest = int(torch.where(limited, k, 1).max())
    best = scores.topk(largest, dim=1).values
    boundary = best.gather(1, (torch.where(limited, k, 1) - 1).unsqueeze(1)).squeeze(1)
    keep = keep_best(scores, k, boundary, ties) | ~limited.unsqueeze(1)
    return scores.masked_fill(~keep, -math.inf)


def top_p(scores: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """p: float64 [rows]; 1 is off."""
    return _smallest_prefix(scores, scores, p)


def typical_p(scores: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """p: float64 [rows]; 1 is off."""
    weights = weights_of(scores)
    log_total = scores.amax(1).double() + weights.sum(1).log()
    information = log_total.unsqueeze(1) - scores.double()
    nearness = -(information - entropy_of(scores, weights).unsqueeze(1)).abs()
    return _smallest_prefix(scores, nearness, p)


def _smallest_prefix(scores: torch.Tensor, ranking: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """The fewest tokens, highest ``ranking`` first, with at least share p of each row's mass; at least one."""
    weights = weights_of(scores)
    target = p * weights.sum(1)
    for selected in (min(_FIRST_SELECTED, scores.shape[1]), scores.shape[1]):
        best, at = ranking.topk(selected, dim=1)
        reached = weights.gather(1, at).cumsum(1)
        if bool(((reached[:, -1] >= target) | (p >= 1)).all()):
            break
    count = ((reached < target.unsqueeze(1)).sum(1) + 1).clamp(max=selected)
    boundary = best.gather(1, (count - 1).unsqueeze(1)).squeeze(1)
    keep = keep_best(ranking, count, boundary, "lowest-id") | (p >= 1).unsqueeze(1)
    return scores.masked_fill(~keep, -math.inf)


def at_least(scores: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    """Without the scores below the bound (float64 [rows], rounded to float32); −inf is off."""
    return scores.masked_fill(scores < bound.float().unsqueeze(1), -math.inf)


def min_p(scores: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """p: float64 [rows]; 0 is off."""
    return at_least(scores, scores.amax(1).double() + p.log())


def top_n_sigma(scores: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """n: float64 [rows]; inf is off."""
    finite = scores > -math.inf
    count = finite.sum(1, keepdim=True)
    doubles = torch.where(finite, scores.double(), 0.0)
    deviations = torch.where(finite, doubles - doubles.sum(1, keepdim=True) / count, 0.0)
    sigma = ((deviations**2).sum(1) / count.squeeze(1)).sqrt()
    distance = torch.where(torch.isinf(n), math.inf, n * sigma)
    return at_least(scores, scores.amax(1).double() - distance)


def xtc(scores: torch.Tensor, threshold: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
    """threshold: float64 [rows]; acts: bool [rows], the coins."""
    weights = weights_of(scores)
    reaching = weights / weights.sum(1, keepdim=True) >= threshold.unsqueeze(1)
    several = reaching.sum(1) >= 2
    least = torch.where(reaching, scores, math.inf).amin(1, keepdim=True)
    ids = torch.arange(scores.shape[1], device=scores.device)
    kept = torch.where(reaching & (scores == least), ids, -1).amax(1, keepdim=True)
    dropped = reaching & (ids != kept) & (several & acts).unsqueeze(1)
    return scores.masked_fill(dropped, -math.inf)


def draw(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """int64 [rows]: the token at share u (float64 [rows]) of each row's mass, ids ascending."""
    upto = weights.cumsum(1)
    target = (u * upto[:, -1]).unsqueeze(1)
    position = torch.searchsorted(upto, target, right=True).squeeze(1)
    ids = torch.arange(weights.shape[1], device=weights.device)
    last = torch.where(weights > 0, ids, -1).amax(1)
    return torch.minimum(position, last)
