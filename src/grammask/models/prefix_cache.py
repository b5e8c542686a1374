"""Keys and values of prompts that were read before, so that a prompt with the same beginning is not read again.

Reading tokens together or apart changes the last bits of their logits, so a cache that is cut anywhere would make an
output depend on the calls before it. Therefore prompts are always read in blocks of ``BLOCK`` tokens, with or without a
cache, and only whole blocks are kept: what comes out of the cache is, bit for bit, what reading would have given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grammask.models.base import Session

BLOCK = 64
"""Tokens of a block: large enough that reading block by block costs little more than reading all at once."""

DEFAULT_MAX_TOKENS = 4096


class PrefixCache:
    """Sessions that hold beginnings of prompts, the latest used last; shared by threads.

    Args:
        max_tokens: how many tokens all of them may hold together; the least recently used go first. 0 keeps none.

    Attributes:
        hits, misses: prompts that found at least one block, and those that found none.
        reading: held while a prompt is read into the cache, so that of several threads with the same prompt one reads
            it, and the others find it.
    """

    def __init__(self, max_tokens: int = DEFAULT_MAX_TOKENS) -> None:
        self.max_tokens = max_tokens
        self.hits = 0
        self.misses = 0
        self.reading = threading.Lock()
        self._entries: list[Any] = []
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """How many tokens are held."""
        with self._lock:
            return sum(entry.length for entry in self._entries)

    def clear(self) -> None:
        """Frees everything."""
        with self._lock:
            self._entries.clear()

    def take(self, token_ids: Sequence[int], limit: int) -> Session | None:
        """A session of one's own with the longest known beginning of these tokens, in whole blocks and at most
        ``limit`` tokens; None if no block is known."""
        with self._lock:
            shared, best = max(
                ((_whole_blocks(min(_common(entry.tokens, token_ids), limit)), entry) for entry in self._entries),
                key=lambda found: found[0],
                default=(0, None),
            )
            if not shared or best is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.remove(best)
            self._entries.append(best)
            session: Session = best.fork()
        session.truncate(shared)
        return session

    def put(self, session: Any) -> None:
        """Keeps a session that holds whole blocks. It must not be used any more by the caller."""
        tokens, length = session.tokens, session.length
        with self._lock:
            if any(_common(entry.tokens, tokens) == length for entry in self._entries):
                return
            self._entries = [entry for entry in self._entries if _common(entry.tokens, tokens) < entry.length]
            self._entries.append(session)
            while sum(entry.length for entry in self._entries) > self.max_tokens:
                del self._entries[0]


class PromptSession:
    """A session of which the prompt is read with the first forward pass, as much as possible from elsewhere.

    Args:
        open_session: given the tokens of the first forward pass, a session that holds a proper beginning of them, and
            how many of its tokens did not have to be read.
        owned: the session is closed in the end.

    Attributes:
        cached_tokens: how many tokens did not have to be read.
    """

    def __init__(self, open_session: Callable[[Sequence[int]], tuple[Session, int]], *, owned: bool = True) -> None:
        self._open = open_session
        self._owned = owned
        self._session: Session | None = None
        self.cached_tokens = 0

    @classmethod
    def cached(cls, new_session: Callable[[], Session], cache: PrefixCache | None, prompt_length: int) -> PromptSession:
        """Reads through a cache."""
        if cache is None:
            return cls(lambda token_ids: (new_session(), 0))

        def open_session(token_ids: Sequence[int]) -> tuple[Session, int]:
            limit = _whole_blocks(min(prompt_length, len(token_ids) - 1))
            if limit == 0:
                return new_session(), 0
            with cache.reading:
                session = cache.take(token_ids, limit) or new_session()
                found = session.length
                for start in range(found, limit, BLOCK):
                    session.forward(token_ids[start : start + BLOCK])
                if 0 < limit <= cache.max_tokens and found < limit:
                    cache.put(session.fork())
            return session, found

        return cls(open_session)

    @classmethod
    def resumed(cls, session: Session) -> PromptSession:
        """Goes on with a session of the caller's, from where it differs from the prompt."""

        def open_session(token_ids: Sequence[int]) -> tuple[Session, int]:
            session.truncate(min(_common(session.tokens, token_ids), len(token_ids) - 1))
            return session, session.length

        return cls(open_session, owned=False)

    @property
    def length(self) -> int:
        return 0 if self._session is None else self._session.length

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        if self._session is None:
            self._session, self.cached_tokens = self._open(token_ids)
            token_ids = token_ids[self._session.length :]
        return self._session.forward(token_ids)

    @property
    def inner(self) -> Session:
        """The session behind it, once it has read something."""
        if self._session is None:
            raise RuntimeError("nothing has been read yet")
        return self._session

    def close(self) -> None:
        """The output is written: frees what the session holds, if it is not the caller's."""
        close = getattr(self._session, "close", None)
        if self._owned and close is not None:
            close()
        self._session = None


def _whole_blocks(length: int) -> int:
    return length - length % BLOCK


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """The length of the longest common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
