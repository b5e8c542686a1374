"""The syntax tree of a regular expression: immutable nodes over sets of code points.

Groups leave no node (capturing changes no language), flags are resolved while parsing (a case-insensitive ``a`` is
the set ``[Aa]``), and lazy quantifiers are the greedy ones: both have the same language.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grammask.constraints.regex import codepoints
from grammask.constraints.regex.codepoints import CodePointSet


@dataclass(frozen=True)
class Node:
    """A part of a pattern.

    Attributes:
        height: levels of nodes in it, 1 for a leaf; the parser bounds it so that recursion over trees is safe.
        looks_back: whether what it matches depends on the text before it.
        looks_ahead: whether what it matches depends on the text after it.
    """

    height: int = field(init=False, compare=False, repr=False)
    looks_back: bool = field(init=False, compare=False, repr=False)
    looks_ahead: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._derive(())

    @property
    def plain(self) -> bool:
        """Whether its language does not depend on what stands around it."""
        return not (self.looks_back or self.looks_ahead)

    def _derive(self, children: tuple[Node, ...], *, back: bool = False, ahead: bool = False) -> None:
        """Set the attributes that follow from the children, and from what the node itself looks at."""
        height = 0
        for child in children:
            height = max(height, child.height)
            back = back or child.looks_back
            ahead = ahead or child.looks_ahead
        object.__setattr__(self, "height", height + 1)
        object.__setattr__(self, "looks_back", back)
        object.__setattr__(self, "looks_ahead", ahead)


@dataclass(frozen=True)
class Text(Node):
    """Exactly these characters; the empty text matches the empty word."""

    text: str


@dataclass(frozen=True)
class Chars(Node):
    """One code point out of a set; the empty set matches nothing."""

    ranges: CodePointSet


@dataclass(frozen=True)
class Concat(Node):
    """One part after the other."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._derive(self.parts)


@dataclass(frozen=True)
class Alternation(Node):
    """Any of the branches."""

    branches: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._derive(self.branches)


@dataclass(frozen=True)
class Repeat(Node):
    """``low`` to ``high`` (None: any number of) copies of the body."""

    body: Node
    low: int
    high: int | None

    def __post_init__(self) -> None:
        self._derive((self.body,))


@dataclass(frozen=True)
class Start(Node):
    """``^`` and ``\\A``: before the first character, or after one of the given line terminators."""

    after: CodePointSet = codepoints.EMPTY

    def __post_init__(self) -> None:
        self._derive((), back=True)


@dataclass(frozen=True)
class End(Node):
    """``$`` and ``\\Z``: after the last character, or before one of the given line terminators."""

    before: CodePointSet = codepoints.EMPTY

    def __post_init__(self) -> None:
        self._derive((), ahead=True)


@dataclass(frozen=True)
class WordBoundary(Node):
    """``\\b``: exactly one of the two neighbours is in ``word``; ``\\B`` when negated."""

    word: CodePointSet
    negated: bool

    def __post_init__(self) -> None:
        self._derive((), back=True, ahead=True)


@dataclass(frozen=True)
class LookAhead(Node):
    """``(?=body)``, ``(?!body)``: what follows starts (does not start) with the body; ``column`` is 1-based."""

    body: Node
    negated: bool
    column: int = field(compare=False)

    def __post_init__(self) -> None:
        self._derive((self.body,), ahead=True)


@dataclass(frozen=True)
class LookBehind(Node):
    """``(?<=body)``, ``(?<!body)``: what precedes ends (does not end) with the body."""

    body: Node
    negated: bool

    def __post_init__(self) -> None:
        self._derive((self.body,), back=True)


EMPTY_WORD = Text("")
NOTHING = Chars(codepoints.EMPTY)
ANY_CHAR = Chars(codepoints.ANY)
ANY_TEXT = Repeat(ANY_CHAR, 0, None)

_FLATTEN = 64
"""Nested nodes with more members stay nested, so that building a tree inside out costs no quadratic copying."""


def concat(parts: Iterable[Node]) -> Node:
    """Concatenation with nested concatenations flattened and neighbouring texts joined."""
    flat: list[Node] = []
    run: list[str] = []
    for part in parts:
        for piece in part.parts if type(part) is Concat and len(part.parts) <= _FLATTEN else (part,):
            if type(piece) is Text:
                run.append(piece.text)
                continue
            if text := "".join(run):
                flat.append(Text(text))
            run.clear()
            if flat and type(piece) is Repeat and type(flat[-1]) is Repeat and flat[-1].body == piece.body:
                flat[-1] = _joined(flat[-1], piece)
            else:
                flat.append(piece)
    if text := "".join(run):
        flat.append(Text(text))
    if not flat:
        return EMPTY_WORD
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def _joined(first: Repeat, second: Repeat) -> Repeat:
    """Two repetitions of one body in a row as one: ``X{a,b}X{c,d}`` is ``X{a+c,b+d}``."""
    high = None if first.high is None or second.high is None else first.high + second.high
    return Repeat(first.body, first.low + second.low, high)


