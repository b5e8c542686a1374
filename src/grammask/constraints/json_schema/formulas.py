"""Schemas as boolean formulas.

An *atom* is a place in a schema document. Everything that JSON Schema combines at one instance location (allOf, anyOf,
oneOf, not, if/then/else, references) is a boolean combination of atoms, and the value of a property or item that
several keywords constrain is described by a combination as well. Formulas are interned: equal formulas are the same
object, so a formula that comes up again, through recursion for example, is recognised at once. Negation is pushed
down to the atoms.

The simplifications kept here are those that need no look into an atom: neutral and absorbing elements, an atom beside
its negation, sets of constant values and of types, and types that exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from grammask.constraints.json_schema.values import Value

if TYPE_CHECKING:
    from grammask.constraints.json_schema.documents import Node

NULL, BOOLEAN, PLAIN, POINTED, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(8))
"""PLAIN are whole numbers written without a fraction or exponent, POINTED those written with one (1.0, 1e2)."""
WHOLE = PLAIN | POINTED
NUMBER = WHOLE | FRACTION
ANYTHING = (1 << 8) - 1

TYPE_BITS = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": WHOLE,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}


def type_bit(value: Value) -> int:
    kind = value[0]
    if kind == "d":
        return WHOLE if value[1].denominator == 1 else FRACTION  # a whole number has both spellings
    return {"n": NULL, "b": BOOLEAN, "s": STRING, "a": ARRAY, "o": OBJECT}[kind]


class Formula:
    """One interned formula; compare with ``is``.

    Attributes:
        kind: ``atom`` (payload: a Node), ``local`` (the Node without its in-place applicators), ``values`` (a
        frozenset of
            Value), ``types`` (a bit set), ``not`` (args[0] is an atom, local or values), ``and``, ``or``, ``later``
            (args[0], whose names come behind all others in the order of properties); and, where
            annotations matter, ``any`` (an ``or`` whose branches contribute theirs together) and ``cases`` (one at a
            time).
        types: bit set of the types that an instance may have (an upper bound).
    """

    __slots__ = ("args", "kind", "payload", "types")

    def __init__(self, kind: str, payload: Any, args: tuple[Formula, ...], types: int) -> None:
        self.kind = kind
        self.payload = payload
        self.args = args
        self.types = types

    def __repr__(self) -> str:
        if self.kind in ("atom", "local"):
            return f"{self.kind}({self.payload.pointer or '#'})"
        if self.kind in ("values", "types"):
            return f"{self.kind}({self.payload!r})"
        return f"{self.kind}({', '.join(map(repr, self.args))})"


class Formulas:
    """The table of formulas of one compilation."""

    def __init__(self) -> None:
        self._interned: dict[Any, Formula] = {}
        self._negations: dict[Formula, Formula] = {}
        self._both: dict[tuple[Formula, Formula], Formula] = {}
        self.true = self.types(ANYTHING)
        self.false = self.types(0)

    def __len__(self) -> int:
        return len(self._interned)

    def types(self, bits: int) -> Formula:
        found = self._interned.get(bits)
        if found is None:
            found = self._interned[bits] = Formula("types", bits, (), bits)
        return found

    def values(self, values: frozenset[Value]) -> Formula:
        if not values:
            return self.false
        key = ("values", values)
        found = self._interned.get(key)
        if found is None:
            bits = 0
            for value in values:
                bits |= type_bit(value)
            found = self._interned[key] = Formula("values", values, (), bits)
        return found

    def local(self, node: Node, types: int) -> Formula:
        """What a node's own keywords say, without its in-place applicators."""
        found = self._interned.get(node)
        if found is None:
            found = self._interned[node] = Formula("local", node, (), types)
        return found

    def not_(self, formula: Formula) -> Formula:
        if formula.kind == "later":  # a negation gives names no place
            formula = formula.args[0]
        found = self._negations.get(formula)
        if found is None:
            found = self._negate(formula)
            self._negations[formula] = found
            self._negations[found] = formula
        return found

    def _negate(self, formula: Formula) -> Formula:
        kind = formula.kind
        if kind == "types":
            return self.types(ANYTHING & ~formula.payload)
        if kind == "and":
            return self.or_([self.not_(arg) for arg in formula.args])
        if kind in ("or", "any", "cases"):
            return self.and_([self.not_(arg) for arg in formula.args])
        return Formula("not", None, (formula,), ANYTHING)

    def both(self, a: Formula, b: Formula) -> Formula:
        """The conjunction of two, remembered."""
        if a is b or b is self.true:
            return a
        if a is self.true:
            return b
        found = self._both.get((a, b))
        if found is None:
            found = self._both[a, b] = self.and_((a, b))
        return found

    def and_(self, args: Iterable[Formula]) -> Formula:
        """The conjunction, arguments kept in order (it decides the order of properties)."""
        parts: dict[Formula, None] = {}
        types = ANYTHING
        bits = ANYTHING
        values: frozenset[Value] | None = None
        for arg in args:
            for part in arg.args if arg.kind == "and" else (arg,):
                if part in parts:
                    continue
                types &= part.types
                if part.kind == "types":
                    bits &= part.payload
                elif part.kind == "values":
                    values = part.payload if values is None else values & part.payload
                else:
                    parts[part] = None
        if not types:
            return self.false
        if values is not None:
            values = frozenset([value for value in values if type_bit(value) & types])
            for part in list(parts):
                if part.kind == "not" and part.args[0].kind == "values":
                    values -= part.args[0].payload
                    del parts[part]
            if not values:
                return self.false
            parts = {self.values(values): None, **parts}  # first: constants decide the order of properties
            if types & WHOLE in (PLAIN, POINTED) and any(type_bit(value) == WHOLE for value in values):
                parts[self.types(types)] = None
        elif bits != ANYTHING and any(part.types & ~bits for part in parts):
            parts[self.types(bits)] = None
        elif not parts:
            return self.types(bits)
        if len(parts) == 1:
            return next(iter(parts))
        negations = self._negations
        for part in parts:
            if negations.get(part) in parts:
                return self.false
        absorbed = [part for part in parts if part.kind == "or" and any(option in parts for option in part.args)]
        for part in absorbed:
            del parts[part]
        return self._combine("and", tuple(parts), types)

    def or_(self, args: Iterable[Formula]) -> Formula:
        """The disjunction."""
        parts: dict[Formula, None] = {}
        bits = 0
        types = 0
        values: frozenset[Value] = frozenset()
        for arg in args:
            for part in arg.args if arg.kind == "or" else (arg,):
                types |= part.types
                if part.kind == "types":
                    bits |= part.payload
                elif part.kind == "values":
                    values |= part.payload
                else:
                    parts[part] = None
        if bits == ANYTHING:
            return self.true
        if values:
            values = frozenset([value for value in values if type_bit(value) & ~bits])
            if values:
                parts[self.values(values)] = None
        if bits:
            parts[self.types(bits)] = None
        if not parts:
            return self.false
        if len(parts) == 1:
            return next(iter(parts))
        negations = self._negations
        if any(negations.get(part) in parts for part in parts):
            return self.true
        absorbed = [part for part in parts if part.kind == "and" and any(option in parts for option in part.args)]
        for part in absorbed:
            del parts[part]
        return self._combine("or", tuple(parts), types)

    def later(self, formula: Formula) -> Formula:
        """The same, but the names that it declares come behind those of what stands beside it."""
        return formula if formula.kind in ("types", "values") else self._combine("later", (formula,), formula.types)

    def branches(self, args: Iterable[Formula], kind: str) -> Formula:
        """A disjunction that keeps its branches apart, since each may contribute annotations."""
        parts = tuple(dict.fromkeys([arg for arg in args if arg is not self.false]))
        types = 0
        for part in parts:
            types |= part.types
        return self._combine(kind, parts, types) if parts else self.false

    def _combine(self, kind: str, args: tuple[Formula, ...], types: int) -> Formula:
        if len(args) == 1 and kind != "later":
            return args[0]
        key = (kind, args)
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = Formula(kind, None, args, types)
        return found
