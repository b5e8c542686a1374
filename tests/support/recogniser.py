"""A slow recogniser for the languages that the core's Builder describes, to judge masks by the definition.

Regular parts are explicit deterministic automata over bytes and letters, made by exploring products and subsets;
calls and rules are letters, and a text is parsed bottom-up by fixpoints over spans. Nothing is lazy and there are no
derivatives, so that nothing is shared with the core.

A *symbol* is a byte (``int``), a special token ``("token", id)`` or a letter (any other hashable value).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Symbol = Hashable
Text = tuple[Symbol, ...]


@dataclass(frozen=True)
class Dfa:
    """A deterministic automaton with start state 0; a missing edge is a dead end.

    edges: per state, symbol -> next state.
    accepting: per state, whether the word so far is in the language.
    """

    edges: tuple[Mapping[Symbol, int], ...]
    accepting: tuple[bool, ...]

    def contains(self, word: Iterable[Symbol]) -> bool:
        """Whether the word of symbols is in the language."""
        state = 0
        for symbol in word:
            if symbol not in self.edges[state]:
                return False
            state = self.edges[state][symbol]
        return self.accepting[state]

    def symbols(self) -> set[Symbol]:
        """All symbols on edges."""
        return {symbol for edges in self.edges for symbol in edges}


def explore(start: Any, step: Callable[[Any], Mapping[Symbol, Any]], accepts: Callable[[Any], bool]) -> Dfa:
    """The automaton of all states reachable from ``start``, as small as possible."""
    number = {start: 0}
    queue = [start]
    edges: list[dict[Symbol, int]] = []
    for state in queue:
        out = {}
        for symbol, following in step(state).items():
            if following not in number:
                number[following] = len(queue)
                queue.append(following)
            out[symbol] = number[following]
        edges.append(out)
    return _minimal(edges, [accepts(state) for state in queue])


def _minimal(edges: list[dict[Symbol, int]], accepting: list[bool]) -> Dfa:
    """Drops states from which nothing is accepted and merges equivalent ones (Moore)."""
    live = {state for state, accepts in enumerate(accepting) if accepts}
    while True:
        found = {s for s, out in enumerate(edges) if s not in live and any(t in live for t in out.values())}
        if not found:
            break
        live |= found
    block = {state: int(accepting[state]) for state in live}
    while True:
        signature = {
            state: (block[state], frozenset((a, block[t]) for a, t in edges[state].items() if t in live))
            for state in live
        }
        names = {value: index for index, value in enumerate(set(signature.values()))}
        refined = {state: names[signature[state]] for state in live}
        if len(names) == len(set(block.values())):
            break
        block = refined
    if 0 not in live:
        return EMPTY
    order = [block[0]]
    member = {block[state]: state for state in live}
    for name in order:
        for target in edges[member[name]].values():
            if target in live and block[target] not in order:
                order.append(block[target])
    number = {name: index for index, name in enumerate(order)}
    return Dfa(
        tuple({a: number[block[t]] for a, t in edges[member[name]].items() if t in live} for name in order),
        tuple(accepting[member[name]] for name in order),
    )


EMPTY = Dfa(({},), (False,))
EPSILON = Dfa(({},), (True,))


def word(symbols: Sequence[Symbol]) -> Dfa:
    """Exactly one word."""
    count = len(symbols)
    return Dfa((*({symbol: index + 1} for index, symbol in enumerate(symbols)), {}), (*[False] * count, True))


def words(texts: Iterable[Sequence[Symbol]]) -> Dfa:
    """Exactly these words."""
    edges: list[dict[Symbol, int]] = [{}]
    accepting = [False]
    for text in texts:
        state = 0
        for symbol in text:
            if symbol not in edges[state]:
                edges[state][symbol] = len(edges)
                edges.append({})
                accepting.append(False)
            state = edges[state][symbol]
        accepting[state] = True
    return _minimal(edges, accepting)


def concat(parts: Sequence[Dfa]) -> Dfa:
    """One word of each, one after the other."""
    result = EPSILON
    for part in parts:
        result = _concat_two(result, part)
    return result


def _concat_two(a: Dfa, b: Dfa) -> Dfa:
    def closed(p: int | None, qs: frozenset[int]) -> tuple[int | None, frozenset[int]]:
        return p, qs | {0} if p is not None and a.accepting[p] else qs

    def step(state: tuple[int | None, frozenset[int]]) -> Mapping[Symbol, Any]:
        p, qs = state
        symbols = set(a.edges[p]) if p is not None else set()
        symbols |= {symbol for q in qs for symbol in b.edges[q]}
        return {
            symbol: closed(
                a.edges[p].get(symbol) if p is not None else None,
                frozenset(b.edges[q][symbol] for q in qs if symbol in b.edges[q]),
            )
            for symbol in symbols
        }

    return explore(closed(0, frozenset()), step, lambda state: any(b.accepting[q] for q in state[1]))


def _product(parts: Sequence[Dfa], accepts: Callable[[list[bool]], bool], needs_all: bool) -> Dfa:
    def step(state: tuple[int | None, ...]) -> Mapping[Symbol, Any]:
        sets = [set(part.edges[q]) if q is not None else set() for part, q in zip(parts, state, strict=True)]
        symbols = set.intersection(*sets) if needs_all else set.union(*sets)
        return {
            symbol: tuple(
                part.edges[q].get(symbol) if q is not None else None for part, q in zip(parts, state, strict=True)
            )
            for symbol in symbols
        }

    def accepting(state: tuple[int | None, ...]) -> bool:
        return accepts([q is not None and part.accepting[q] for part, q in zip(parts, state, strict=True)])

    return explore((0,) * len(parts), step, accepting)


def union(parts: Sequence[Dfa]) -> Dfa:
    """The words of any part."""
    return _product(parts, any, needs_all=False) if parts else EMPTY


def intersection(parts: Sequence[Dfa]) -> Dfa:
    """The words of all parts, of which there must be some."""
    return _product(parts, all, needs_all=True)


def complement(a: Dfa, alphabet: Iterable[Symbol]) -> Dfa:
    """All other words over the alphabet."""
    symbols = list(alphabet)

    def step(state: int | None) -> Mapping[Symbol, Any]:
        return {symbol: None if state is None else a.edges[state].get(symbol) for symbol in symbols}

    return explore(0, step, lambda state: state is None or not a.accepting[state])


def repeat(a: Dfa, low: int, high: int | None) -> Dfa:
    """Between low and high words of ``a``, one after the other; None for any number."""
    result = concat([a] * low)
    if high is not None:
        optional = union([a, EPSILON])
        for _ in range(high - low):
            result = _concat_two(result, optional)
        return result

    def closed(qs: frozenset[int]) -> frozenset[int]:
        return qs | {0} if any(a.accepting[q] for q in qs) else qs

    def step(qs: frozenset[int]) -> Mapping[Symbol, Any]:
        symbols = {symbol for q in qs for symbol in a.edges[q]}
        return {s: closed(frozenset(a.edges[q][s] for q in qs if s in a.edges[q])) for s in symbols}

    # The start is kept apart: it accepts, but states inside a word that go back to it need not.
    star = explore(
        ("start", frozenset({0})),
        lambda state: {symbol: ("inside", qs) for symbol, qs in step(state[1]).items()},
        lambda state: state[0] == "start" or any(a.accepting[q] for q in state[1]),
    )
    return _concat_two(result, star)


class Recogniser:
    """Words and live prefixes of a grammar: an automaton for the root and one for the body of each letter."""

    def __init__(self, root: Dfa, bodies: Mapping[Symbol, Dfa]) -> None:
        self._automata = {"root": root, **{("letter", name): body for name, body in bodies.items()}}
        self._bodies = bodies
        self._productive: set[Symbol] = set()
        while True:
            found = {name for name, dfa in self._automata.items() if 0 in self._completable(dfa)}
            if found == self._productive:
                break
            self._productive = found
        self._alive = {name: self._completable(dfa) for name, dfa in self._automata.items()}
        self._known: dict[Text, tuple[bool, bool]] = {}

    def _is_letter(self, symbol: Symbol) -> bool:
        return symbol in self._bodies

    def _completable(self, dfa: Dfa) -> set[int]:
        """States from which a word can be finished, given the letters known to have words."""
        alive = {q for q, accepts in enumerate(dfa.accepting) if accepts}
        while True:
            found = {
                q
                for q, out in enumerate(dfa.edges)
                if q not in alive
                for symbol, t in out.items()
                if t in alive and (not self._is_letter(symbol) or ("letter", symbol) in self._productive)
            }
            if not found:
                return alive
            alive |= found

    def byte_values(self) -> set[int]:
        """All bytes that occur in automata."""
        return {symbol for dfa in self._automata.values() for symbol in dfa.symbols() if isinstance(symbol, int)}

    @property
    def is_empty(self) -> bool:
        """Whether there is no word at all."""
        return "root" not in self._productive

    def is_word(self, text: Text) -> bool:
        """Whether the text belongs to the language."""
        return self._judge(text)[0]

    def is_prefix(self, text: Text) -> bool:
        """Whether the text begins a word of the language."""
        return self._judge(text)[1]

    def _judge(self, text: Text) -> tuple[bool, bool]:
        if text not in self._known:
            self._known[text] = self._parse(text)
        return self._known[text]

    def _parse(self, text: Text) -> tuple[bool, bool]:
        length = len(text)
        ends: dict[tuple[Symbol, int], set[int]] = {(x, i): set() for x in self._automata for i in range(length + 1)}
        reached: dict[tuple[Symbol, int], set[tuple[int, int]]] = {}
        changed = True
        while changed:
            changed = False
            for (name, begin), known in ends.items():
                dfa = self._automata[name]
                seen = {(0, begin)}
                work = [(0, begin)]
                for q, at in work:
                    for symbol, target in dfa.edges[q].items():
                        if self._is_letter(symbol):
                            following = ends[("letter", symbol), at]
                        else:
                            following = {at + 1} if at < length and text[at] == symbol else set()
                        for end in following:
                            if (target, end) not in seen:
                                seen.add((target, end))
                                work.append((target, end))
                reached[name, begin] = seen
                found = {end for q, end in seen if dfa.accepting[q]}
                if found != known:
                    known |= found
                    changed = True
        begins: set[tuple[Symbol, int]] = set()
        changed = True
        while changed:
            changed = False
            for (name, begin), places in reached.items():
                if (name, begin) in begins:
                    continue
                dfa, alive = self._automata[name], self._alive[name]
                for q, at in places:
                    if (at == length and q in alive) or any(
                        self._is_letter(symbol) and target in alive and (("letter", symbol), at) in begins
                        for symbol, target in dfa.edges[q].items()
                    ):
                        begins.add((name, begin))
                        changed = True
                        break
        return length in ends["root", 0], ("root", 0) in begins
