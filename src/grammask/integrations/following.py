"""A matcher that keeps up with the tokens of one sequence as an engine reports them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grammask import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask.engine.compile import CompiledConstraint
    from grammask.engine.vocabulary import Vocabulary


class Follower:
    """The constraint's state after the output tokens of one sequence.

    Three things set it apart from a matcher: it knows how many tokens it has read and can go back to any earlier
    number; further token ids (a request's own stop tokens) may end the output where it is complete; and it says when a
    sequence has left the constraint, which an engine does only if something else overruled the masks.

    Args:
        compiled: the constraint.
        stop_ids: ids at which the engine stops, beside the vocabulary's ends of text. Those that are no text may come
            where the output may end; those that are text stay what they are.
    """

    __slots__ = ("_compiled", "_end_ids", "_ended", "_lost", "_matcher", "_tokens")

    def __init__(self, compiled: CompiledConstraint, stop_ids: Iterable[int] = ()) -> None:
        vocabulary = compiled.vocabulary
        known = frozenset(vocabulary.eos_token_ids)
        self._compiled = compiled
        self._end_ids = tuple(
            token
            for token in sorted(set(stop_ids) - known)
            if 0 <= token < vocabulary.size and vocabulary.token_bytes(token) is None
        )
        self._matcher = compiled.matcher()
        self._tokens: list[int] = []
        self._ended: int | None = None
        self._lost: int | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """What the constraint was compiled for."""
        return self._compiled.vocabulary

    @property
    def length(self) -> int:
        """How many tokens were read."""
        return len(self._tokens)

    @property
    def tokens(self) -> list[int]:
        """The tokens that were read."""
        return list(self._tokens)

    @property
    def has_ended(self) -> bool:
        """An end of text was read: whatever follows is not part of the output."""
        return self._ended is not None

    @property
    def is_lost(self) -> bool:
        """A token was read that the constraint does not allow."""
        return self._lost is not None

    @property
    def is_complete(self) -> bool:
        """The tokens so far are a valid output."""
        return not self.is_lost and (self.has_ended or self._matcher.is_complete)

    def forced_bytes(self) -> bytes:
        """The bytes that are certain to come next; none where the output may end, has ended or is lost."""
        if self._ended is not None or self._lost is not None:
            return b""
        return self._matcher.forced_bytes()

    def fill_mask(self, out: NDArray[np.int32]) -> None:
        """Which tokens may come next. After the end it is all of them: what follows is not the constraint's business.
        A sequence that is lost may only end.

        Args:
            out: int32 [(vocabulary size + 31) // 32], contiguous; bit t of word t // 32 is token t.
        """
        if self._ended is None and self._lost is None:
            self._matcher.fill_mask(out)
        self._complete_mask(out)

    def _complete_mask(self, out: NDArray[np.int32]) -> None:
        """Adds to the matcher's mask, if there is one, what the matcher knows nothing of."""
        if self._ended is not None:
            out[:] = -1
        elif self._lost is not None:
            out[:] = 0
            _allow(out, [*self._compiled.vocabulary.eos_token_ids, *self._end_ids])
        elif self._end_ids and self._matcher.is_complete:
            _allow(out, self._end_ids)

    def read(self, tokens: Iterable[int]) -> None:
        """Takes the next tokens."""
        for token in tokens:
            if self._ended is None and self._lost is None:
                self._step(token)
            self._tokens.append(token)

    def _step(self, token: int) -> None:
        position = len(self._tokens)
        if token in self._end_ids and self._matcher.is_complete:
            self._ended = position
        elif not 0 <= token < self._compiled.vocabulary.size or not self._matcher.accept(token):
            self._lost = position
        elif self._matcher.is_terminated:
            self._ended = position

    def go_back(self, length: int) -> None:
        """Forgets all tokens from position ``length`` on.

        Raises:
            ValueError: fewer tokens were read.
        """
        if not 0 <= length <= len(self._tokens):
            raise ValueError(f"cannot go back to {length} of {len(self._tokens)} tokens")
        limits = [place for place in (self._lost, self._ended) if place is not None]
        accepted = min(limits, default=len(self._tokens))
        if self._ended is not None and self._matcher.is_terminated:
            accepted += 1
        if accepted > length:
            self._matcher.rollback(accepted - length)
        if self._ended is not None and self._ended >= length:
            self._ended = None
        if self._lost is not None and self._lost >= length:
            self._lost = None
        del self._tokens[length:]

    def copy(self) -> Follower:
        """An independent follower at the same place."""
        twin = object.__new__(Follower)
        twin._compiled = self._compiled
        twin._end_ids = self._end_ids
        twin._matcher = self._matcher.copy()
        twin._tokens = list(self._tokens)
        twin._ended = self._ended
        twin._lost = self._lost
        return twin


def fill_rows(followers: Sequence[Follower], out: NDArray[np.int32], threads: int | None = None) -> None:
    """The masks of many sequences, each as ``Follower.fill_mask`` says, on several threads and without the GIL.

    Args:
        followers: each once.
        out: int32 [at least len(followers), (vocabulary size + 31) // 32], contiguous; the first rows are written.
        threads: most threads to use; None is as many as there are processors.
    """
    live = [(row, follower) for row, follower in enumerate(followers) if not (follower.has_ended or follower.is_lost)]
    if len(live) == len(followers):
        _core.fill_masks([follower._matcher for follower in followers], out[: len(followers)], threads)
    elif live:
        dense = np.empty((len(live), out.shape[1]), dtype=np.int32)
        _core.fill_masks([follower._matcher for _, follower in live], dense, threads)
        out[[row for row, _ in live]] = dense
    for row, follower in enumerate(followers):
        follower._complete_mask(out[row])


def _allow(out: NDArray[np.int32], token_ids: Iterable[int]) -> None:
    words = out.view(np.uint32)
    for token in token_ids:
        words[token >> 5] |= np.uint32(1 << (token & 31))
