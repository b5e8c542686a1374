"""Grammar expressions as numbered nodes whose operands come before them.

Both grammar dialects parse into one ``Arena``. A node's operands always have smaller numbers, so every pass over a
grammar is a loop over ascending numbers and no nesting depth can exhaust the stack. Equal nodes share one number.
Rules refer to each other by name (``RuleRef``), which is how recursion enters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from grammask.engine import time_limit

NodeId: TypeAlias = int


@dataclass(frozen=True)
class Literal:
    """Exactly these bytes."""

    data: bytes


@dataclass(frozen=True)
class Characters:
    """One code point out of inclusive ranges, in UTF-8."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Pattern:
    """A regular expression in the dialect of ``grammask.Regex``, matched as a whole."""

    pattern: str


@dataclass(frozen=True)
class Token:
    """One token of the vocabulary, by name or by id."""

    name: str | None
    token_id: int | None
    offset: int


@dataclass(frozen=True)
class OtherToken:
    """One token other than this one. Only free repetitions of it are languages of texts: see ``tokens``."""

    excluded: Token


@dataclass(frozen=True)
class Embedded:
    """Another constraint, by its position in the grammar's list of embedded constraints."""

    index: int


@dataclass(frozen=True)
class RuleRef:
    name: str


@dataclass(frozen=True)
class TemplateUse:
    """A template applied to arguments; replaced by a ``RuleRef`` to an instance before anything else looks at it."""

    name: str
    arguments: tuple[NodeId, ...]
    offset: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of the template whose body this is."""

    name: str


@dataclass(frozen=True)
class Lexeme:
    """A terminal where a rule uses it: ignored text may follow. Replaced before anything else looks at it."""

    part: NodeId


@dataclass(frozen=True)
class Concat:
    parts: tuple[NodeId, ...]


@dataclass(frozen=True)
class Union:
    parts: tuple[NodeId, ...]


@dataclass(frozen=True)
class Intersection:
    parts: tuple[NodeId, ...]


@dataclass(frozen=True)
class Complement:
    """Every UTF-8 text that is not in the part."""

    part: NodeId


@dataclass(frozen=True)
class Repeat:
    part: NodeId
    low: int
    high: int | None


Node: TypeAlias = (
    Literal
    | Characters
    | Pattern
    | Token
    | OtherToken
    | Embedded
    | RuleRef
    | TemplateUse
    | Parameter
    | Lexeme
    | Concat
    | Union
    | Intersection
    | Complement
    | Repeat
)


@dataclass(frozen=True)
class Rule:
    """A named expression.

    Attributes:
        body: its expression.
        offset: where its definition starts in the grammar's text; None for rules that the text does not hold.
        terminal: a regular expression without recursion (Lark's upper-case names).
    """

    name: str
    body: NodeId
    offset: int | None
    terminal: bool = False


class Arena:
    """Interned nodes."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[Node, NodeId] = {}
        self.epsilon = self.add(Concat(()))
        self.nothing = self.add(Union(()))

    def add(self, node: Node) -> NodeId:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def concat(self, parts: Sequence[NodeId]) -> NodeId:
        """A sequence; adjacent literals join and a part without words makes the whole empty."""
        if self.nothing in parts:
            return self.nothing
        kept: list[NodeId] = []
        for part in parts:
            if part == self.epsilon:
                continue
            node = self.nodes[part]
            previous = self.nodes[kept[-1]] if kept else None
            if isinstance(node, Literal) and isinstance(previous, Literal):
                kept[-1] = self.add(Literal(previous.data + node.data))
            else:
                kept.append(part)
        if len(kept) == 1:
            return kept[0]
        return self.add(Concat(tuple(kept)))

    def union(self, parts: Sequence[NodeId]) -> NodeId:
        """Alternatives, each once, in their order."""
        kept = tuple(dict.fromkeys(part for part in parts if part != self.nothing))
        if len(kept) == 1:
            return kept[0]
        return self.add(Union(kept))

    def repeat(self, part: NodeId, low: int, high: int | None) -> NodeId:
        if part == self.nothing:
            return self.epsilon if low == 0 else self.nothing
        if part == self.epsilon or high == 0:
            return self.epsilon
        if (low, high) == (1, 1):
            return part
        return self.add(Repeat(part, low, high))

    def optional(self, part: NodeId) -> NodeId:
        return self.repeat(part, 0, 1)

    def star(self, part: NodeId) -> NodeId:
        return self.repeat(part, 0, None)

    def rebuild(self, node: Node, parts: Sequence[NodeId]) -> NodeId:
        """The same operator over other operands, simplified. Leaves come back as they are."""
        if isinstance(node, Concat):
            return self.concat(parts)
        if isinstance(node, Union):
            return self.union(parts)
        if isinstance(node, Repeat):
            return self.repeat(parts[0], node.low, node.high)
        if isinstance(node, Intersection):
            return self.add(Intersection(tuple(parts)))
        if isinstance(node, Complement):
            return self.add(Complement(parts[0]))
        if isinstance(node, Lexeme):
            return self.add(Lexeme(parts[0]))
        if isinstance(node, TemplateUse):
            return self.add(TemplateUse(node.name, tuple(parts), node.offset))
        return self.add(node)

    def reachable(self, roots: Iterable[NodeId]) -> list[NodeId]:
        """Every node inside these expressions (rule references are leaves), ascending: operands first."""
        time_limit.check()
        seen = set(roots)
        pending = list(seen)
        while pending:
            for part in operands(self.nodes[pending.pop()]):
                if part not in seen:
                    seen.add(part)
                    pending.append(part)
        return sorted(seen)

    def rewrite(self, root: NodeId, replace: Callable[[Node], NodeId | None]) -> NodeId:
        """The expression with nodes exchanged, operands first.

        replace gets each node with its operands already exchanged and returns its replacement, or None to keep it.
        """
        new: dict[NodeId, NodeId] = {}
        for number in self.reachable([root]):
            node = self.nodes[number]
            rebuilt = self.rebuild(node, [new[part] for part in operands(node)])
            replacement = replace(self.nodes[rebuilt])
            new[number] = rebuilt if replacement is None else replacement
        return new[root]

    def references(self, root: NodeId) -> dict[str, None]:
        """The names of the rules that an expression mentions, in the order of first mention."""
        names: dict[str, None] = {}
        for number in self.reachable([root]):
            node = self.nodes[number]
            if isinstance(node, RuleRef):
                names[node.name] = None
        return names


def operands(node: Node) -> tuple[NodeId, ...]:
    """The nodes directly under this one."""
    if isinstance(node, (Concat, Union, Intersection)):
        return node.parts
    if isinstance(node, (Repeat, Complement, Lexeme)):
        return (node.part,)
    if isinstance(node, TemplateUse):
        return node.arguments
    return ()
