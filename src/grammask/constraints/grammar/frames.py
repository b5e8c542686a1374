"""Finds the bracketed parts of recursive rules: they make the best frames.

In ``value: STRING | "[" (value ("," value)*)? "]"`` the recursion lies between brackets. If ``"[" … "]"`` is the frame
instead of the whole of ``value``, a string is matched in the frame where it stands, a frame is entered and left only at
a bracket, and what is left of ``value`` is no longer recursive at all. The same holds for elements with tags, blocks,
arguments, conditions: whatever stands between two firm parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from grammask.constraints.grammar.nodes import (
    Arena,
    Characters,
    Concat,
    Literal,
    Node,
    NodeId,
    Repeat,
    RuleRef,
    Union,
    operands,
)

MAX_FACTORS = 256
"""Longer sequences are looked at without opening the sequences inside them."""


class Frames:
    """Bracketed parts found so far.

    Attributes:
        bodies: what each frame's rule matches.
        firm: which finished rules end at a definite place: with a literal or a single character.
    """

    def __init__(self, arena: Arena) -> None:
        self.bodies: dict[str, NodeId] = {}
        self.firm: dict[str, bool] = {}
        self._arena = arena

    def finish(self, name: str, body: NodeId, recursive: bool) -> None:
        """Notes a rule whose body will not change any more."""
        self.firm[name] = not recursive and self._firm_nodes(body)[body]

    def extract(self, name: str, body: NodeId, members: Collection[str]) -> NodeId:
        """The body of a rule with its bracketed parts exchanged for references to frames.

        members: the rules that call each other; a part is bracketed if it mentions one of them between two firm parts
        that mention none.
        """
        arena = self._arena
        firm = self._firm_nodes(body)
        mentions: dict[NodeId, bool] = {}
        new: dict[NodeId, NodeId] = {}
        for number in arena.reachable([body]):
            node = arena.nodes[number]
            parts = operands(node)
            mentions[number] = any(mentions[part] for part in parts) or _is_member(node, members)
            if not mentions[number]:
                new[number] = number
            elif isinstance(node, Concat):
                factors = self._factors(node)
                new[number] = self._bracket(name, factors, mentions, firm, new)
            else:
                new[number] = arena.rebuild(node, [new[part] for part in parts])
        return new[body]

    def _bracket(
        self,
        name: str,
        factors: tuple[NodeId, ...],
        mentions: Mapping[NodeId, bool],
        firm: Mapping[NodeId, bool],
        new: Mapping[NodeId, NodeId],
    ) -> NodeId:
        anchors = [place for place, factor in enumerate(factors) if firm[factor] and not mentions[factor]]
        recursive = [place for place, factor in enumerate(factors) if mentions[factor]]
        inner = [place for place in recursive if anchors and anchors[0] < place < anchors[-1]]
        if not inner:
            return self._arena.concat([new[factor] for factor in factors])
        first = max(place for place in anchors if place < inner[0])
        last = min(place for place in anchors if place > inner[-1])
        body = self._arena.concat(factors[first : last + 1])
        frame = f"{name}[{body}]"
        self.bodies[frame] = body
        self.firm[frame] = True
        before = [new[factor] for factor in factors[:first]]
        after = [new[factor] for factor in factors[last + 1 :]]
        return self._arena.concat([*before, self._arena.add(RuleRef(frame)), *after])

    def _factors(self, node: Concat) -> tuple[NodeId, ...]:
        """The parts of a sequence, with sequences inside it opened."""
        factors = node.parts
        while True:
            opened: list[NodeId] = []
            for factor in factors:
                inner = self._arena.nodes[factor]
                opened.extend(inner.parts if isinstance(inner, Concat) else (factor,))
            if len(opened) == len(factors) or len(opened) > MAX_FACTORS:
                return factors
            factors = tuple(opened)

    def _firm_nodes(self, body: NodeId) -> dict[NodeId, bool]:
        firm: dict[NodeId, bool] = {}
        for number in self._arena.reachable([body]):
            node = self._arena.nodes[number]
            firm[number] = self._is_firm(node, [firm[part] for part in operands(node)])
        return firm

    def _is_firm(self, node: Node, parts: list[bool]) -> bool:
        if isinstance(node, (Literal, Characters)):
            return node != Literal(b"")
        if isinstance(node, RuleRef):
            return self.firm.get(node.name, False)
        if isinstance(node, Concat):
            return bool(parts) and parts[-1]
        if isinstance(node, Union):
            return all(parts)
        return isinstance(node, Repeat) and node.low == node.high and parts[0]


def _is_member(node: Node, members: Collection[str]) -> bool:
    return isinstance(node, RuleRef) and node.name in members
