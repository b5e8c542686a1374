"""A random instance of a constraint: a walk over its bytes that leans towards what people write."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from grammask.explorer.json_place import place_in

if TYPE_CHECKING:
    from grammask._core import Matcher

ROOM = 600
"""Bytes after which the walk takes the shortest way to an end."""

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset(b"0123456789")


def random_instance(matcher: Matcher, draw: random.Random, room: int = ROOM) -> bytes | None:
    """Bytes that the constraint of a byte-level matcher accepts as a whole.

    Args:
        matcher: before the first byte, over the vocabulary of ``byte_vocabulary``; it is not changed.
        draw: where choices come from.
        room: as ``ROOM``.

    Returns:
        None if the shortest end is further away than the core searches.
    """
    walk = matcher.copy()
    written = bytearray()
    while len(written) < room:
        forced = walk.forced_bytes(room)
        if forced:
            walk.accept_bytes(forced)
            written += forced
            continue
        following = walk.next_bytes()
        if walk.is_complete and (not following or draw.random() < 0.5):
            return bytes(written)
        byte = _choose(following, bytes(written), draw)
        walk.accept_bytes(bytes([byte]))
        written.append(byte)
    completion = walk.shortest_completion()
    if completion is None:
        return None
    return bytes(written) + bytes(token for token in completion if token < 256)


def _choose(following: bytes, written: bytes, draw: random.Random) -> int:
    place = place_in(written.decode("utf-8", "ignore"))
    weights = [_weight(byte, place.where, len(place.partial)) for byte in following]
    if not any(weights):
        weights = [1.0] * len(following)
    return draw.choices(following, weights)[0]


def _weight(byte: int, where: str, length: int) -> float:
    """How often a byte is written, beside others that could come."""
    if byte == ord("\\") or byte in b"\t\r\n":
        return 0.0
    if where in ("in string", "in key"):
        if byte == ord('"'):
            return 1.0 + 3.0 * max(0, length - 4)
        return (
            1.0
            if byte in _LETTERS
            else 0.5
            if byte in _DIGITS
            else 0.2
            if byte == ord(" ")
            else 0.01
            if byte < 0x80
            else 0.001
        )
    if where == "in number":
        return 1.0 if byte in _DIGITS else 0.1 if byte == ord(".") else 0.0 if byte in b"eE" else 4.0
    if byte >= 0x80 or byte == ord("-"):
        return 0.1
    return 1.0
