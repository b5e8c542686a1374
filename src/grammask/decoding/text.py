"""From token bytes to text that can be shown at once: whole characters, and nothing that may belong to a stop text."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from grammask.sampling.stop import StopStrings


class TextAssembler:
    """Turns the bytes of one output into pieces of text.

    A token may hold half a character, and a stop text may be spread over tokens. Both are held back until they are
    decided, so the pieces put together are always a prefix of the final text. Half a character at the very end of an
    output that was cut is left out.

    Args:
        stop: texts that end the output, as ``StopStrings`` finds them.
        include_stop: whether the stop text is part of the text.
    """

    def __init__(self, stop: Sequence[str] = (), *, include_stop: bool = False) -> None:
        self._stop = StopStrings(stop, include=include_stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """All text released so far."""
        return "".join(self._parts)

    @property
    def stopped(self) -> bool:
        """A stop text has appeared; whatever follows is dropped."""
        return self._stop.is_stopped

    def feed(self, data: bytes, *, may_stop: bool = True) -> str:
        """Takes the bytes of one token; returns the text that they release.

        Args:
            data: any bytes.
            may_stop: False ignores a stop text that these bytes complete.
        """
        return self._release(self._stop.push(data, may_stop=may_stop))

    def finish(self) -> str:
        """The output has ended: returns what was held back because a stop text might have followed."""
        return self._release(self._stop.flush())

    def _release(self, data: bytes) -> str:
        piece = self._decoder.decode(data)
        if piece:
            self._parts.append(piece)
        return piece
