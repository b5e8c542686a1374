"""From formulas to expressions of the core: the work list.

Three passes, none of them recursive in Python:

1. Plan: expand a formula into cells, turn those into frames (objects) and layouts (arrays), put the formulas of their
   members and items on the list, until nothing new comes up.
2. Productivity: the least set of formulas that have an instance. The rest is dropped: an optional member without a
   possible value cannot appear, a required one takes its object with it.
3. Lower each plan, children first. A child that is still to come is a recursive rule, defined when its turn comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from grammask import _core
from grammask.constraints.json_schema import arrays, numbers, objects, strings
from grammask.constraints.json_schema.array_language import array_expression
from grammask.constraints.json_schema.arrays import ArrayLayout
from grammask.constraints.json_schema.documents import escape
from grammask.constraints.json_schema.formulas import Formula
from grammask.constraints.json_schema.keys import KeySpace, spelled
from grammask.constraints.json_schema.numbers import NumberCell, NumberSpelling
from grammask.constraints.json_schema.objects import ObjectFrame
from grammask.constraints.json_schema.strings import StringLanguages, Strings
from grammask.constraints.json_schema.whitespace import Punctuation
from grammask.engine import time_limit
from grammask.engine.errors import (
    RAISE_LIMITS,
    ConstraintError,
    ConstraintTooLarge,
    UnsatisfiableConstraint,
    UnsupportedConstraint,
)

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.json_schema.documents import Node
    from grammask.constraints.json_schema.expansion import Expander
    from grammask.constraints.json_schema.shapes import ShapeAlgebra

FLATTEN = "write nested allOf, anyOf, oneOf and not as fewer levels"
MAX_PLANS = 100_000
MAX_DEPTH = 1_000
"""Values may nest this deep other than by recursion; the core's limit on expressions lies beyond."""


class Plan(NamedTuple):
    """What a formula allows, ready to be lowered.

    Attributes:
        words: texts of null and booleans.
        numbers, strings: the scalar parts; the cells are known to be satisfiable.
        frames, layouts: objects and arrays.
        formula: what it is the plan of.
    """

    words: tuple[bytes, ...]
    numbers: tuple[NumberCell, ...]
    strings: Strings
    frames: tuple[ObjectFrame, ...]
    layouts: tuple[ArrayLayout, ...]
    formula: Formula

    @property
    def pointer(self) -> str | None:
        """A place in the schema, for messages."""
        return _place(self.formula)

    def children(self) -> Iterator[Formula]:
        """What the members and items are."""
        for frame in self.frames:
            yield from frame.children()
        for layout in self.layouts:
            yield from layout.children()

    @property
    def has_scalar(self) -> bool:
        return bool(self.words or self.numbers or (self.strings is not strings.NONE and self.strings != strings.NONE))