def alternation(branches: Iterable[Node]) -> Node:
    """Alternation with nested ones flattened, duplicates removed and single characters gathered into one set."""
    distinct: dict[Node, None] = {}
    sets: list[CodePointSet] = []
    for branch in branches:
        for piece in branch.branches if type(branch) is Alternation and len(branch.branches) <= _FLATTEN else (branch,):
            if type(piece) is Chars and len(piece.ranges) <= _FLATTEN:
                sets.append(piece.ranges)
            elif type(piece) is Text and len(piece.text) == 1:
                sets.append(((ord(piece.text), ord(piece.text)),))
            else:
                distinct[piece] = None
    if sets and (merged := codepoints.union(sets)):
        distinct[chars(merged)] = None
    if not distinct:
        return NOTHING
    nodes = tuple(distinct)
    return nodes[0] if len(nodes) == 1 else Alternation(nodes)


def chars(ranges: CodePointSet) -> Node:
    """A character of a set; a set of one is a text, so that literals join.

    Surrogates stay sets: no text holds one, and the core drops them from classes.
    """
    if codepoints.is_single(ranges) and not 0xD800 <= ranges[0][0] <= 0xDFFF:
        return Text(chr(ranges[0][0]))
    return Chars(ranges)


def repeat(body: Node, low: int, high: int | None) -> Node:
    """Repetition, with ``{1}``, ``{0}`` and repetitions of the empty word taken away."""
    if high == 0 or body == EMPTY_WORD:
        return EMPTY_WORD
    if low == 1 and high == 1:
        return body
    if low == 0 and type(body) is Repeat and body.low == 0 and body.high is None:
        return body
    return Repeat(body, low, high)


@dataclass(frozen=True)
class Anchored:
    """A branch whose only assertions are a ``^`` at its start and a ``$`` at its end: ``body`` is plain."""

    at_start: bool
    body: Node
    at_end: bool


def shortest_tail(node: Node) -> Node:
    """A node T, often simpler, with ``T.*`` the same language as ``node.*`` when any text may follow.

    ``X{m,n}.*`` is ``X{m}.*``, since what further copies match is a text as well.
    """
    if not node.plain:
        return node
    if isinstance(node, Concat):
        return concat((*node.parts[:-1], shortest_tail(node.parts[-1])))
    if isinstance(node, Alternation):
        branches = [shortest_tail(branch) for branch in node.branches]
        return EMPTY_WORD if EMPTY_WORD in branches else alternation(branches)
    if isinstance(node, Repeat):
        if node.low == 0:
            return EMPTY_WORD
        return concat((repeat(node.body, node.low - 1, node.low - 1), shortest_tail(node.body)))
    return node


def shortest_head(node: Node) -> Node:
    """The mirror image of ``shortest_tail``: for a node before which any text may stand."""
    if not node.plain:
        return node
    if isinstance(node, Concat):
        return concat((shortest_head(node.parts[0]), *node.parts[1:]))
    if isinstance(node, Alternation):
        branches = [shortest_head(branch) for branch in node.branches]
        return EMPTY_WORD if EMPTY_WORD in branches else alternation(branches)
    if isinstance(node, Repeat):
        if node.low == 0:
            return EMPTY_WORD
        return concat((shortest_head(node.body), repeat(node.body, node.low - 1, node.low - 1)))
    return node


def anchored_branches(tree: Node, *, search: bool) -> tuple[Anchored, ...] | None:
    """The pattern as alternatives with anchors only at their edges, None if it is not of that form.

    Without ``search`` the whole text must match, as if anchors stood at both edges of every branch.
    Most patterns are; their languages are put together without the machinery for assertions.
    """
    branches = []
    for branch in tree.branches if isinstance(tree, Alternation) else (tree,):
        parts = list(branch.parts if isinstance(branch, Concat) else (branch,))
        at_start = parts[:1] == [Start()]
        if at_start:
            del parts[0]
        at_end = parts[-1:] == [End()]
        if at_end:
            del parts[-1]
        if not all(part.plain for part in parts):
            return None
        body = concat(parts)
        if search and not at_end:
            body = shortest_tail(body)
        if search and not at_start:
            body = shortest_head(body)
        branches.append(Anchored(at_start or not search, body, at_end or not search))
    return tuple(branches)
