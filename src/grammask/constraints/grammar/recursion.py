"""Rewrites recursion into loops where the language stays the same, and finds the rules that must stay recursive.

A recursive rule costs a stack frame per level and, where it is ambiguous or left-recursive, several threads. Most
recursion in real grammars is none of that in substance: it is a list, or operators between operands.

**Loops.** Write the alternatives of a rule X as ``X w X``, ``u X``, ``X v`` and ``b`` (no X at either end). The texts
of X are exactly operands ``u* b v*`` joined by w's, so X becomes ``u* b v* (w u* b v*)*``. Proof: by induction over
derivations, each of the four forms keeps that shape, and each such text is derived by applying them from the outside
in. The parts u, v, w, b may themselves mention X (in brackets, say), which leaves X recursive, but now deterministic
where the grammar was ambiguous (``expr: expr "+" expr | NUM``) or left-recursive.

**Frames.** Parts between brackets become frames of their own first (see ``frames``); often no other recursion is left.

**Elimination.** Within a set of rules that call each other, a rule that does not mention itself is replaced by its body
in the others (Gaussian elimination over the grammar), smallest first, which exposes further loops. What remains
mentions itself in the middle: these rules are the recursive ones. All others are expressions over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grammask.constraints.grammar.frames import Frames
from grammask.constraints.grammar.graph import components
from grammask.constraints.grammar.nodes import Arena, Concat, Node, NodeId, Repeat, RuleRef, Union, operands

MAX_SIZE = 20_000
"""Elimination stops before the bodies of a set of rules together grow beyond this many nodes, counted as trees."""

MAX_ALTERNATIVES = 2_000
"""A rule with more alternatives than this at its ends is not rewritten."""


@dataclass(frozen=True)
class Solved:
    """Rules ready for lowering.

    Attributes:
        bodies: the expression of every rule.
        recursive: the rules that need a frame of their own because they contain themselves. References among the other
            rules have no cycles.
    """

    bodies: Mapping[str, NodeId]
    recursive: frozenset[str]


def solve(arena: Arena, bodies: Mapping[str, NodeId]) -> Solved:
    """Rewrites a set of rules that is closed under references; the language of every rule stays the same."""
    solved = dict(bodies)
    recursive: set[str] = set()
    frames = Frames(arena)
    graph = {name: list(arena.references(body)) for name, body in solved.items()}
    for component in components(graph):
        if len(component) > 1 or component[0] in graph[component[0]]:
            members = frozenset(component)
            for name in component:
                solved[name] = frames.extract(name, solved[name], members)
            recursive |= _solve_component(arena, frames, solved, component)
        for name in component:
            frames.finish(name, solved[name], name in recursive)
    return Solved({**solved, **frames.bodies}, frozenset(recursive | frames.bodies.keys()))


def _solve_component(arena: Arena, frames: Frames, bodies: dict[str, NodeId], component: list[str]) -> set[str]:
    """Rewrites the bodies of rules that call each other; returns those that stay recursive."""
    active = dict.fromkeys(component)
    references: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}

    def refresh(name: str) -> None:
        mentioned = arena.references(bodies[name])
        if name in mentioned:
            # Spreading alternatives brings their ends together: if (…) X | if (…) X else X has an X between brackets.
            bodies[name] = frames.extract(name, loop(arena, name, bodies[name]), active)
            mentioned = arena.references(bodies[name])
        references[name] = active.keys() & mentioned
        sizes[name] = tree_size(arena, bodies[name])

    for name in component:
        refresh(name)
    while True:
        users: dict[str, list[str]] = {name: [] for name in active}
        for name in active:
            for other in references[name]:
                users[other].append(name)
        chosen = _independent(active, references, users, sizes)
        if not chosen:
            return set(active)
        for name in chosen:
            del active[name]
        for user in dict.fromkeys(user for name in chosen for user in users[name]):
            bodies[user] = _substitute(arena, bodies[user], {name: bodies[name] for name in chosen})
            refresh(user)


def _independent(
    active: Mapping[str, None],
    references: Mapping[str, set[str]],
    users: Mapping[str, list[str]],
    sizes: Mapping[str, int],
) -> set[str]:
    """Rules to eliminate in one go: none mentions itself or another of them, those that add least first."""
    chosen: set[str] = set()
    blocked: set[str] = set()
    total = sum(sizes[name] for name in active)
    growth = {name: sizes[name] * len(users[name]) for name in active if name not in references[name]}
    for name in sorted(growth, key=lambda name: (growth[name], name)):
        if name not in blocked and chosen.isdisjoint(references[name]) and total + growth[name] <= MAX_SIZE:
            chosen.add(name)
            blocked |= references[name]
            total += growth[name]
    return chosen


def _substitute(arena: Arena, root: NodeId, replacements: Mapping[str, NodeId]) -> NodeId:
    def replace(node: Node) -> NodeId | None:
        return replacements.get(node.name) if isinstance(node, RuleRef) else None

    return arena.rewrite(root, replace)


def tree_size(arena: Arena, root: NodeId) -> int:
    """The number of nodes of an expression written out as a tree, at most MAX_SIZE + 1; references count one."""
    sizes: dict[NodeId, int] = {}
    for number in arena.reachable([root]):
        sizes[number] = min(1 + sum(sizes[part] for part in operands(arena.nodes[number])), MAX_SIZE + 1)
    return sizes[root]


def loop(arena: Arena, name: str, body: NodeId) -> NodeId:
    """The body of a rule with its recursion at either end turned into repetition; the body itself if there is none."""
    this = arena.add(RuleRef(name))
    alternatives = _alternatives(arena, body, this)
    if alternatives is None:
        return body
    if (this, this) in alternatives or () in alternatives:
        # X X makes X closed under concatenation, and X X X with an empty X is X X: longer powers of X add nothing.
        alternatives = [
            (this, this) if len(factors) > 2 and {*factors} == {this} else factors for factors in alternatives
        ]
    between: list[NodeId] = []
    before: list[NodeId] = []
    after: list[NodeId] = []
    base: list[NodeId] = []
    for factors in alternatives:
        if factors == (this,):
            continue
        first, last = factors[:1] == (this,), factors[-1:] == (this,)
        target = between if first and last else before if last else after if first else base
        target.append(arena.concat(factors[first : len(factors) - last]))
    if not (between or before or after):
        return arena.union(base)
    operand = arena.concat([arena.star(arena.union(before)), arena.union(base), arena.star(arena.union(after))])
    if not between:
        return operand
    return arena.concat([operand, arena.star(arena.concat([arena.union(between), operand]))])


def _alternatives(arena: Arena, body: NodeId, this: NodeId) -> list[tuple[NodeId, ...]] | None:
    """The alternatives of a body as sequences, spread out until no first or last part hides ``this`` at its end.

    None if there are more than MAX_ALTERNATIVES.
    """
    leads, ends = _occurrences(arena, body, this)
    pending: list[tuple[NodeId, ...]] = [(body,)]
    finished: list[tuple[NodeId, ...]] = []
    while pending:
        factors = pending.pop()
        if len(pending) + len(finished) > MAX_ALTERNATIVES:
            return None
        if factors and factors[-1] != this and factors[-1] in ends:
            pending.extend((*factors[:-1], *option) for option in reversed(_options(arena, factors[-1])))
        elif factors and factors[0] != this and factors[0] in leads:
            pending.extend((*option, *factors[1:]) for option in reversed(_options(arena, factors[0])))
        else:
            finished.append(factors)
    return finished


def _occurrences(arena: Arena, body: NodeId, this: NodeId) -> tuple[set[NodeId], set[NodeId]]:
    """The nodes that can begin, and that can end, with ``this`` through alternatives, options and sequences."""
    leads, ends = {this}, {this}
    for number in arena.reachable([body]):
        node = arena.nodes[number]
        if isinstance(node, Union):
            first = last = node.parts
        elif isinstance(node, Repeat) and (node.low, node.high) == (0, 1):
            first = last = (node.part,)
        elif isinstance(node, Concat):
            first, last = node.parts[:1], node.parts[-1:]
        else:
            continue
        if not leads.isdisjoint(first):
            leads.add(number)
        if not ends.isdisjoint(last):
            ends.add(number)
    return leads, ends


def _options(arena: Arena, number: NodeId) -> list[tuple[NodeId, ...]]:
    node = arena.nodes[number]
    if isinstance(node, Union):
        return [(part,) for part in node.parts]
    if isinstance(node, Concat):
        return [node.parts]
    return [operands(node), ()]
