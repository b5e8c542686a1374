"""The tokens still in play for one row, and the stages that act on them, in numpy.

Nothing here sorts a whole vocabulary: top-k selects, and the cuts that keep "the best tokens up to a mass" narrow down
to the few tokens around the boundary and sort only those.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grammask.sampling.edits import Edit
from grammask.sampling.order import Ties

FloatArray = NDArray[np.float32]
DoubleArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

_SMALL = 2048
"""Up to this many tokens are simply sorted."""
_STRIDE = 16
"""Every 16th logit is looked at to guess where the k-th largest lies."""
_BLOCK = 512
"""Cumulative sums are taken over blocks of this many tokens first."""
_FIRST_WIDTH = 6.0
"""The first guess for how far below the maximum, in nats, a nucleus reaches."""
_UNDERFLOW = 746.0
"""exp of minus this is 0 in float64."""


class Candidates:
    """Tokens in play, ids ascending; ``len`` is their number.

    Attributes:
        ids: int64 [n], or None where token id = position.
        logits: float32 [n]. All are finite, except that a long row (``ids`` is None) from which less than half was
            excluded keeps its shape, with −inf for what is out: moving all the others would cost more.
    """

    __slots__ = ("_count", "_weights", "ids", "logits")

    def __init__(self, logits: FloatArray, ids: NDArray[np.int64] | None = None, count: int | None = None) -> None:
        self.logits = logits
        self.ids = ids
        self._count = len(logits) if count is None else count
        self._weights: DoubleArray | None = None

    def __len__(self) -> int:
        return self._count

    @classmethod
    def of_row(cls, row: FloatArray) -> Candidates:
        """All tokens of a row that have a finite logit (−inf means excluded; NaN and +inf must not occur)."""
        if row.min() == -np.inf:
            return cls(row).allow(row != -np.inf)
        return cls(row)

    def compact(self) -> Candidates:
        """The same tokens with finite logits only."""
        if len(self) == len(self.logits):
            return self
        return self.keep(np.flatnonzero(self.logits != -np.inf))

    # -- probabilities

    @property
    def weights(self) -> DoubleArray:
        """float64 [n], proportional to probability, the largest being 1."""
        if self._weights is None:
            weights = self.logits.astype(np.float64)
            weights -= weights.max()
            np.exp(weights, out=weights)
            self._weights = weights
        return self._weights

    def probabilities(self) -> DoubleArray:
        """float64 [n], summing to 1."""
        probabilities: DoubleArray = self.weights / self.weights.sum()
        return probabilities

    def entropy(self) -> float:
        """In nats."""
        if len(self) == 1:
            return 0.0
        weights = self.weights
        total = float(weights.sum())
        shifted = self.logits.astype(np.float64)
        shifted -= shifted.max()
        np.maximum(shifted, -_UNDERFLOW, out=shifted)
        return max(0.0, math.log(total) - float(np.dot(weights, shifted)) / total)

    def draw(self, u: float) -> int:
        """The token at share ``u`` (from [0, 1)) of the total mass, ids ascending."""
        return self.token_id(_position_at(self.weights, u))

    def token_id(self, position: int) -> int:
        """The token id at a position."""
        return position if self.ids is None else int(self.ids[position])

    def positions(self, ids: NDArray[np.int64]) -> tuple[IndexArray, NDArray[np.bool_]]:
        """Where these token ids are, and for each whether it is there at all."""
        if self.ids is None:
            return ids, ids < len(self.logits)
        found = np.searchsorted(self.ids, ids)
        present = found < len(self.ids)
        present[present] = self.ids[found[present]] == ids[present]
        return found, present

    # -- changes

    def keep(self, positions: IndexArray) -> Candidates:
        """Only the tokens at these positions, which ascend."""
        kept = Candidates(self.logits[positions], positions if self.ids is None else self.ids[positions])
        if self._weights is not None:
            weights = self._weights[positions]
            top = weights.max() if len(weights) else 0.0
            if top > 0.0:
                kept._weights = weights if top == 1.0 else None
        return kept

    def edit(self, edits: list[Edit]) -> Candidates:
        """The edits applied in their order. Tokens that are not in play stay out of it."""
        logits = self.logits.copy()
        for edit in edits:
            positions, present = self.positions(edit.ids)
            positions = positions[present]
            operand = edit.operand if edit.operand.size <= 1 else edit.operand[present]
            values = logits[positions]
            if edit.kind == "add":
                values += operand
            elif edit.kind == "scale":
                values = np.where(values > 0, values / operand, values * operand)
            else:
                values[:] = -np.inf
            logits[positions] = values
        if not any(edit.kind == "ban" for edit in edits):
            return Candidates(logits, self.ids, len(self))
        return Candidates(logits, self.ids, int(np.count_nonzero(logits != -np.inf)))._reshaped()

    def allow(self, allowed: NDArray[np.bool_]) -> Candidates:
        """Only the tokens that a mask (bool, one entry per vocabulary token) allows."""
        if self.ids is not None:
            return self.keep(np.flatnonzero(allowed[self.ids]))
        if len(self) < len(self.logits):
            allowed = allowed & (self.logits != -np.inf)
        count = int(np.count_nonzero(allowed))
        if not _stays_long(count, len(self.logits)):
            return self.keep(np.flatnonzero(allowed))
        logits = self.logits.copy()
        np.copyto(logits, -np.inf, where=~allowed)
        return Candidates(logits, None, count)

    def _reshaped(self) -> Candidates:
        return self if self.ids is None and _stays_long(len(self), len(self.logits)) else self.compact()

    def divide(self, temperature: float) -> Candidates:
        """Logits divided by a positive temperature."""
        return Candidates(self.logits / np.float32(temperature), self.ids, len(self))

    def only_best(self) -> Candidates:
        """Only the highest logit, the lowest id among equal ones."""
        return self.keep(np.array([int(self.logits.argmax())]))

    # -- cuts

    def top_k(self, k: int, ties: Ties) -> Candidates:
        """The k highest logits; among equal ones at the boundary the lowest ids, or all of them."""
        if k >= len(self):
            return self
        return self.keep(_largest(self.logits, k, ties))

    def top_p(self, p: float) -> Candidates:
        """The smallest set of most likely tokens that has at least probability p; never empty."""
        weights = self.weights
        return self.keep(smallest_prefix(-self.logits, weights, p * float(weights.sum())))

    def min_p(self, p: float) -> Candidates:
        """Tokens at least p times as likely as the most likely one."""
        return self._at_least(float(self.logits.max()) + math.log(p))

    def top_n_sigma(self, n: float) -> Candidates:
        """Tokens whose logit is at most n (population) standard deviations below the highest."""
        finite = self.compact()
        return finite._at_least(float(finite.logits.max()) - n * float(finite.logits.std(dtype=np.float64)))

    def typical_p(self, p: float) -> Candidates:
        """The smallest set, information content nearest to the entropy first, with at least probability p."""
        weights = self.weights
        total = float(weights.sum())
        information = float(self.logits.max()) + math.log(total) - self.logits.astype(np.float64)
        return self.keep(smallest_prefix(np.abs(information - self.entropy()), weights, p * total))

    def xtc(self, threshold: float) -> Candidates:
        """Without the tokens that reach the threshold, except the last of them in order of probability, then id."""
        finite = self.compact()
        probabilities = finite.probabilities()
        reaching = np.flatnonzero(probabilities >= threshold)
        if len(reaching) < 2:
            return finite
        least = finite.logits[reaching].min()
        kept = reaching[np.flatnonzero(finite.logits[reaching] == least)[-1]]
        keep = probabilities < threshold
        keep[kept] = True
        return finite.keep(np.flatnonzero(keep))

    def _at_least(self, bound: float) -> Candidates:
        positions = np.flatnonzero(self.logits >= np.float32(bound))
        return self if len(positions) == len(self) else self.keep(positions)


def _stays_long(count: int, length: int) -> bool:
    """Whether a row of which ``count`` tokens are left keeps its shape."""
    return length > 2 * _SMALL and 2 * count > length


def _largest(values: FloatArray, k: int, ties: Ties) -> IndexArray:
    """Positions, ascending, of the k largest values."""
    pool: IndexArray | None = None
    if len(values) > 2 * _SMALL:
        sample = values[::_STRIDE]
        rank = k * 3 // (2 * _STRIDE) + 8
        if rank < len(sample) // 2:
            guess = np.partition(sample, len(sample) - rank)[len(sample) - rank]
            pool = np.flatnonzero(values >= guess)
    if pool is None or len(pool) < k:
        pool = np.arange(len(values))
    pooled = values[pool]
    boundary = np.partition(pooled, len(pooled) - k)[len(pooled) - k]
    if ties == "keep":
        kept: IndexArray = pool[pooled >= boundary]
        return kept
    above, equal = pool[pooled > boundary], pool[pooled == boundary]
    return np.sort(np.concatenate((above, equal[: k - len(above)])))


def smallest_prefix(keys: FloatArray | DoubleArray, weights: DoubleArray, target: float) -> IndexArray:
    """The shortest prefix, in ascending order of key, whose weights sum to at least ``target``; at least one position.

    Equal keys count in order of position. The boundary is bracketed by doubling a width above the smallest key, then
    halved until few keys are left inside, and only those are sorted. Keys of +inf, with weight 0, are never taken.

    Returns:
        Positions, ascending.
    """
    if len(keys) <= _SMALL:
        return np.sort(_sorted_prefix(keys, weights, np.arange(len(keys)), target))
    smallest = float(keys.min())
    low, high, mass = smallest, smallest + _FIRST_WIDTH, 0.0
    ring = below = np.flatnonzero(keys <= high)
    while (reached := float(weights[below].sum())) < target and high - smallest < _UNDERFLOW:
        low, mass = high, reached
        high = smallest + 2 * (high - smallest)
        below = np.flatnonzero(keys <= high)
        ring = below[keys[below] > low]
    if reached < target:
        return below
    while len(ring) > _SMALL:
        middle = (low + high) / 2
        lower = keys[ring] <= middle
        if not low < middle < high or lower.all() or not lower.any():
            if low < middle < high:
                low, high = (low, middle) if lower.all() else (middle, high)
                continue
            break
        reached = mass + float(weights[ring[lower]].sum())
        if reached >= target:
            high, ring = middle, ring[lower]
        else:
            low, mass, ring = middle, reached, ring[~lower]
    cut = _sorted_prefix(keys, weights, ring, target - mass)
    return np.sort(np.concatenate((np.flatnonzero(keys < keys[ring].min()), cut)))


def _sorted_prefix(
    keys: FloatArray | DoubleArray, weights: DoubleArray, positions: IndexArray, target: float
) -> IndexArray:
    ordered = positions[np.argsort(keys[positions], kind="stable")]
    count = int(np.searchsorted(np.cumsum(weights[ordered]), target)) + 1
    return ordered[:count]


def _position_at(weights: DoubleArray, u: float) -> int:
    """The first position whose cumulative weight exceeds ``u`` times the total."""
    offset = 0.0
    start = 0
    if len(weights) > 16 * _BLOCK:
        sums = np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK))
        upto = np.cumsum(sums)
        target = u * float(upto[-1])
        block = min(int(np.searchsorted(upto, target, side="right")), len(sums) - 1)
        while sums[block] == 0.0:
            block -= 1
        start, offset = block * _BLOCK, float(upto[block - 1]) if block else 0.0
        weights = weights[start : start + _BLOCK]
        upto = offset + np.cumsum(weights)
    else:
        upto = np.cumsum(weights)
        target = u * float(upto[-1])
    position = min(int(np.searchsorted(upto, target, side="right")), len(weights) - 1)
    while weights[position] == 0.0:
        position -= 1
    return start + position
