"""The layout of ``json.dumps(value, indent=n)``: every member and item on a line of its own, indented by its depth.

The blanks around a value depend on how deep it lies, so a formula is lowered once for each depth at which it occurs.
Recursive schemas have no bound on that depth, and no finite set of rules counts blanks without one: values nested
deeper than ``MAX_DEPTH`` are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammask.constraints.json_schema.array_language import array_expression
from grammask.constraints.json_schema.arrays import ArrayLayout
from grammask.constraints.json_schema.lowering import Lowering
from grammask.constraints.json_schema.whitespace import Punctuation
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.json_schema.formulas import Formula
    from grammask.constraints.json_schema.objects import ObjectFrame

MAX_DEPTH = 16
"""Containers may lie this deep; the outermost value has depth 0."""


class IndentedLowering(Lowering):
    """Lowers formulas depth by depth."""

    indent: int

    def expression(self, root: Formula) -> Expr:
        """The language of a formula.

        Raises:
            ConstraintError: see the subclasses.
        """
        self._depth = 0
        self._by_depth: dict[tuple[Formula, int], Expr] = {}
        self._open: set[Formula] = set()
        self._recursive: set[Formula] = set()
        self._marks = [_punctuation(self.indent, depth, self._builder) for depth in range(MAX_DEPTH)]
        productive = self._productive(self._plan_all(root))
        if root not in productive:
            raise self._conflict(root, productive)
        body = self._located_body(root, productive)
        if body == self._builder.empty:
            raise ConstraintTooLarge(
                f"every value nests deeper than {MAX_DEPTH} levels, which is as deep as an indent is followed",
                hint='use another policy for white space, such as whitespace="flexible"',
            )
        return body

    def _value(self, formula: Formula, productive: set[Formula]) -> Expr:
        if formula not in productive:
            return self._builder.empty
        key = (formula, self._depth + 1)
        found = self._by_depth.get(key)
        if found is None:
            found = self._by_depth[key] = self._deeper(formula, productive)
        return found

    def _deeper(self, formula: Formula, productive: set[Formula]) -> Expr:
        builder = self._builder
        if formula in self._open:
            self._recursive.add(formula)
        outermost = formula not in self._open
        self._open.add(formula)
        self._depth += 1
        body = self._located_body(formula, productive)
        self._depth -= 1
        if outermost:
            self._open.discard(formula)
        if body == builder.empty:
            return body
        if formula not in self._recursive:
            return builder.call(body)
        # To the core a rule is not a finite text, whose values it would list where items must differ.
        rule = builder.rule("value")
        builder.define(rule, body)
        return rule

    def _object(self, frame: ObjectFrame, productive: set[Formula]) -> Expr:
        builder = self._builder
        parts = []
        if frame.low == 0 and not frame.obligations and not any(member.required for member in frame.members):
            parts.append(builder.literal(b"{}"))
        if self._depth < MAX_DEPTH and frame.high != 0:
            filled = frame._replace(low=max(frame.low, 1))
            members = self._members(filled, productive)
            parts.append(self._frame(filled, members, self._marks[self._depth]))
        return builder.union(parts)

    def _array(self, layout: ArrayLayout, productive: set[Formula]) -> Expr:
        builder = self._builder
        parts = []
        counted = any(low for _, _, low, _ in layout.counts) or bool(layout.clauses)
        if layout.low == 0 and not counted and layout.repeats is None:
            parts.append(builder.literal(b"[]"))
        if self._depth < MAX_DEPTH and layout.high != 0:
            letters = {child: self._value(child, productive) for child in layout.children()}
            filled = layout._replace(low=max(layout.low, 1))
            if filled.has_kinds:
                self._check_equality(filled)
            parts.append(array_expression(filled, letters, builder, self._marks[self._depth]))
        return builder.union(parts)


def _punctuation(indent: int, depth: int, builder: Builder) -> Punctuation:
    """What stands around the members of a container at a depth."""
    inner = b"\n" + b" " * (indent * (depth + 1))
    outer = b"\n" + b" " * (indent * depth)
    literal = builder.literal
    return Punctuation(
        before_value=builder.epsilon,
        open_object=literal(b"{" + inner),
        colon=literal(b": "),
        comma=literal(b"," + inner),
        item_comma=literal(b"," + inner),
        close_object=literal(outer + b"}"),
        open_array=literal(b"[" + inner),
        close_array=literal(outer + b"]"),
    )
