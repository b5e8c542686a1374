"""Repetitions of parts with assertions.

Under a repetition the text after a position is not one known language: it holds further copies. So here assertions
about what follows become part of the state (``context.State``): a restriction of the next symbol, and obligations,
look-aheads whose automata run along until they are decided. ``paths(node, state)`` gives, for each state that
``node`` can lead to, the words that lead there. Concatenation composes paths, and the star solves the linear
equations

    X[q] = {empty word at q}  |  M[q, r] X[r]  over all r,      M = the paths of the body,

by Arden's lemma (X = A X | B has the least solution A* B), one state after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammask.constraints.regex import syntax
from grammask.constraints.regex.context import Obligation, State
from grammask.constraints.regex.syntax import Alternation, Chars, Concat, LookAhead, Node, Repeat, Text
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Expr
    from grammask.constraints.regex.lowering import Lowering, Rest

Paths = dict[State, "Expr"]
"""End state -> the words that lead to it."""

MAX_STATES = 128
"""States that a repeated assertion may lead to."""

MAX_UNROLLED = 1024
"""Copies of a counted repetition that are written out one by one while their end states still vary."""


class Repetition:
    """The paths through the parts of one pattern."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.context = lowering.context
        self.emitter = lowering.emitter
        self._known: dict[tuple[Node, State], Paths] = {}

    def paths(self, node: Node, state: State) -> Paths:
        """The words that ``node`` matches from a position in ``state``, by the state that they lead to.

        Raises:
            ConstraintTooLarge: too many states or copies.
            UnsupportedConstraint: a look-ahead within a look-ahead.
        """
        key = (node, state)
        if key not in self._known:
            self._known[key] = self._paths(node, state)
        return self._known[key]

    def leave(self, state: State, rest: Rest) -> Expr:
        """What may follow the repetition in this state: ``rest``, as far as what is pending in the state allows."""
        lowering, emitter = self.lowering, self.emitter
        outside = state._replace(next_mask=self.context.all_mask, obligations=frozenset())
        following = emitter.restrict_next(self.context, state.next_mask, rest.at(outside))
        for obligation in state.obligations:
            ahead = emitter.union(
                [lowering.lower(residual, outside, lowering.any_rest) for residual in obligation.residuals]
            )
            if obligation.negated:
                ahead = emitter.builder.complement(ahead)
            following = emitter.intersection([following, ahead])
        return following

    def _paths(self, node: Node, state: State) -> Paths:
        emitter, context = self.emitter, self.context
        if isinstance(node, Text):
            end = context.after_text(state, node.text)
            return {} if end is None else {end: emitter.plain(node)}
        if isinstance(node, Chars):
            ends = context.after_chars(state, node.ranges)
            return {end: emitter.plain(syntax.chars(ranges)) for end, ranges in ends.items()}
        if isinstance(node, Concat):
            reached: Paths = {state: emitter.epsilon}
            for part in node.parts:
                reached = self._then(reached, part)
            return reached
        if isinstance(node, Alternation):
            return self._sum([self.paths(branch, state) for branch in node.branches])
        if isinstance(node, Repeat):
            return self._repeat(node, state)
        if isinstance(node, LookAhead):
            return self._enter_look_ahead(node, state)
        return self._restricted(state, context.holds(node, state))

    def _restricted(self, state: State, mask: int) -> Paths:
        mask &= state.next_mask
        return {state._replace(next_mask=mask): self.emitter.epsilon} if mask else {}

    def _enter_look_ahead(self, node: LookAhead, state: State) -> Paths:
        decided = self.context.holds(node.body, state)
        if node.negated:
            state = state._replace(next_mask=state.next_mask & ~decided)
            if not state.next_mask:
                return {}
        elif decided & state.next_mask == state.next_mask:
            return {state: self.emitter.epsilon}
        obligation = Obligation(node.negated, frozenset((node.body,)))
        return {state._replace(obligations=state.obligations | {obligation}): self.emitter.epsilon}

    def _then(self, reached: Paths, node: Node) -> Paths:
        """Each path of ``reached`` continued by ``node``."""
        return self._sum(
            [
                {end: self.emitter.concat(before, path) for end, path in self.paths(node, state).items()}
                for state, before in reached.items()
            ]
        )

    def _sum(self, alternatives: list[Paths]) -> Paths:
        gathered: dict[State, list[Expr]] = {}
        for paths in alternatives:
            for end, path in paths.items():
                gathered.setdefault(end, []).append(path)
        if len(gathered) > MAX_STATES:
            raise ConstraintTooLarge(
                f"a repeated assertion needs more than {MAX_STATES} states", hint="simplify what is repeated"
            )
        return {end: self.emitter.union(paths) for end, paths in gathered.items()}

    def _repeat(self, node: Repeat, state: State) -> Paths:
        """``low`` copies, then up to ``high``.

        Copies are written out one by one until each further one starts and ends in the same single state.
        """
        body, low, high = node.body, node.low, node.high
        reached: Paths = {state: self.emitter.epsilon}
        stopped: list[Paths] = []
        taken = 0
        while high is None or taken < high:
            if high is None and taken == low:
                return self._then_star(reached, body)
            if len(reached) == 1:
                (only,) = reached
                if self.paths(body, only).keys() == {only}:
                    left = None if high is None else high - taken
                    loop = self.emitter.builder.repeat(self.paths(body, only)[only], max(low - taken, 0), left)
                    reached = {only: self.emitter.concat(reached[only], loop)}
                    break
            if taken >= low:
                stopped.append(reached)
            if taken == MAX_UNROLLED:
                raise ConstraintTooLarge(
                    f"an assertion is repeated more than {MAX_UNROLLED} times in changing contexts",
                    hint="repeat a part without anchors or look-arounds, or use {m,} without an upper limit",
                )
            reached = self._then(reached, body)
            taken += 1
            if not reached:
                break
        return self._sum([*stopped, reached])

    def _then_star(self, reached: Paths, body: Node) -> Paths:
        return self._sum(
            [
                {end: self.emitter.concat(before, path) for end, path in self._star(body, state).items()}
                for state, before in reached.items()
            ]
        )

    def _star(self, body: Node, start: State) -> Paths:
        """The paths of any number of copies of ``body``."""
        emitter = self.emitter
        order = {start: 0}
        rows: list[dict[int, Expr]] = []
        pending = [start]
        for state in pending:
            row = {}
            for end, path in self.paths(body, state).items():
                if end not in order:
                    order[end] = len(order)
                    pending.append(end)
                row[order[end]] = path
            rows.append(row)
            if len(order) > MAX_STATES:
                raise ConstraintTooLarge(
                    f"a repeated assertion needs more than {MAX_STATES} states", hint="simplify what is repeated"
                )
        ends: list[dict[int, Expr]] = [{index: emitter.epsilon} for index in range(len(rows))]
        for last in range(len(rows) - 1, -1, -1):
            row = rows[last]
            loop = row.pop(last, emitter.empty)
            if loop not in (emitter.empty, emitter.epsilon):
                again = emitter.builder.repeat(loop, 0, None)
                row = {index: emitter.concat(again, path) for index, path in row.items()}
                ends[last] = {index: emitter.concat(again, path) for index, path in ends[last].items()}
            for index in range(last):
                through = rows[index].pop(last, emitter.empty)
                if through == emitter.empty:
                    continue
                for target, into in ((rows[index], row), (ends[index], ends[last])):
                    for column, path in into.items():
                        longer = emitter.concat(through, path)
                        target[column] = emitter.union([target.get(column, emitter.empty), longer])
        states = list(order)
        return {states[index]: path for index, path in ends[0].items()}
