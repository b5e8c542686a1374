"""From token bytes to text that can be shown at once: whole characters, and nothing that may belong to a stop text."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextAssembler:
    """Turns the bytes of one output into pieces of text.

    A token may hold half a character, and a stop text may be spread over tokens. Both are held back until they are
    decided, so the pieces put together are always a prefix of the final text.

    Args:
        stop: texts that end the output. The one that is complete first counts (of several that end at the same place
            the longest), so that the result does not depend on how the text is cut into tokens.
        include_stop: whether that stop text is part of the text.
    """

    def __init__(self, stop: Sequence[str] = (), *, include_stop: bool = False) -> None:
        self._stop = [text for text in stop if text]
        self._include_stop = include_stop
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._parts: list[str] = []
        self.stopped = False

    @property
    def text(self) -> str:
        """All text released so far."""
        return "".join(self._parts)

    def feed(self, data: bytes) -> str:
        """Takes the bytes of one token; returns the text that they release. After a stop text, everything is
        dropped."""
        if self.stopped:
            return ""
        self._held += self._decoder.decode(data)
        found = [(self._held.find(text), text) for text in self._stop]
        ends = [(at + len(text), at) for at, text in found if at >= 0]
        if ends:
            self.stopped = True
            end, start = min(ends)
            return self._release(end if self._include_stop else start)
        return self._release(len(self._held) - self._undecided())

    def finish(self) -> str:
        """The output has ended: returns what was held back because a stop text might have followed."""
        return "" if self.stopped else self._release(len(self._held))

    def _release(self, length: int) -> str:
        piece, self._held = self._held[:length], self._held[length:]
        if piece:
            self._parts.append(piece)
        return piece

    def _undecided(self) -> int:
        """Length of the longest end of the held text that begins a stop text."""
        longest = max((len(text) for text in self._stop), default=0) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(text.startswith(self._held[-length:]) for text in self._stop):
                return length
        return 0