class Lowering:
    """Lowers the formulas of one constraint into one Builder."""

    def __init__(
        self,
        builder: Builder,
        expander: Expander,
        algebra: ShapeAlgebra,
        keys: KeySpace,
        languages: StringLanguages,
        punctuation: Punctuation,
        *,
        ordered: bool,
        policy: str,
        spelling: NumberSpelling,
    ) -> None:
        self._any_value_key = f"json-value/{policy}/{spelling}"
        self._spelling: NumberSpelling = spelling
        self._builder = builder
        self._expander = expander
        self._algebra = algebra
        self._keys = keys
        self._languages = languages
        self._punctuation = punctuation
        self._ordered = ordered
        self._plans: dict[Formula, Plan] = {}
        self._values: dict[Formula, Expr] = {}
        self._rules: dict[Formula, Expr] = {}
        self._numbers: dict[NumberCell, Expr] = {}

    def expression(self, root: Formula) -> Expr:
        """The language of a formula, without blanks around it.

        Raises:
            ConstraintError: see the subclasses.
        """
        builder, punctuation = self._builder, self._punctuation
        anything = self._expander.formulas.true
        known = builder.memo_get(self._any_value_key) if root is not anything else None
        if known is not None:
            self._values[anything] = known
        order = self._plan_all(root)
        productive = self._productive(order)
        if root not in productive:
            raise self._conflict(root, productive)
        body = builder.empty
        for formula in order:
            if formula not in productive:
                continue
            time_limit.check()
            body = self._located_body(formula, productive)
            if formula is root and formula not in self._rules:
                break
            padded = builder.concat([punctuation.before_value, body])
            rule = self._rules.get(formula)
            if rule is None:
                self._values[formula] = builder.call(padded)
            else:
                builder.define(rule, padded)
                self._values[formula] = rule
                if formula is anything:
                    builder.memo_set(self._any_value_key, rule)
        if body == builder.empty:
            raise self._conflict(root, productive)
        return body

    # -- planning

    def _plan_all(self, root: Formula) -> list[Formula]:
        """Plans every formula reachable from the root; returns them children first."""
        plans = self._plans
        order: list[Formula] = []
        stack: list[tuple[Formula, int]] = [(root, 1)]  # depth; negative once the children are done
        while stack:
            formula, depth = stack.pop()
            if depth < 0:
                order.append(formula)
                continue
            if formula in plans or formula in self._values:
                continue
            time_limit.check()
            if len(plans) >= MAX_PLANS:
                raise ConstraintTooLarge(
                    f"more than {MAX_PLANS} different subschemas and combinations of subschemas",
                    pointer=self._near(formula),
                    hint="list fewer objects and arrays in enum, or split the schema",
                )
            if depth > MAX_DEPTH:
                raise ConstraintTooLarge(
                    f"values nested deeper than {MAX_DEPTH}",
                    pointer=self._near(formula),
                    hint="let a definition refer to itself where values nest without end",
                )
            try:
                plan = plans[formula] = self._plan(formula)
            except _EXPLAINABLE as error:
                self._raise_located(error, formula)
            stack.append((formula, -1))
            for frame in plan.frames:
                stack.extend([(child, depth + 1) for child in frame.children() if child not in plans])
            for layout in plan.layouts:
                stack.extend([(child, depth + 1) for child in layout.children() if child not in plans])
        return order

    def _plan(self, formula: Formula) -> Plan:
        shape = self._expander.shape(formula)
        words = [b"null"] if shape.null else []
        if shape.booleans & 2:
            words.append(b"true")
        if shape.booleans & 1:
            words.append(b"false")
        cells = tuple([cell for cell in shape.numbers if numbers.has_instance(cell)])
        tree = shape.strings
        if tree is not strings.NONE and tree is not strings.ANY and self._languages.is_void(tree):
            tree = strings.NONE
        frames: list[ObjectFrame] = []
        for cell in shape.objects:
            frames += objects.frames(
                cell, self._expander.formulas, self._algebra.objects, self._keys, ordered=self._ordered
            )
        layouts = []
        for item in shape.arrays:
            layout = arrays.layout(item, self._expander.formulas, self._algebra.arrays)
            if layout is not None:
                layouts.append(layout)
        return Plan(tuple(words), cells, tree, tuple(frames), tuple(layouts), formula)

    def _number(self, cell: NumberCell) -> Expr:
        found = self._numbers.get(cell)
        if found is None:
            found = self._numbers[cell] = numbers.lower(cell, self._builder, self._spelling)
        return found

    # -- productivity

    def _productive(self, order: list[Formula]) -> set[Formula]:
        found: set[Formula] = set(self._values)
        waiting = order
        plans = self._plans
        while True:
            left = []
            for formula in waiting:
                plan = plans[formula]
                if plan.has_scalar or self._has_instance(plan, found):
                    found.add(formula)
                else:
                    left.append(formula)
            if len(left) == len(waiting):
                return found
            waiting = left
            if not waiting:
                return found

    def _has_instance(self, plan: Plan, known: set[Formula]) -> bool:
        return any(_frame_possible(frame, known) for frame in plan.frames) or any(
            _layout_possible(layout, known) for layout in plan.layouts
        )

    def _conflict(self, root: Formula, productive: set[Formula]) -> UnsatisfiableConstraint:
        """Follows required members and items down to where nothing is left."""
        formula, path, seen = root, "", {root}
        while True:
            plan = self._plans[formula]
            step = self._impossible_child(plan, productive)
            if step is None or step[1] in seen or step[1] not in self._plans:
                break
            path, formula = f"{path}/{step[0]}", step[1]
            seen.add(formula)
        where = f"the value at {path} has none" if path else "its keywords exclude each other"
        return UnsatisfiableConstraint(
            f"no JSON value satisfies the schema: {where}",
            pointer=self._plans[formula].pointer or "",
            hint="look for contradicting types, constants, bounds, patterns or required properties there",
        )

    def _impossible_child(self, plan: Plan, productive: set[Formula]) -> tuple[str, Formula] | None:
        for frame in plan.frames:
            for member in frame.members:
                if member.required and not any(formula in productive for formula, _ in member.values):
                    return str(member.name), member.values[0][0]
        for layout in plan.layouts:
            for position, letters in enumerate(layout.prefix[: layout.low]):
                if letters.values and not any(formula in productive for formula, _ in letters.values):
                    return str(position), letters.values[0][0]
            values = layout.rest.values
            if layout.low > len(layout.prefix) and values and not any(f in productive for f, _ in values):
                return str(len(layout.prefix)), values[0][0]
        return None

    # -- lowering

    def _located_body(self, formula: Formula, productive: set[Formula]) -> Expr:
        try:
            return self._body(formula, productive)
        except _EXPLAINABLE as error:
            self._raise_located(error, formula)

    def _raise_located(self, error: Exception, formula: Formula) -> NoReturn:
        """Raises an error from inside, with the place where it happened."""
        pointer = self._near(formula)
        if isinstance(error, _core.ConstraintTooLargeError):
            raise ConstraintTooLarge(str(error), pointer=pointer, hint=RAISE_LIMITS) from error
        if isinstance(error, RecursionError):
            raise ConstraintTooLarge(
                "too many schemas nested at one place of the instance", pointer=pointer, hint=FLATTEN
            ) from None
        if not isinstance(error, ConstraintError):
            raise ConstraintTooLarge(str(error), pointer=pointer, hint="give its numbers fewer digits") from error
        if error.pointer is not None:
            raise error
        raise type(error)(error.message, pointer=pointer, hint=error.hint) from error

    def _near(self, formula: Formula) -> str:
        """The place in the schema that a formula speaks of.

        Constants have none of their own: theirs is that of the property that they are the value of, or else of the
        object or array that holds them.
        """
        seen = {formula}
        while (node := _node(formula)) is None:
            holder = next((known for known, plan in self._plans.items() if formula in plan.children()), None)
            if holder is None or holder in seen:
                return ""
            node = _node(holder)
            if node is not None:
                return node.pointer + _declaration(node, self._plans[holder], formula)
            seen.add(holder)
            formula = holder
        return node.pointer

    def _body(self, formula: Formula, productive: set[Formula]) -> Expr:
        builder, plan = self._builder, self._plans[formula]
        parts = [builder.literal(word) for word in plan.words]
        parts += [self._number(cell) for cell in plan.numbers]
        if plan.strings is not strings.NONE and plan.strings != strings.NONE:
            parts.append(self._languages.value(plan.strings))
        for frame in plan.frames:
            parts.append(self._object(frame, productive))
        for layout in plan.layouts:
            parts.append(self._array(layout, productive))
        return parts[0] if len(parts) == 1 else builder.union(parts)

    def _value(self, formula: Formula, productive: set[Formula]) -> Expr:
        """The expression of a member's or item's value."""
        found = self._values.get(formula)
        if found is not None:
            return found
        if formula not in productive:
            return self._builder.empty
        rule = self._rules.get(formula)
        if rule is None:
            rule = self._rules[formula] = self._builder.rule(_place(formula) or "value")
        return rule

    def _array(self, layout: ArrayLayout, productive: set[Formula]) -> Expr:
        letters = {child: self._value(child, productive) for child in layout.children()}
        if layout.has_kinds:
            self._check_equality(layout)
        return array_expression(layout, letters, self._builder, self._punctuation)

    def _check_equality(self, layout: ArrayLayout) -> None:
        """Equal values must be of one kind; 1 and 1.0 may not be in draft 4, where only 1 is an integer."""
        telling = [kind for kind in dict.fromkeys(layout.children()) if self._tells_spellings_apart(kind)]
        if len(telling) > 1:
            raise UnsupportedConstraint(
                "uniqueItems together with a count that depends on whether a number is written as an integer",
                pointer=layout.unique or layout.repeats,
                hint="use a later draft than 4, in which 1.0 is an integer too",
            )

    def _tells_spellings_apart(self, formula: Formula) -> bool:
        seen = {formula}
        stack = [formula]
        while stack:
            plan = self._plans.get(stack.pop())
            if plan is None:  # known from before: any value
                continue
            if any(cell.plain is not None for cell in plan.numbers):
                return True
            for child in plan.children():
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def _object(self, frame: ObjectFrame, productive: set[Formula]) -> Expr:
        return self._frame(frame, self._members(frame, productive), self._punctuation)

    def _members(self, frame: ObjectFrame, productive: set[Formula]) -> list[Any]:
        members = []
        for member in frame.members:
            values = [(self._value(formula, productive), mask) for formula, mask in member.values]
            key = spelled(member.name) if member.name is not None else member.language
            members.append((key, member.required, values))
        return members

    def _frame(self, frame: ObjectFrame, members: list[Any], punctuation: Punctuation) -> Expr:
        return self._builder.object(
            members,
            open=punctuation.open_object,
            colon=punctuation.colon,
            comma=punctuation.comma,
            close=punctuation.close_object,
            min_members=frame.low,
            max_members=frame.high,
            ordered=self._ordered,
            obligations=frame.obligations,
            dependencies=frame.implied,
        )


