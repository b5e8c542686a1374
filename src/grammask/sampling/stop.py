"""Stop strings, found while the text is still being made."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Sequence


class StopStrings:
    """Finds the first stop string in a stream, and never shows a byte that may still belong to one.

    The output ends at the stop string that is complete first; if several end at the same byte, the longest counts. The
    result does not depend on how the stream is cut into pieces: a stop string may span tokens, and so may its
    characters. Strings are matched as UTF-8 bytes with the automaton of Aho & Corasick (1975), one step per byte.

    Args:
        stop: the strings, none empty.
        include: whether the stop string itself is shown.

    Feed either bytes (``push``, ``flush``) or take text (``push_text``, ``flush_text``); do not mix the two.
    """

    def __init__(self, stop: str | Sequence[str], *, include: bool = False) -> None:
        patterns = (stop,) if isinstance(stop, str) else tuple(stop)
        if not all(patterns):
            raise ValueError("a stop string is empty, which would end every output at once: remove it")
        self.include = include
        self.stopped: str | None = None
        """The stop string that ended the output."""
        self._next, self._depth, self._match = _automaton([pattern.encode() for pattern in patterns])
        self._state = 0
        self._held = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def is_stopped(self) -> bool:
        """A stop string was found; whatever is pushed now is dropped."""
        return self.stopped is not None

    @property
    def held(self) -> bytes:
        """Bytes not yet shown, since they may begin a stop string."""
        return bytes(self._held)

    def push(self, data: bytes, *, may_stop: bool = True) -> bytes:
        """Take the next bytes and return those that are certain to be shown.

        Args:
            data: the next piece, of any length.
            may_stop: False ignores stop strings that are completed in this piece (before ``min_tokens``).
        """
        if self.is_stopped:
            return b""
        for position, byte in enumerate(data):
            self._state = self._follow(byte)
            match = self._match[self._state]
            if match is not None and not may_stop:
                self._leave_ignored_match()
            elif match is not None:
                self._held += data[: position + 1]
                shown = self._held if self.include else self._held[: len(self._held) - len(match)]
                self.stopped = match.decode()
                self._held = bytearray()
                return bytes(shown)
        self._held += data
        certain = len(self._held) - self._depth[self._state]
        shown, self._held = self._held[:certain], self._held[certain:]
        return bytes(shown)

    def flush(self) -> bytes:
        """The stream has ended: what was held back."""
        held, self._held, self._state = bytes(self._held), bytearray(), 0
        return held

    def push_text(self, data: bytes, *, may_stop: bool = True) -> str:
        """As ``push``, as text; the bytes of an incomplete character are held back too (invalid ones become U+FFFD)."""
        return self._decoder.decode(self.push(data, may_stop=may_stop), final=self.is_stopped)

    def flush_text(self) -> str:
        """As ``flush``, as text."""
        return self._decoder.decode(self.flush(), final=True)

    def _leave_ignored_match(self) -> None:
        """Where no longer stop string goes on, only a suffix of the text can still begin one."""
        following = self._next[self._state]
        if len(following) == 1:
            self._state = following[_FAILURE]

    def _follow(self, byte: int) -> int:
        state = self._state
        while True:
            found = self._next[state].get(byte)
            if found is not None:
                return found
            if state == 0:
                return 0
            state = self._next[state][_FAILURE]


_FAILURE = -1
"""Under this key a state's transitions hold the state of its longest proper suffix."""


def _automaton(patterns: Sequence[bytes]) -> tuple[list[dict[int, int]], list[int], list[bytes | None]]:
    """Transitions, depth, and the longest pattern that ends there, for each state; state 0 is the start."""
    following: list[dict[int, int]] = [{}]
    depth = [0]
    match: list[bytes | None] = [None]
    for pattern in patterns:
        state = 0
        for byte in pattern:
            if byte not in following[state]:
                following[state][byte] = len(following)
                following.append({})
                depth.append(depth[state] + 1)
                match.append(None)
            state = following[state][byte]
        match[state] = pattern
    failure = [0] * len(following)
    queue = deque(following[0].values())
    while queue:
        state = queue.popleft()
        for byte, child in following[state].items():
            suffix = failure[state]
            while suffix and byte not in following[suffix]:
                suffix = failure[suffix]
            failure[child] = following[suffix].get(byte, 0)
            if match[child] is None:
                match[child] = match[failure[child]]
            queue.append(child)
    for state, suffix in enumerate(failure):
        following[state][_FAILURE] = suffix
    return following, depth, match
