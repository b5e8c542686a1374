"""Random outputs of a constraint whose outputs are JSON, byte by byte."""

from __future__ import annotations

import random
from collections.abc import Iterable

from grammask import _core


def random_byte(allowed: Iterable[int], draw: random.Random, closing: float) -> int:
    """One of the bytes: with this probability one that closes a string, an array or an object, otherwise a visible one,
    if there are such."""
    choices = list(allowed)
    closers = [byte for byte in choices if byte in b'"]}']
    plain = [byte for byte in choices if 0x21 <= byte < 0x7F and byte != 0x5C]
    return draw.choice(closers if closers and draw.random() < closing else plain or choices)


def random_text(
    matcher: _core.Matcher,
    draw: random.Random,
    *,
    ending: float = 0.5,
    closing: float = 0.5,
    long: int,
    longest: int | None = None,
) -> bytes:
    """A whole output; fails at a dead end.

    Args:
        matcher: at the beginning; over a vocabulary in which the id of a byte is the byte.
        ending: the probability of an end wherever there may be one.
        closing: as for ``random_byte``.
        long: an output of more bytes is ended by the shortest completion.
        longest: until when it goes on where none is known; by default one must be known at once.
    """
    text = bytearray()
    while not (matcher.is_complete and draw.random() < ending):
        allowed = matcher.next_bytes()
        if not allowed:
            assert matcher.is_complete, f"dead end after {bytes(text)!r}"
            break
        if len(text) > long:
            completion = matcher.shortest_completion()
            if completion is not None:
                return bytes(text) + bytes(completion)
            assert len(text) < (longest or long), f"no completion after {bytes(text)!r}"
        byte = random_byte(allowed, draw, closing)
        assert matcher.accept_bytes(bytes([byte]))
        text.append(byte)
    return bytes(text)
