"""From a syntax tree to an expression of the core.

Parts without assertions are translated one to one. The rest is translated in continuation-passing style: ``lower(node,
state, rest)`` is the language of all texts that may follow a position in ``state`` (what stands before, see
``context``) when ``node`` matches first and ``rest`` after it. What follows is thus at hand as one language, so that

* ``(?=A)`` is an intersection of the rest with ``A.*``, ``(?!A)`` with the complement of ``A.*``;
* ``$`` and ``\\b`` restrict the first symbol of the rest;
* ``^``, ``\\b`` and look-behinds are decided by the state, and a part before them is split by the states it leads to.

Only under a repetition is there no single rest; see ``repetition``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from grammask.constraints.regex import codepoints, syntax
from grammask.constraints.regex.context import AT_START, Context, Mask, State
from grammask.constraints.regex.syntax import Alternation, Anchored, Chars, Concat, LookAhead, Node, Repeat, Text

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Spelling

MAX_UNROLLED_LOOK_AHEADS = 8
"""Up to this count a repeated look-ahead is written out copy by copy."""

EAGER_LENGTH, EAGER_HEIGHT = 8, 16
"""Above these sizes of a concatenation its later parts are translated before the earlier ones ask for them."""


class Emitter:
    """A Builder with a fixed spelling, and the translation of parts without assertions."""

    def __init__(self, builder: Builder, spelling: Spelling) -> None:
        self.builder = builder
        self.spelling = spelling
        self.empty = builder.empty
        self.epsilon = builder.epsilon

    def plain(self, node: Node) -> Expr:
        """The language of a node without assertions."""
        builder = self.builder
        if type(node) is Text:
            return builder.text(node.text, self.spelling)
        if type(node) is Chars:
            return builder.chars(node.ranges, self.spelling)
        if type(node) is Concat:
            return builder.concat([self.plain(part) for part in node.parts])
        if type(node) is Repeat:
            return builder.repeat(self.plain(node.body), node.low, node.high)
        assert type(node) is Alternation
        return builder.union([self.plain(branch) for branch in node.branches])

    def anchored(self, branch: Anchored) -> Expr:
        """The texts that a branch matches: any text may stand where it is not anchored."""
        if branch.body == syntax.EMPTY_WORD and not (branch.at_start and branch.at_end):
            return self.any_text()
        parts = [self.plain(branch.body)]
        if not branch.at_start:
            parts.insert(0, self.any_text())
        if not branch.at_end:
            parts.append(self.any_text())
        return parts[0] if len(parts) == 1 else self.builder.concat(parts)

    def any_text(self) -> Expr:
        """All sequences of code points."""
        return self.plain(syntax.ANY_TEXT)

    def concat(self, first: Expr, second: Expr) -> Expr:
        if first == self.epsilon:
            return second
        if second == self.epsilon:
            return first
        return self.empty if self.empty in (first, second) else self.builder.concat([first, second])

    def union(self, parts: Iterable[Expr]) -> Expr:
        distinct = [part for part in dict.fromkeys(parts) if part != self.empty]
        if not distinct:
            return self.empty
        return distinct[0] if len(distinct) == 1 else self.builder.union(distinct)

    def intersection(self, parts: Iterable[Expr]) -> Expr:
        distinct = list(dict.fromkeys(parts))
        if self.empty in distinct:
            return self.empty
        return distinct[0] if len(distinct) == 1 else self.builder.intersection(distinct)

    def restrict_next(self, context: Context, mask: Mask, rest: Expr) -> Expr:
        """The texts of ``rest`` whose first symbol (the end of the text, for the empty one) is in the mask."""
        if mask == context.all_mask:
            return rest
        blocks = [block for index, block in enumerate(context.blocks) if mask >> index & 1]
        parts = []
        if blocks:
            first = syntax.chars(codepoints.union(blocks))
            parts.append(self.intersection([rest, self.concat(self.plain(first), self.any_text())]))
        if mask & context.end_bit and self.builder.is_nullable(rest):
            parts.append(self.epsilon)
        return self.union(parts)


class Rest:
    """What follows a part: a language for each state that the part may end in, computed when asked for."""

    def __init__(self, compute: Callable[[State], Expr], *, varies: bool) -> None:
        self._compute = compute
        self.varies = varies
        self._known: dict[State | None, Expr] = {}

    def at(self, state: State) -> Expr:
        key = state if self.varies else None
        if key not in self._known:
            self._known[key] = self._compute(state)
        return self._known[key]


class Lowering:
    """Translates the tree of one pattern."""

    def __init__(self, emitter: Emitter, context: Context) -> None:
        self.emitter = emitter
        self.context = context
        self.any_rest = Rest(lambda _state: emitter.any_text(), varies=False)
        self.no_rest = Rest(lambda _state: emitter.epsilon, varies=False)

    def lower(self, node: Node, state: State, rest: Rest) -> Expr:
        """The texts that may follow a position in ``state`` when ``node`` matches first, then ``rest``."""
        emitter = self.emitter
        if node.plain:
            return self._plain(node, state, rest)
        if isinstance(node, Concat):
            segments = _segments(node.parts)
            for segment in reversed(segments[1:]):
                rest = self._before(segment, rest)
                # Asked for from the right, a long pattern needs no deep recursion.
                if not rest.varies:
                    rest.at(state)
                elif len(segments) > EAGER_LENGTH or node.height > EAGER_HEIGHT:
                    for possible in self.context.reachable(state, itself=True):
                        rest.at(possible)
            return self.lower(segments[0], state, rest)
        if isinstance(node, Alternation):
            return emitter.union([self.lower(branch, state, rest) for branch in node.branches])
        if isinstance(node, LookAhead):
            following = rest.at(state)
            if following == emitter.empty:
                return following
            ahead = self.lower(node.body, state, self.any_rest)
            if node.negated:
                ahead = emitter.builder.complement(ahead)
            return emitter.intersection([ahead, following])
        if isinstance(node, Repeat):
            return self._repeat(node, state, rest)
        mask = self.context.holds(node, state)
        return emitter.restrict_next(self.context, mask, rest.at(state)) if mask else emitter.empty

    def _before(self, node: Node, rest: Rest) -> Rest:
        """The continuation ``node`` then ``rest``."""
        return Rest(lambda state: self.lower(node, state, rest), varies=node.looks_back or rest.varies)

    def _repeat(self, node: Repeat, state: State, rest: Rest) -> Expr:
        if node.high is not None and node.high <= MAX_UNROLLED_LOOK_AHEADS:
            following = rest
            for copy in range(node.high, 0, -1):
                following = self._copy(node.body, following, rest if copy > node.low else None)
            return following.at(state)
        from grammask.constraints.regex.repetition import Repetition

        repetition = Repetition(self)
        return self.join(repetition.paths(node, state), lambda end: repetition.leave(end, rest))

    def _copy(self, body: Node, following: Rest, stop: Rest | None) -> Rest:
        """One copy of the body and then ``following``; or ``stop`` at once."""

        def compute(state: State) -> Expr:
            taken = self.lower(body, state, following)
            return taken if stop is None else self.emitter.union([stop.at(state), taken])

        return Rest(compute, varies=body.looks_back or following.varies)

    # -- parts without assertions before a rest that looks back

    def _plain(self, node: Node, state: State, rest: Rest) -> Expr:
        emitter = self.emitter
        if not rest.varies:
            following = rest.at(state)
            return following if following == emitter.empty else emitter.concat(emitter.plain(node), following)
        if isinstance(node, Text):
            end = self.context.after_text(state, node.text)
            return emitter.empty if end is None else emitter.concat(emitter.plain(node), rest.at(end))
        if isinstance(node, Chars):
            ends = self.context.after_chars(state, node.ranges)
            return self.join({end: emitter.plain(syntax.chars(ranges)) for end, ranges in ends.items()}, rest.at)
        if isinstance(node, Concat):
            for part in reversed(node.parts[1:]):
                rest = self._before(part, rest)
            return self._plain(node.parts[0], state, rest)
        ends_by_rest: dict[Expr, list[State]] = {}
        for end in self.context.reachable(state, itself=is_nullable(node)):
            following = rest.at(end)
            if following != emitter.empty:
                ends_by_rest.setdefault(following, []).append(end)
        return emitter.union(
            [emitter.concat(self._ending_in(node, state, ends), following) for following, ends in ends_by_rest.items()]
        )

    def join(self, paths: Mapping[State, Expr], following: Callable[[State], Expr]) -> Expr:
        """The union of path then what follows it, over the states that the paths lead to."""
        by_following: dict[Expr, list[Expr]] = {}
        for end, path in paths.items():
            by_following.setdefault(following(end), []).append(path)
        emitter = self.emitter
        return emitter.union([emitter.concat(emitter.union(these), after) for after, these in by_following.items()])

    def _ending_in(self, node: Node, state: State, ends: list[State]) -> Expr:
        """The words of a plain node that lead from ``state`` to one of ``ends``."""
        emitter, context = self.emitter, self.context
        reachable = context.reachable(state, itself=is_nullable(node))
        if len(ends) == len(reachable):
            return emitter.plain(node)
        signature = self._telling_signature(set(ends), reachable)
        if signature is not None:
            languages = [self._with_signature(state, value) for value in dict.fromkeys(signature(end) for end in ends)]
        else:
            from grammask.constraints.regex.repetition import Repetition

            paths = Repetition(self).paths(syntax.ANY_TEXT, state)
            languages = [paths[end] for end in ends]
        leading = emitter.union(languages)
        if leading == emitter.epsilon:
            return leading
        return emitter.intersection([emitter.plain(node), leading])

    def _telling_signature(
        self, ends: set[State], reachable: list[State]
    ) -> Callable[[State], tuple[int | None, tuple[bool, ...]]] | None:
        """What tells ``ends`` from the other reachable states and is a simple language; None if nothing is.

        A signature is the last character's block (None: it does not matter) and which look-behinds hold.
        """
        context = self.context
        if not all(body.plain for body in context.behinds):
            return None

        def behinds(state: State) -> tuple[bool, ...]:
            return tuple(bool(context.behind_holds(index, state)) for index in range(len(context.behinds)))

        for signature in (lambda s: (None, behinds(s)), lambda s: (s.last, behinds(s))):
            if not {signature(s) for s in ends} & {signature(s) for s in reachable if s not in ends}:
                return signature
        return None

    def _with_signature(self, state: State, signature: tuple[int | None, tuple[bool, ...]]) -> Expr:
        """The words that lead from ``state`` to a state with this signature (all code point sequences considered)."""
        emitter = self.emitter
        last, behinds = signature
        parts = [emitter.any_text()]
        if last is not None:
            if last == AT_START:
                return emitter.epsilon
            block = emitter.concat(emitter.any_text(), emitter.plain(syntax.chars(self.context.blocks[last])))
            parts = [emitter.union([block, emitter.epsilon]) if state.last == last else block]
        for index, holds in enumerate(behinds):
            language = self._holding(state, index)
            parts.append(language if holds else emitter.builder.complement(language))
        return emitter.intersection(parts)

    def _holding(self, state: State, index: int) -> Expr:
        """The words after which, read from ``state``, look-behind ``index`` holds (its body is plain)."""
        body = self.context.behinds[index]
        begun_here = [self.emitter.plain(residual) for residual in state.behind[index]]
        begun_later = self.emitter.concat(self.emitter.any_text(), self.emitter.plain(body))
        return self.emitter.union([begun_later, *begun_here])


def _segments(parts: tuple[Node, ...]) -> list[Node]:
    """The parts with each run of plain ones as one."""
    segments: list[Node] = []
    run: list[Node] = []
    for part in parts:
        if part.plain:
            run.append(part)
            continue
        if run:
            segments.append(run[0] if len(run) == 1 else Concat(tuple(run)))
            run = []
        segments.append(part)
    if run:
        segments.append(run[0] if len(run) == 1 else Concat(tuple(run)))
    return segments


def is_nullable(node: Node) -> bool:
    """Whether a plain node matches the empty word."""
    if isinstance(node, Text):
        return not node.text
    if isinstance(node, Concat):
        return all(is_nullable(part) for part in node.parts)
    if isinstance(node, Alternation):
        return any(is_nullable(branch) for branch in node.branches)
    if isinstance(node, Repeat):
        return node.low == 0 or is_nullable(node.body)
    return False
