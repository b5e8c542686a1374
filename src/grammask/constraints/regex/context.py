"""What stands before a position, as a finite state: the context that assertions look at.

``^``, ``\\b`` and look-behinds ask about the text before a position. The text before matters only through a *state*:
the kind of the last character, and for each look-behind ``(?<=B)`` the state of an automaton for ``.*B``. States
advance character by character. The automata are made of partial derivatives (Antimirov 1996): a state is the set of
what may remain of ``B`` for the different places where ``B`` may have begun.

``$``, ``\\b`` and ``\\B`` also ask about the next character, so whether an assertion holds in a state is not a yes or
no but a *mask*: the set of next symbols for which it holds. Bit i stands for block i of a partition of the code
points that is just fine enough for the pattern's boundaries, the bit after the last block for the end of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from grammask.constraints.regex import codepoints, syntax
from grammask.constraints.regex.codepoints import CodePointSet
from grammask.constraints.regex.syntax import (
    Alternation,
    Chars,
    Concat,
    End,
    LookAhead,
    LookBehind,
    Node,
    Repeat,
    Start,
    Text,
    WordBoundary,
)
from grammask.engine.errors import ConstraintTooLarge, UnsupportedConstraint

MAX_RESIDUALS = 4096
"""What a look-behind or a repeated look-ahead may leave open at one position."""

MAX_STATES = 256
"""States that a part before an assertion may lead to."""

Residuals = frozenset[Node]
"""What may still have to be matched: the states, all active at once, of a nondeterministic automaton."""

Mask = int

AT_START = -1
"""The "kind of the last character" before the first one."""


class Obligation(NamedTuple):
    """A look-ahead that was entered and is not decided: some (no, when negated) residual must match what follows."""

    negated: bool
    residuals: Residuals


class State(NamedTuple):
    """What is known at a position.

    Attributes:
        last: block of the partition that the last character belongs to, AT_START before the first.
        behind: for each look-behind of the pattern, inner ones first, its residuals (its own body included).
        next_mask: the next symbols that are still allowed.
        obligations: undecided look-aheads; used inside repetitions only.
    """

    last: int
    behind: tuple[Residuals, ...]
    next_mask: Mask
    obligations: frozenset[Obligation]


def walk(node: Node) -> Iterator[Node]:
    """The node and everything in it, inner nodes first."""
    if isinstance(node, Concat):
        children: tuple[Node, ...] = node.parts
    elif isinstance(node, Alternation):
        children = node.branches
    elif isinstance(node, Repeat | LookAhead | LookBehind):
        children = (node.body,)
    else:
        children = ()
    for child in children:
        yield from walk(child)
    yield node


class Context:
    """The states of one pattern."""

    def __init__(self, pattern: Node) -> None:
        boundaries: list[CodePointSet] = []
        behinds: dict[Node, None] = {}
        inside_look_arounds: set[Node] = set()
        for node in walk(pattern):
            if isinstance(node, WordBoundary):
                boundaries.append(node.word)
            elif isinstance(node, Start):
                boundaries.append(node.after)
            elif isinstance(node, End):
                boundaries.append(node.before)
            elif isinstance(node, LookBehind):
                behinds[node.body] = None
            if isinstance(node, LookAhead | LookBehind):
                inside_look_arounds.update(walk(node.body))
        self.blocks = codepoints.partition(boundaries)
        self.end_bit: Mask = 1 << len(self.blocks)
        self.all_mask: Mask = self.end_bit * 2 - 1
        self.behinds = tuple(behinds)  # the bodies of the look-behinds, inner ones first
        # Letters: blocks of a finer partition on which no step can tell two code points apart.
        sets = [node.ranges for node in inside_look_arounds if isinstance(node, Chars)]
        sets += [
            ((ord(char), ord(char)),)
            for node in inside_look_arounds
            if isinstance(node, Text)
            for char in set(node.text)
        ]
        self.letters = codepoints.partition([*self.blocks, *sets])
        self._block_of_letter = [self._block(letter[0][0]) for letter in self.letters]
        self._steps: dict[tuple[State, int], State | None] = {}
        self.start = State(AT_START, tuple(frozenset((body,)) for body in self.behinds), self.all_mask, frozenset())

    def _block(self, code_point: int) -> int:
        return next(index for index, block in enumerate(self.blocks) if codepoints.contains(block, code_point))

    # -- assertions

    def holds(self, node: Node, state: State) -> Mask:
        """The next symbols for which ``node`` can match the empty word here.

        Raises:
            UnsupportedConstraint: a look-ahead inside a look-behind or inside a repeated look-ahead.
        """
        if isinstance(node, Text):
            return 0 if node.text else self.all_mask
        if isinstance(node, Chars):
            return 0
        if isinstance(node, Concat):
            mask = self.all_mask
            for part in node.parts:
                mask &= self.holds(part, state)
                if not mask:
                    break
            return mask
        if isinstance(node, Alternation):
            mask = 0
            for branch in node.branches:
                mask |= self.holds(branch, state)
            return mask
        if isinstance(node, Repeat):
            return self.all_mask if node.low == 0 else self.holds(node.body, state)
        if isinstance(node, Start):
            return self.all_mask if state.last == AT_START or self._in(state.last, node.after) else 0
        if isinstance(node, End):
            return self.end_bit | self._mask_of(node.before)
        if isinstance(node, WordBoundary):
            word = self._mask_of(node.word)
            after_word = state.last != AT_START and self._in(state.last, node.word)
            return word if after_word == node.negated else self.all_mask & ~word
        if isinstance(node, LookBehind):
            mask = self.behind_holds(self.behinds.index(node.body), state)
            return self.all_mask & ~mask if node.negated else mask
        assert isinstance(node, LookAhead)
        raise UnsupportedConstraint(
            "a look-ahead inside a look-behind, or inside a look-ahead that is repeated, is not supported",
            column=node.column,
            hint="move the inner look-ahead out of the outer look-around",
        )

    def behind_holds(self, index: int, state: State) -> Mask:
        """The next symbols for which the body of a look-behind ends here."""
        mask = 0
        for residual in state.behind[index]:
            mask |= self.holds(residual, state)
        return mask

    def _in(self, block: int, ranges: CodePointSet) -> bool:
        return codepoints.contains(ranges, self.blocks[block][0][0])

    def _mask_of(self, ranges: CodePointSet) -> Mask:
        return sum(1 << index for index in range(len(self.blocks)) if self._in(index, ranges))

    # -- steps

    def step(self, state: State, letter: int) -> State | None:
        """The state after one character out of ``self.letters[letter]``, None if the state forbids that character."""
        key = (state, letter)
        if key not in self._steps:
            self._steps[key] = self._step(state, letter)
        return self._steps[key]

    def _step(self, state: State, letter: int) -> State | None:
        block = self._block_of_letter[letter]
        if not state.next_mask >> block & 1:
            return None
        behind = tuple(
            self._after(residuals, state, letter) | {body}
            for body, residuals in zip(self.behinds, state.behind, strict=True)
        )
        obligations: set[Obligation] = set()
        for obligation in state.obligations:
            fulfilled = any(self.holds(residual, state) >> block & 1 for residual in obligation.residuals)
            if fulfilled:
                if obligation.negated:
                    return None
                continue
            residuals = self._after(obligation.residuals, state, letter)
            if residuals:
                obligations.add(Obligation(obligation.negated, residuals))
            elif not obligation.negated:
                return None
        return State(block, behind, self.all_mask, frozenset(obligations))

    def after_text(self, state: State, text: str) -> State | None:
        """The state after these characters, None if the state forbids them."""
        for char in text:
            following = self.step(state, self.letter_of(ord(char)))
            if following is None:
                return None
            state = following
        return state

    def after_chars(self, state: State, ranges: CodePointSet) -> dict[State, CodePointSet]:
        """The states after one character out of a set, each with the characters that lead to it."""
        ends: dict[State, list[CodePointSet]] = {}
        for letter, members in enumerate(self.letters):
            common = codepoints.intersection(members, ranges)
            following = self.step(state, letter) if common else None
            if following is not None:
                ends.setdefault(following, []).append(common)
        return {end: codepoints.union(sets) for end, sets in ends.items()}

    def reachable(self, state: State, *, itself: bool) -> list[State]:
        """The states after one character or more from here; with ``itself`` also after none."""
        found: dict[State, None] = {}
        pending = [state]
        while pending:
            current = pending.pop()
            for letter in range(len(self.letters)):
                following = self.step(current, letter)
                if following is not None and following not in found:
                    found[following] = None
                    pending.append(following)
            if len(found) > MAX_STATES:
                raise ConstraintTooLarge(
                    f"the look-arounds of this pattern need more than {MAX_STATES} states",
                    hint="shorten their counted repetitions",
                )
        if itself:
            found[state] = None
        return list(found)

    def letter_of(self, code_point: int) -> int:
        """The index in ``letters`` of the set that holds a code point."""
        return next(index for index, letter in enumerate(self.letters) if codepoints.contains(letter, code_point))

    def _after(self, residuals: Iterable[Node], state: State, letter: int) -> Residuals:
        result: set[Node] = set()
        for residual in residuals:
            result |= self._derive(residual, state, letter)
        if len(result) > MAX_RESIDUALS:
            raise ConstraintTooLarge(
                "a look-around leaves too many possibilities open", hint="shorten its counted repetitions"
            )
        return frozenset(result)

    def _derive(self, node: Node, state: State, letter: int) -> set[Node]:
        """The partial derivatives of ``node`` by a letter."""
        code_point = self.letters[letter][0][0]
        if isinstance(node, Text):
            return {Text(node.text[1:])} if node.text and ord(node.text[0]) == code_point else set()
        if isinstance(node, Chars):
            return {syntax.EMPTY_WORD} if codepoints.contains(node.ranges, code_point) else set()
        if isinstance(node, Alternation):
            return set().union(*(self._derive(branch, state, letter) for branch in node.branches))
        if isinstance(node, Repeat):
            high = None if node.high is None else node.high - 1
            rest = syntax.repeat(node.body, max(node.low - 1, 0), high)
            return {syntax.concat((first, rest)) for first in self._derive(node.body, state, letter)}
        if isinstance(node, Concat):
            result: set[Node] = set()
            for index, part in enumerate(node.parts):
                rest_parts = node.parts[index + 1 :]
                result |= {syntax.concat((first, *rest_parts)) for first in self._derive(part, state, letter)}
                if not self.holds(part, state) >> self._block_of_letter[letter] & 1:
                    break
            return result
        return set()

    def finally_holds(self, state: State) -> bool:
        """Whether the text may end in this state as far as ``next_mask`` and the obligations are concerned."""
        if not state.next_mask & self.end_bit:
            return False
        return all(
            obligation.negated != any(self.holds(residual, state) & self.end_bit for residual in obligation.residuals)
            for obligation in state.obligations
        )
