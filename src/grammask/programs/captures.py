"""Which text belongs to which part of a grammar: the parts of one output, found again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from grammask._core import Compiled
from grammask.programs.parts import Gen
from grammask.validation.json_problems import compile_for_bytes


class NoSplit(ValueError):
    """The text is not made of these parts."""


def split(text: str, parts: Sequence[str | Gen]) -> list[str]:
    """The texts of the parts, in order; put together they are the text.

    Of several ways, the one in which the first part is longest, then the second, and so on.

    Raises:
        NoSplit: the parts do not add up to the text.
    """
    data = text.encode()
    compiled = [part.encode() if isinstance(part, str) else compile_for_bytes(part.constraint) for part in parts]
    dead: set[tuple[int, int]] = set()
    ends: list[list[int]] = []
    """For each part that is placed, the ends that are still to be tried, the longest last."""
    place = 0
    while True:
        number = len(ends)
        if number == len(compiled):
            if place == len(data):
                break
            options: list[int] = []
        elif (number, place) in dead:
            options = []
        else:
            options = _ends(data, place, compiled[number])
        if number < len(compiled) and options:
            ends.append(options)
            place = options[-1]
            continue
        place = _next_way(ends, dead)
    starts = [0, *[options[-1] for options in ends]]
    return [data[start:end].decode() for start, end in itertools.pairwise(starts)]


def _next_way(ends: list[list[int]], dead: set[tuple[int, int]]) -> int:
    """Gives up the last end that was tried; returns where the next one is."""
    while ends:
        dead.add((len(ends), ends[-1].pop()))
        if ends[-1]:
            return ends[-1][-1]
        ends.pop()
    raise NoSplit("the text is not made of these parts")


def _ends(data: bytes, start: int, part: bytes | Compiled) -> list[int]:
    """Where a part that starts at a place can end, ascending."""
    if isinstance(part, bytes):
        return [start + len(part)] if data.startswith(part, start) else []
    matcher = part.matcher()
    found = [start] if matcher.is_complete else []
    for end in range(start + 1, len(data) + 1):
        if not matcher.accept_bytes(data[end - 1 : end]):
            break
        if matcher.is_complete and (end == len(data) or data[end] & 0xC0 != 0x80):
            found.append(end)
    return found
