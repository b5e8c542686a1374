"""Turns the rules of a grammar into expressions of the core.

Every rule that does not contain itself becomes part of the expressions that use it, so that wherever the grammar is
deterministic, so is the automaton, and a precedence chain of fifteen rules costs one frame. Only rules that are
recursive in substance (see ``recursion``) get a frame of their own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from grammask.constraints.grammar.model import Embedding, ParsedGrammar
from grammask.constraints.grammar.nodes import (
    Characters,
    Complement,
    Concat,
    Embedded,
    Intersection,
    Literal,
    Node,
    NodeId,
    OtherToken,
    Pattern,
    Repeat,
    RuleRef,
    Token,
    Union,
    operands,
)
from grammask.constraints.grammar.recursion import Solved
from grammask.constraints.grammar.tokens import ANY_CHARACTER, SpecialTokens
from grammask.constraints.regex import lower_pattern
from grammask.engine.errors import ConstraintError, ConstraintTooLarge, UnsatisfiableConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr

MAX_HEIGHT = 200
"""Levels of nodes in one expression; what is higher becomes a rule, which bounds recursion in the core."""

MAX_REGULAR_HEIGHT = 1_000
"""Levels under ``&`` and ``~``, where frames are impossible because these operators are over bytes."""


def lower_grammar(grammar: ParsedGrammar, solved: Solved, tokens: SpecialTokens, builder: Builder) -> Expr:
    """The expression of a grammar's language.

    Raises:
        UnsupportedConstraint: a token is named that nothing resolves.
        ConstraintTooLarge: expressions under '&' or '~' are nested more than MAX_REGULAR_HEIGHT levels deep.
    """
    return _Lowering(grammar, solved, tokens, builder).run()


class _Lowering:
    def __init__(self, grammar: ParsedGrammar, solved: Solved, tokens: SpecialTokens, builder: Builder) -> None:
        self._grammar = grammar
        self._nodes = grammar.arena.nodes
        self._solved = solved
        self._tokens = tokens
        self._builder = builder
        # By node, and by whether it stands under '&' or '~', where it must be free of frames.
        self._done: dict[tuple[NodeId, bool], Expr] = {}
        self._heights: dict[tuple[NodeId, bool], int] = {}
        self._frames: dict[str, Expr] = {}
        self._embedded: dict[int, Expr] = {}
        self._uses = self._count_uses()

    def run(self) -> Expr:
        start = self._lower(self._grammar.start)
        undefined = list(self._frames)
        while undefined:
            name = undefined.pop()
            known = len(self._frames)
            body = self._lower(self._solved.bodies[name])
            self._builder.define(self._frames[name], body)
            undefined.extend(list(self._frames)[known:])
        return start

    def _count_uses(self) -> Counter[int]:
        """How many places each embedded constraint stands at."""
        uses: Counter[int] = Counter()
        arena = self._grammar.arena
        for root in {self._grammar.start, *self._solved.bodies.values()}:
            for number in arena.reachable([root]):
                for part in operands(arena.nodes[number]):
                    node = arena.nodes[part]
                    if isinstance(node, Embedded):
                        uses[node.index] += 1
        return uses

    def _lower(self, root: NodeId) -> Expr:
        """Operands first, through the bodies of rules that have no frame; references among those have no cycles."""
        pending = [(root, False)]
        while pending:
            item = pending[-1]
            if item in self._done:
                pending.pop()
                continue
            needed = self._needs(*item)
            waiting = [other for other in needed if other not in self._done]
            if waiting:
                pending.extend(waiting)
                continue
            self._finish(item, needed)
            pending.pop()
        return self._done[root, False]

    def _needs(self, number: NodeId, regular: bool) -> list[tuple[NodeId, bool]]:
        node = self._nodes[number]
        if isinstance(node, RuleRef) and node.name not in self._solved.recursive:
            return [(self._solved.bodies[node.name], regular)]
        if isinstance(node, Repeat) and isinstance(self._nodes[node.part], OtherToken):
            return []
        regular = regular or isinstance(node, (Intersection, Complement))
        return [(part, regular) for part in operands(node)]

    def _finish(self, item: tuple[NodeId, bool], needed: list[tuple[NodeId, bool]]) -> None:
        number, regular = item
        expression = self._node(self._nodes[number], [self._done[other] for other in needed])
        height = 1 + max((self._heights[other] for other in needed), default=0)
        if height > MAX_HEIGHT and not regular:
            frame = self._builder.rule(f"part {number}")
            self._builder.define(frame, expression)
            expression, height = frame, 1
        elif height > MAX_REGULAR_HEIGHT:
            raise ConstraintTooLarge(
                f"a terminal nests expressions more than {MAX_REGULAR_HEIGHT} levels deep under '&' or '~'",
                hint="split it into rules",
            )
        self._done[item], self._heights[item] = expression, height

    def _node(self, node: Node, parts: list[Expr]) -> Expr:
        builder = self._builder
        if isinstance(node, Concat):
            return builder.concat(parts)
        if isinstance(node, Union):
            return builder.union(parts)
        if isinstance(node, Repeat):
            other = self._nodes[node.part]
            part = (
                self._tokens.any_other(other, self._grammar.source, builder)
                if isinstance(other, OtherToken)
                else parts[0]
            )
            return builder.repeat(part, node.low, node.high)
        if isinstance(node, Intersection):
            return builder.intersection(parts)
        if isinstance(node, Complement):
            text = builder.repeat(builder.chars(ANY_CHARACTER), 0, None)
            return builder.intersection([text, builder.complement(parts[0])])
        if isinstance(node, RuleRef):
            return parts[0] if parts else self._frame(node.name)
        return self._leaf(node)

    def _leaf(self, node: Node) -> Expr:
        builder = self._builder
        if isinstance(node, Literal):
            return builder.literal(node.data)
        if isinstance(node, Characters):
            return builder.chars(node.ranges)
        if isinstance(node, Pattern):
            return lower_pattern(node.pattern, builder, search=False)
        if isinstance(node, Token):
            return builder.special_token(self._tokens.id_of(node, self._grammar.source))
        assert isinstance(node, Embedded)
        if node.index not in self._embedded:
            expression = self._embed(self._grammar.embedded[node.index])
            shared = self._uses[node.index] > 1
            self._embedded[node.index] = builder.call(expression) if shared else expression
        return self._embedded[node.index]

    def _embed(self, embedding: Embedding) -> Expr:
        """Another constraint's expression; one that no text satisfies makes only the alternatives that use it empty."""
        try:
            return embedding.constraint.lower(self._builder)
        except UnsatisfiableConstraint:
            return self._builder.empty
        except ConstraintError as error:
            if error.pointer is not None:
                where = f" at {error.pointer or '(root)'}"
            else:
                where = "" if error.line is None else f" at line {error.line}, column {error.column}"
            message = f"in {embedding.place}{where}: {error.message}"
            if embedding.offset is None:
                raise type(error)(message, hint=error.hint) from error
            raise self._grammar.source.error(embedding.offset, message, hint=error.hint, kind=type(error)) from error

    def _frame(self, name: str) -> Expr:
        if name not in self._frames:
            self._frames[name] = self._builder.rule(name)
        return self._frames[name]
