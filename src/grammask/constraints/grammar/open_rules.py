"""Which rules of a grammar are open at the end of a text.

The core matches rules that have been put into each other and whose recursion has been rewritten (``recursion``), so the
author's names are not in its stack any more. To tell them, the text is read once more by the rules as they are written,
with Earley's algorithm (1970). Here every node of an expression is a nonterminal: an item (node, progress, origin) says
that the node was begun at ``origin`` and how many of its parts are read. Leaves are read by matchers of the core.

This explains texts and judges none. Where an embedded constraint or an intersection has no text at all, an alternative
that uses it later may still be told as open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grammask import _core
from grammask.constraints.grammar.lowering import lower_grammar
from grammask.constraints.grammar.model import ParsedGrammar
from grammask.constraints.grammar.nodes import (
    Concat,
    Embedded,
    Literal,
    Node,
    NodeId,
    OtherToken,
    Repeat,
    RuleRef,
    Token,
    Union,
)
from grammask.constraints.grammar.recursion import Solved
from grammask.constraints.grammar.tokens import ANY_CHARACTER, SpecialTokens
from grammask.engine.errors import ConstraintError, ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Matcher

Item = tuple[NodeId, int, int]
"""Node, progress, origin. Progress counts the parts of a node that are read, or the bytes of a leaf."""

MAX_ITEMS = 400_000
"""Beyond so many items the text is too long to be explained."""


@dataclass(frozen=True)
class OpenRule:
    """A rule that was begun and is not finished.

    Attributes:
        name: as in the grammar; a template's without its arguments.
        start: where in the text it begins, in bytes.
        line: of its definition in the grammar, from 1.
    """

    name: str
    start: int
    line: int


@dataclass(frozen=True)
class RulePath:
    """One way in which the end of a text lies inside of rules.

    Attributes:
        rules: the open rules, outermost first.
        begun: whether what comes next goes on with a literal, a pattern or an embedded constraint that was begun.
        inside: the constraint embedded in the grammar that the end lies in ("the hole person"), if any.
    """

    rules: tuple[OpenRule, ...]
    begun: bool
    inside: str | None = None

    def __str__(self) -> str:
        """Innermost first: "rule number, in expr"."""
        names = list(dict.fromkeys(rule.name for rule in reversed(self.rules)))
        if not names:
            return self.inside or "the start"
        where = f"{self.inside}, in rule {names[0]}" if self.inside else f"rule {names[0]}"
        return where if len(names) == 1 or self.inside else f"{where}, in {names[1]}"


class OpenRules:
    """Reads a text by the rules of a grammar.

    Args:
        grammar: the rules as they were written.
        bodies: their expressions, without alternatives that can never finish.
        solved: the same rules as they are lowered.
    """

    def __init__(self, grammar: ParsedGrammar, bodies: Mapping[str, NodeId], solved: Solved) -> None:
        self._grammar = grammar
        self._nodes = grammar.arena.nodes
        self._bodies = bodies
        self._solved = solved
        self._vocabulary = _core.Vocabulary([*(bytes([byte]) for byte in range(256)), None], [256], 257)
        self._fresh: dict[NodeId, Matcher | None] = {}
        self._live: dict[tuple[NodeId, int], Matcher] = {}
        # By position: the items that wait for a node begun there.
        self._waiting: list[dict[NodeId, list[Item]]] = []
        self._leaves: list[Item] = []
        self._items = 0
        self._close([(grammar.start, 0, 0)])

    def copy(self) -> OpenRules:
        """Another reader at the same place."""
        other = object.__new__(OpenRules)
        other.__dict__.update(self.__dict__)
        other._live = {leaf: matcher.copy() for leaf, matcher in self._live.items()}
        other._waiting = list(self._waiting)
        return other

    def feed(self, data: bytes) -> bool:
        """Goes on with bytes of text; False if no rule allows them.

        Raises:
            ConstraintTooLarge: the text is too long or too ambiguous to be explained.
        """
        for byte in data:
            self._advance({leaf: self._read(leaf, byte) for leaf in self._leaves})
        return bool(self._leaves) or not data

    def feed_special_token(self, token_id: int, name: str | None) -> bool:
        """Goes on with a special token; False if no rule names it here."""

        def read(leaf: Item) -> bool:
            node = self._nodes[leaf[0]]
            if isinstance(node, OtherToken):
                return not _is_token(node.excluded, token_id, name)
            return isinstance(node, Token) and _is_token(node, token_id, name)

        self._advance({leaf: read(leaf) for leaf in self._leaves})
        return bool(self._leaves)

    def paths(self) -> list[RulePath]:
        """The ways in which the position lies inside of rules: what was begun first, else in the grammar's order."""
        here = len(self._waiting) - 1
        found: dict[RulePath, None] = {}
        for leaf in self._leaves:
            node, _, origin = leaf
            if self._goes_on(leaf):
                embedded = self._nodes[node]
                inside = self._grammar.embedded[embedded.index].place if isinstance(embedded, Embedded) else None
                rules = self._rules_above(node, origin)
                found[RulePath(rules, origin < here, inside)] = None
        return sorted(found, key=lambda path: not path.begun)

    # -- one position

    def _advance(self, reads: Mapping[Item, bool]) -> None:
        after = [(node, progress + 1, origin) for (node, progress, origin), fits in reads.items() if fits]
        kept = {(node, origin) for node, _, origin in after}
        self._live = {leaf: matcher for leaf, matcher in self._live.items() if leaf in kept}
        self._close(after)

    def _close(self, agenda: list[Item]) -> None:
        """Adds the items that follow from those at hand without reading on."""
        here = len(self._waiting)
        waiting: dict[NodeId, list[Item]] = {}
        self._waiting.append(waiting)
        seen = set(agenda)
        leaves: list[Item] = []
        without_text: set[NodeId] = set()

        def add(item: Item) -> None:
            if item not in seen:
                seen.add(item)
                agenda.append(item)

        for item in agenda:
            node, _, origin = item
            if self._is_leaf(node):
                leaves.append(item)
            for part in self._parts(item):
                waiting.setdefault(part, []).append(item)
                add((part, 0, here))
                if part in without_text:
                    add(self._next(item))
            if self._is_done(item, here):
                if origin == here:
                    without_text.add(node)
                for parent in list(self._waiting[origin].get(node, ())):
                    add(self._next(parent))
        self._leaves = leaves
        self._items += len(agenda)
        if self._items > MAX_ITEMS:
            raise ConstraintTooLarge(
                "the text is too long or too ambiguous to tell its rules", hint="try a shorter one"
            )

    def _parts(self, item: Item) -> Iterator[NodeId]:
        """What may come next in a node that has parts."""
        node, progress = self._nodes[item[0]], item[1]
        if isinstance(node, Concat) and progress < len(node.parts):
            yield node.parts[progress]
        elif isinstance(node, Union) and progress == 0:
            yield from node.parts
        elif isinstance(node, Repeat) and (node.high is None or progress < node.high):
            yield node.part
        elif isinstance(node, RuleRef) and progress == 0 and node.name in self._bodies:
            yield self._bodies[node.name]

    def _next(self, item: Item) -> Item:
        """An item with one more part read; counts that make no difference are not kept."""
        number, progress, origin = item
        node = self._nodes[number]
        if isinstance(node, Repeat) and node.high is None:
            return number, min(progress + 1, node.low), origin
        return number, progress + 1, origin

    def _is_done(self, item: Item, here: int) -> bool:
        number, progress, origin = item
        node = self._nodes[number]
        if isinstance(node, Concat):
            return progress == len(node.parts)
        if isinstance(node, Repeat):
            return progress >= node.low
        if isinstance(node, (Union, RuleRef)):
            return progress == 1
        if isinstance(node, Literal):
            return progress == len(node.data)
        if isinstance(node, Token) or (isinstance(node, OtherToken) and (number, origin) not in self._live):
            return progress == 1
        matcher = self._matcher(number, origin, here)
        return matcher is not None and matcher.is_complete

    # -- leaves

    def _is_leaf(self, number: NodeId) -> bool:
        return not isinstance(self._nodes[number], (Concat, Union, Repeat, RuleRef))

    def _read(self, leaf: Item, byte: int) -> bool:
        """Reads a byte in a leaf; whether it fits."""
        number, progress, origin = leaf
        node = self._nodes[number]
        if isinstance(node, Literal):
            return progress < len(node.data) and node.data[progress] == byte
        if isinstance(node, Token):
            return False
        matcher = self._live.get((number, origin))
        if matcher is None:
            fresh = self._template(number) if progress == 0 else None
            if fresh is None or byte not in fresh.next_bytes():
                return False
            matcher = self._live[number, origin] = fresh.copy()
        return matcher.accept_bytes(bytes([byte]))

    def _goes_on(self, leaf: Item) -> bool:
        number, progress, origin = leaf
        node = self._nodes[number]
        if isinstance(node, Literal):
            return progress < len(node.data)
        if isinstance(node, Token):
            return progress == 0
        matcher = self._live.get((number, origin)) or (self._template(number) if progress == 0 else None)
        return matcher is not None and bool(matcher.next_bytes())

    def _matcher(self, number: NodeId, origin: int, here: int) -> Matcher | None:
        return self._template(number) if origin == here else self._live.get((number, origin))

    def _template(self, number: NodeId) -> Matcher | None:
        """A matcher at the beginning of a leaf, not to be moved; None if the leaf has no text over plain bytes."""
        if number not in self._fresh:
            builder = _core.Builder(self._vocabulary)
            try:
                self._fresh[number] = builder.compile(self._lowered(number, builder)).matcher()
            except (ConstraintError, ValueError, _core.ConstraintTooLargeError):
                self._fresh[number] = None
        return self._fresh[number]

    def _lowered(self, number: NodeId, builder: Builder) -> Expr:
        """The language of one node."""
        if isinstance(self._nodes[number], OtherToken):
            return builder.chars(ANY_CHARACTER)
        needed = self._grammar.arena.references(number)
        solved = self._solved if needed else Solved({}, frozenset())
        return lower_grammar(replace(self._grammar, start=number), solved, SpecialTokens(None), builder)

    # -- paths

    def _rules_above(self, number: NodeId, origin: int) -> tuple[OpenRule, ...]:
        """The rules around a leaf, by a shortest way up to the start."""
        start = (self._grammar.start, 0)
        came_from: dict[tuple[NodeId, int], tuple[NodeId, int] | None] = {(number, origin): None}
        level = [(number, origin)]
        while level and start not in came_from:
            above: list[tuple[NodeId, int]] = []
            for below in level:
                for parent, _, parent_origin in self._waiting[below[1]].get(below[0], ()):
                    if (parent, parent_origin) not in came_from:
                        came_from[parent, parent_origin] = below
                        above.append((parent, parent_origin))
            level = above
        rules: list[OpenRule] = []
        place: tuple[NodeId, int] | None = start
        while place is not None:
            rules.extend(self._named(self._nodes[place[0]], place[1]))
            place = came_from[place]
        return tuple(rules)

    def _named(self, node: Node, start: int) -> Iterator[OpenRule]:
        """The rule that a node refers to, if it stands in the grammar's text."""
        if not isinstance(node, RuleRef):
            return
        offset = self._grammar.rules[node.name].offset
        if offset is not None:
            yield OpenRule(node.name.partition("{")[0], start, self._grammar.source.position(offset)[0])


def _is_token(node: Token, token_id: int, name: str | None) -> bool:
    return node.token_id == token_id or (name is not None and node.name == name)
