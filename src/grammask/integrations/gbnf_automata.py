"""Automata of call-free expressions over characters, for notations that have no intersection and no complement.

The core builds them lazily; here all states are visited. A state is known by what the core shows of it, and a text that
was shortened is not trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammask import _core
from grammask.engine.errors import ConstraintTooLarge

MAX_STATES = 1500
_LONGEST_NAME = 4000
"""From about here on the core shortens what it shows."""

Arc = tuple[int, int, int]
"""First and last code point, and the state that they lead to."""


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton over code points; state 0 is the first.

    Attributes:
        arcs: for each state.
        accepting: for each state.
    """

    arcs: tuple[tuple[Arc, ...], ...]
    accepting: tuple[bool, ...]


def automaton_of(builder: _core.Builder, expression: int) -> Automaton:
    """The automaton of a call-free expression whose words are UTF-8.

    Raises:
        ConstraintTooLarge: more than 1500 states, or states that cannot be told apart.
        ValueError: no word.
    """
    return _Explorer(builder.compile(expression).matcher()).automaton()


class _Explorer:
    def __init__(self, start: _core.Matcher) -> None:
        self._numbers: dict[str, int] = {}
        self._places: list[_core.Matcher] = []
        self._memo: dict[tuple[str, int], list[Arc]] = {}
        self._number(start)

    def automaton(self) -> Automaton:
        arcs: list[tuple[Arc, ...]] = []
        while len(arcs) < len(self._places):
            arcs.append(tuple(self._characters(self._places[len(arcs)])))
        return Automaton(tuple(arcs), tuple(place.is_complete for place in self._places))

    def _number(self, place: _core.Matcher) -> int:
        name = _name(place)
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._places)
            self._places.append(place)
            if number >= MAX_STATES:
                raise ConstraintTooLarge(
                    f"a part of the constraint has more than {MAX_STATES} states, too many to write out"
                )
        return number

    def _characters(self, place: _core.Matcher) -> list[Arc]:
        """The arcs from a state, a character each."""
        found: list[Arc] = []
        for byte in place.next_bytes():
            after = place.copy()
            after.accept_bytes(bytes([byte]))
            if byte < 0x80:
                found.append((byte, byte, self._number(after)))
                continue
            rest = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            base = (byte & (0x3F >> rest)) << (6 * rest)
            found += [(base + low, base + high, target) for low, high, target in self._rest(after, rest)]
        return _merged(found)

    def _rest(self, place: _core.Matcher, length: int) -> list[Arc]:
        """The arcs from inside a character, of which ``length`` bytes are left, relative to its first code point."""
        key = (_name(place), length)
        known = self._memo.get(key)
        if known is None:
            found: list[Arc] = []
            for byte in place.next_bytes():
                after = place.copy()
                after.accept_bytes(bytes([byte]))
                base = (byte & 0x3F) << (6 * (length - 1))
                if length == 1:
                    found.append((base, base, self._number(after)))
                else:
                    found += [(base + low, base + high, target) for low, high, target in self._rest(after, length - 1)]
            known = self._memo[key] = _merged(found)
        return known


def _name(place: _core.Matcher) -> str:
    name = "\n".join(place.stack())
    if len(name) > _LONGEST_NAME:
        raise ConstraintTooLarge("a part of the constraint has states too large to tell apart")
    return name


def _merged(arcs: list[Arc]) -> list[Arc]:
    merged: list[Arc] = []
    for low, high, target in sorted(arcs):
        if merged and merged[-1][2] == target and merged[-1][1] + 1 == low:
            merged[-1] = (merged[-1][0], high, target)
        else:
            merged.append((low, high, target))
    return merged
