"""A completion of few tokens, where the shortest text is not the one with the fewest.

The core completes an output with a short text (``Matcher.shortest_completion``) and spells that in as few tokens as can
be. Another text may take fewer: five letters are five tokens if they are "aaaaa", and one if they are a word. So where
the short text does not fit into a token limit, others are looked at here: a best-first search over tokens, those places
first from which the fewest bytes are missing. A first search looks at the longest tokens of each place alone, since
they lead furthest; a second one at all of them.

Places that the matcher describes alike (its frames, the bytes that may follow, the short completion) are visited once,
and the work is limited. What is found is a completion, for each of its tokens has been accepted; where nothing is
found, a completion may still exist, and ``Search.exhausted`` tells whether the search had to be given up.

Covered by tests/decoding/test_fewest.py.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammask._core import ConstraintTooLargeError

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.engine.vocabulary import Vocabulary

BREADTH = 64
"""Tokens of a place that the first search looks at."""
MOST_TOKENS_TRIED = 40_000
"""In both searches together: a token takes some ten microseconds. Long ways to a place and from it count as well."""


@dataclass(frozen=True)
class Search:
    """What a search came to.

    Attributes:
        tokens: they complete the output; None if no completion was found.
        exhausted: the limit on the work was reached before every way had been looked at.
    """

    tokens: list[int] | None
    exhausted: bool


def fewest_tokens(matcher: Matcher, limit: int, vocabulary: Vocabulary) -> Search:
    """Looks for at most ``limit`` tokens that complete the output.

    Args:
        matcher: at the place to start from; it is moved, so pass a copy.
        vocabulary: of the matcher.
    """
    if matcher.is_complete:
        return Search([], exhausted=False)
    lengths = np.array([len(vocabulary.token_bytes(i) or b"") for i in range(vocabulary.size)])
    search = _BestFirst(matcher, limit, lengths)
    try:
        found = search.run(BREADTH, MOST_TOKENS_TRIED // 2)
        if found is None:
            search.exhausted = False
            found = search.run(vocabulary.size, MOST_TOKENS_TRIED)
    except ConstraintTooLargeError:
        return Search(None, exhausted=True)
    return Search(found, search.exhausted)


class _BestFirst:
    """
    Args:
        lengths: bytes of each token, int [vocabulary size].

    Attributes:
        exhausted: a way was left out: for the work, or because the core knows no completion from there.
    """

    def __init__(self, matcher: Matcher, limit: int, lengths: NDArray[np.int64]) -> None:
        self._matcher = matcher
        self._limit = limit
        self._lengths = lengths
        self._ranks = np.empty_like(lengths)
        self._ranks[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
        self._tried = 0
        self.exhausted = False

    def run(self, breadth: int, most: int) -> list[int] | None:
        """Tokens that complete the output, or None.

        Args:
            breadth: tokens to look at in each place.
            most: give up when so many tokens have been tried.
        """
        # What is missing in bytes, a number that decides between equals, and the tokens that lead there.
        places: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
        seen: dict[object, int] = {}
        while places:
            _, _, path = heapq.heappop(places)
            for token_id in path:
                self._matcher.accept(token_id)
            self._tried += len(path)
            for token_id in self._candidates(breadth):
                if self._tried >= most:
                    self.exhausted = True
                    break
                self._tried += 1
                self._matcher.accept(token_id)
                tokens = (*path, token_id)
                rest = self._rest(len(tokens), seen)
                if isinstance(rest, list):
                    return [*tokens, *rest]
                if rest is not None:
                    heapq.heappush(places, (rest, self._tried, tokens))
                self._matcher.rollback(1)
            self._matcher.rollback(len(path))
            if self.exhausted:
                break
        return None

    def _candidates(self, breadth: int) -> list[int]:
        """The tokens that may come next, the longest first, and the one that the core would take."""
        allowed = self._matcher.allowed_token_ids()
        self._tried += len(allowed) // 512
        ranks = self._ranks[allowed]
        if len(allowed) <= breadth:
            return list(allowed[np.argsort(ranks)].tolist())
        longest = list(allowed[np.argpartition(ranks, breadth)[:breadth]].tolist())
        plan = self._matcher.shortest_completion()
        return [*plan[:1], *longest] if plan and plan[0] not in longest else longest

    def _rest(self, written: int, seen: dict[object, int]) -> list[int] | int | None:
        """The tokens that complete the output from here; if they are too many, how many bytes they are; None if this
        place needs no further look."""
        matcher = self._matcher
        if written == self._limit:
            return [] if matcher.is_complete else None
        rest = matcher.shortest_completion()
        if rest is None:
            self.exhausted = True
            return None
        if written + len(rest) <= self._limit:
            return rest
        self._tried += len(rest) // 16
        place = (tuple(rest), matcher.next_bytes(), tuple(matcher.stack()))
        if seen.get(place, self._limit) <= written:
            return None
        seen[place] = written
        return int(self._lengths[rest].sum())