_EXPLAINABLE = (ConstraintError, _core.ConstraintTooLargeError, RecursionError, ValueError)
"""What planning and lowering raise; a ValueError is a number that the core cannot take."""


def _place(formula: Formula) -> str | None:
    """A place in the schema that a formula speaks of."""
    node = _node(formula)
    return None if node is None else node.pointer


def _node(formula: Formula) -> Node | None:
    """The first subschema in a formula."""
    if formula.kind in ("atom", "local"):
        node: Node = formula.payload
        return node
    for arg in formula.args:
        found = _node(arg)
        if found is not None:
            return found
    return None


def _declaration(node: Node, plan: Plan, value: Formula) -> str:
    """Where an object schema declares the property that has a value, relative to it; nothing if it does not."""
    declared = node.schema.get("properties")
    for frame in plan.frames:
        for member in frame.members:
            if isinstance(declared, dict) and member.name in declared and any(f is value for f, _ in member.values):
                return f"/properties/{escape(str(member.name))}"
    return ""


def _frame_possible(frame: ObjectFrame, known: set[Formula]) -> bool:
    reachable = 0
    possible = 0
    for member in frame.members:
        alive = False
        for formula, mask in member.values:
            if formula in known:
                alive = True
                reachable |= mask
        if member.required and not alive:
            return False
        if alive:
            possible = possible + 1 if member.name is not None and possible >= 0 else -1
    if reachable != (1 << frame.obligations) - 1:
        return False
    return possible < 0 or frame.low <= possible


def _layout_possible(layout: ArrayLayout, known: set[Formula]) -> bool:
    needed = layout.low
    places = [*layout.prefix[:needed]]
    if needed > len(layout.prefix):
        places.append(layout.rest)
    return all(any(formula in known for formula, _ in letters.values) for letters in places)
