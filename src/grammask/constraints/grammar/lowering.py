"""Turns the rules of a grammar into expressions of the core.

Every rule that does not contain itself becomes part of the expressions that use it, so that wherever the grammar is
deterministic, so is the automaton, and a precedence chain of fifteen rules costs one frame. Only rules that are
recursive in substance (see ``recursion``) get a frame of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from grammask.constraints.grammar.model import ParsedGrammar
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
from grammask.constraints.regex import lower_pattern
from grammask.engine.errors import ConstraintTooLarge, UnsupportedConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr

TokenResolver: TypeAlias = "Mapping[str, int] | Callable[[str], int | None]"
"""From the name of a special token to its id: a mapping, or a function that returns None for an unknown name."""

MAX_HEIGHT = 2_000
"""The core walks expressions recursively; higher ones are refused."""

_ANY_CHARACTER = ((0, 0xD7FF), (0xE000, 0x10FFFF))


def lower_grammar(grammar: ParsedGrammar, solved: Solved, tokens: TokenResolver | None, builder: Builder) -> Expr:
    """The expression of a grammar's language.

    Raises:
        UnsupportedConstraint: a token is named that nothing resolves.
        ConstraintTooLarge: expressions are nested more than MAX_HEIGHT levels deep.
    """
    return _Lowering(grammar, solved, tokens, builder).run()


class _Lowering:
    def __init__(self, grammar: ParsedGrammar, solved: Solved, tokens: TokenResolver | None, builder: Builder) -> None:
        self._grammar = grammar
        self._nodes = grammar.arena.nodes
        self._solved = solved
        self._tokens = tokens
        self._builder = builder
        self._done: dict[NodeId, Expr] = {}
        self._heights: dict[NodeId, int] = {}
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
        pending = [root]
        while pending:
            number = pending[-1]
            if number in self._done:
                pending.pop()
                continue
            needed = self._needs(self._nodes[number])
            waiting = [part for part in needed if part not in self._done]
            if waiting:
                pending.extend(waiting)
                continue
            self._heights[number] = 1 + max((self._heights[part] for part in needed), default=0)
            if self._heights[number] > MAX_HEIGHT:
                raise ConstraintTooLarge(
                    f"the grammar nests expressions more than {MAX_HEIGHT} levels deep",
                    hint="write nesting as recursion: a rule that contains itself in brackets",
                )
            self._done[number] = self._node(self._nodes[number])
            pending.pop()
        return self._done[root]

    def _needs(self, node: Node) -> tuple[NodeId, ...]:
        if isinstance(node, RuleRef) and node.name not in self._solved.recursive:
            return (self._solved.bodies[node.name],)
        if isinstance(node, Repeat) and isinstance(self._nodes[node.part], OtherToken):
            return ()
        return operands(node)

    def _node(self, node: Node) -> Expr:
        builder, done = self._builder, self._done
        if isinstance(node, Concat):
            return builder.concat([done[part] for part in node.parts])
        if isinstance(node, Union):
            return builder.union([done[part] for part in node.parts])
        if isinstance(node, Repeat):
            other = self._nodes[node.part]
            if isinstance(other, OtherToken):
                return builder.repeat(self._other_token(other), node.low, node.high)
            return builder.repeat(done[node.part], node.low, node.high)
        if isinstance(node, Intersection):
            return builder.intersection([done[part] for part in node.parts])
        if isinstance(node, Complement):
            text = builder.repeat(builder.chars(_ANY_CHARACTER), 0, None)
            return builder.intersection([text, builder.complement(done[node.part])])
        if isinstance(node, RuleRef):
            return self._reference(node.name)
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
            return builder.special_token(self._token_id(node))
        assert isinstance(node, Embedded)
        if node.index not in self._embedded:
            expression = self._grammar.embedded[node.index].lower(builder)
            shared = self._uses[node.index] > 1
            self._embedded[node.index] = builder.call(expression) if shared else expression
        return self._embedded[node.index]

    def _reference(self, name: str) -> Expr:
        if name not in self._solved.recursive:
            return self._done[self._solved.bodies[name]]
        if name not in self._frames:
            self._frames[name] = self._builder.rule(name)
        return self._frames[name]

    # -- tokens

    def _token_id(self, token: Token) -> int:
        if token.token_id is not None:
            return token.token_id
        assert token.name is not None
        found: int | None = None
        if isinstance(self._tokens, Mapping):
            found = self._tokens.get(token.name)
        elif self._tokens is not None:
            found = self._tokens(token.name)
        if found is None:
            known = "no special tokens are known" if self._tokens is None else "it is not among the special tokens"
            raise self._grammar.source.error(
                token.offset,
                f"the token {token.name} cannot be found: {known}",
                hint="give the special tokens of the vocabulary with tokens={name: id}, or write the id: <[128001]>",
                kind=UnsupportedConstraint,
            )
        return found

    def _other_token(self, node: OtherToken) -> Expr:
        """A character of text, or a special token other than the one excluded."""
        if not isinstance(self._tokens, Mapping):
            raise self._grammar.source.error(
                node.excluded.offset,
                "a negated token needs to know which tokens are special",
                hint="give the special tokens of the vocabulary as a mapping: tokens={name: id}",
                kind=UnsupportedConstraint,
            )
        excluded = self._token_id(node.excluded)
        special = sorted(set(self._tokens.values()))
        if excluded not in special:
            raise self._grammar.source.error(
                node.excluded.offset,
                "only special tokens can be negated: the text of an ordinary token can be spelled by other tokens",
                kind=UnsupportedConstraint,
            )
        others = [self._builder.special_token(token_id) for token_id in special if token_id != excluded]
        return self._builder.union([self._builder.chars(_ANY_CHARACTER), *others])
