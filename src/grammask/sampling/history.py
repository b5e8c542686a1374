"""What penalties remember of a sequence, updated in constant time, or with one vector operation, per token."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_FIRST_CAPACITY = 64


class TokenCounts:
    """How often each token occurred among the latest ``window`` tokens (None: among all).

    The distinct tokens are kept densely, so that reading them costs nothing however long the sequence is.
    """

    def __init__(self, window: int | None = None) -> None:
        self._window: deque[int] | None = None if window is None else deque()
        self._limit = window
        self._slots: dict[int, int] = {}
        self._ids = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._counts = np.zeros(_FIRST_CAPACITY, dtype=np.float32)

    def append(self, token_id: int) -> None:
        """Count one more token, and forget the one that leaves the window."""
        slot = self._slots.get(token_id)
        if slot is None:
            slot = len(self._slots)
            if slot == len(self._ids):
                self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
                self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
            self._slots[token_id] = slot
            self._ids[slot] = token_id
        self._counts[slot] += 1
        if self._window is not None:
            self._window.append(token_id)
            if len(self._window) > (self._limit or 0):
                self._forget(self._window.popleft())

    def _forget(self, token_id: int) -> None:
        slot = self._slots[token_id]
        self._counts[slot] -= 1
        if self._counts[slot] == 0:
            last = len(self._slots) - 1
            moved = int(self._ids[last])
            self._ids[slot], self._counts[slot] = moved, self._counts[last]
            self._counts[last] = 0
            self._slots[moved] = slot
            del self._slots[token_id]

    @property
    def ids(self) -> NDArray[np.int64]:
        """The distinct tokens, in no particular order."""
        return self._ids[: len(self._slots)]

    @property
    def counts(self) -> NDArray[np.float32]:
        """How often each of ``ids`` occurred; at least 1."""
        return self._counts[: len(self._slots)]


class NgramIndex:
    """Which tokens followed each (size − 1)-gram so far."""

    def __init__(self, size: int) -> None:
        self._prefix: deque[int] = deque(maxlen=size - 1)
        self._size = size
        self._followers: dict[tuple[int, ...], set[int]] = {}

    def append(self, token_id: int) -> None:
        """Record the n-gram that this token completes."""
        if len(self._prefix) == self._size - 1:
            self._followers.setdefault(tuple(self._prefix), set()).add(token_id)
        self._prefix.append(token_id)

    def completing(self) -> NDArray[np.int64]:
        """The tokens that would complete an n-gram seen before, ascending."""
        return np.array(sorted(self._followers.get(tuple(self._prefix), ())), dtype=np.int64)


class BreakerScan:
    """Tells, token after token, where DRY's repetitions end: at a token, or where a string is complete.

    A string may span tokens; the token that completes it is the breaker. It does not span a token without text.

    Args:
        ids: tokens that are breakers themselves.
        texts: the strings, none empty.
        token_bytes: token id to bytes, None for special tokens; needed with texts.
    """

    def __init__(
        self, ids: frozenset[int], texts: Sequence[bytes], token_bytes: Callable[[int], bytes | None] | None
    ) -> None:
        self._ids = ids
        self._texts = texts
        self._token_bytes = token_bytes
        self._reach = max(map(len, texts), default=1) - 1
        self._tail = b""

    def is_whole(self, token_id: int) -> bool:
        """Whether a token is a breaker, or holds one, by itself. DRY never lowers such a token."""
        data = self._token_bytes(token_id) if self._texts and self._token_bytes is not None else None
        return token_id in self._ids or (data is not None and any(text in data for text in self._texts))

    def __call__(self, token_id: int) -> bool:
        """Whether the next token is, or completes, a breaker."""
        if not self._texts or self._token_bytes is None:
            return token_id in self._ids
        data = self._token_bytes(token_id)
        if data is None:
            self._tail = b""
            return token_id in self._ids
        before = len(self._tail)
        recent = self._tail + data
        self._tail = recent[len(recent) - self._reach :] if self._reach else b""
        return token_id in self._ids or any(
            recent.find(text, max(0, before - len(text) + 1)) >= 0 for text in self._texts
        )


class RepetitionLengths:
    """For each earlier position, how long the sequence's end agrees with the text that ends there.

    With tokens x and length n, entry i < n − 1 is the largest L with x[i−L+1 .. i] = x[n−L .. n−1], not reaching across
    a breaker. Appending y gives the new entry i from the old entry i − 1: one more if x[i] = y, else none.

    Args:
        window: only the latest tokens are looked at; None is all of them.
        is_breaker: asked for each token in order: whether a repetition must not contain it.
    """

    def __init__(self, window: int | None, is_breaker: Callable[[int], bool]) -> None:
        self._limit = window
        self._is_breaker = is_breaker
        self._tokens = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._lengths = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self._start = 0
        self._end = 0

    def append(self, token_id: int) -> None:
        """Extend the sequence by one token."""
        if self._end == len(self._tokens):
            self._make_room()
        self._tokens[self._end] = token_id
        self._end += 1
        earlier = self._lengths[self._start : self._end - 1]
        if self._is_breaker(token_id):
            earlier[:] = 0
        else:
            longer = np.ones_like(earlier)
            longer[1:] += earlier[:-1]
            longer[self._tokens[self._start : self._end - 1] != token_id] = 0
            earlier[:] = longer
        if self._limit is not None and self._end - self._start > self._limit:
            self._start += 1
            bound = np.arange(1, self._end - self._start + 1, dtype=np.int32)
            np.minimum(self._lengths[self._start : self._end], bound, out=self._lengths[self._start : self._end])

    def extend(self, token_ids: list[int]) -> None:
        """Append many tokens to an empty structure, in linear time.

        The lengths are the Z-function of the reversed text (Gusfield 1997, chapter 1), cut at the latest breaker.
        """
        breakers = [place for place, token_id in enumerate(token_ids) if self._is_breaker(token_id)]
        limit = len(token_ids) - 1 - breakers[-1] if breakers else len(token_ids)
        token_ids = token_ids if self._limit is None else token_ids[-self._limit :]
        count = len(token_ids)
        lengths = np.minimum(np.array(_z_function(token_ids[::-1])[::-1], dtype=np.int32), limit)
        capacity = max(_FIRST_CAPACITY, 2 * count)
        self._tokens = np.resize(np.array([*token_ids, 0], dtype=np.int64), capacity)
        self._lengths = np.resize(np.append(lengths, np.int32(0)), capacity)
        self._start, self._end = 0, count

    def _make_room(self) -> None:
        length = self._end - self._start
        capacity = max(_FIRST_CAPACITY, 2 * length)
        for name in ("_tokens", "_lengths"):
            old = getattr(self, name)
            new = np.zeros(capacity, dtype=old.dtype)
            new[:length] = old[self._start : self._end]
            setattr(self, name, new)
        self._start, self._end = 0, length

    def continuing(self, shortest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens that would continue a repetition of at least ``shortest`` tokens, and its greatest length."""
        lengths = self._lengths[self._start : self._end - 1]
        found = np.flatnonzero(lengths >= shortest)
        longest: dict[int, int] = {}
        for position in found.tolist():
            token_id, length = int(self._tokens[self._start + position + 1]), int(lengths[position])
            longest[token_id] = max(length, longest.get(token_id, 0))
        return np.array(list(longest), dtype=np.int64), np.array(list(longest.values()), dtype=np.int64)


def _z_function(text: list[int]) -> list[int]:
    """For each position, the length of the longest common prefix of ``text`` and the text from there."""
    count = len(text)
    lengths = [count] * min(count, 1) + [0] * (count - 1)
    left = right = 0
    for start in range(1, count):
        length = min(right - start, lengths[start - left]) if start < right else 0
        while start + length < count and text[length] == text[start + length]:
            length += 1
        lengths[start] = length
        if start + length > right:
            left, right = start, start + length
    return lengths
