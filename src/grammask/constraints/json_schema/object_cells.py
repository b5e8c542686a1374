"""Objects: cells of conditions that close under intersection and complement.

A cell is a conjunction of

* "every member whose name is in K has a value in F" (properties, patternProperties, additionalProperties,
  propertyNames),
* "some member has a name in K and a value in F", in clauses of alternatives (what the negation of the former yields),
* required names, bounds on the number of members, "if this name is there, so are those".

The complement of each is again of this kind, so a negated cell is a union of cells. The names that ``properties``
declares are kept apart from those that only a negated condition speaks of: the former have an order.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TypeVar

from grammask.constraints.json_schema.formulas import Formula, Formulas
from grammask.constraints.json_schema.keys import Keys, KeySpace, one
from grammask.engine import time_limit

T = TypeVar("T")

Clause = tuple[tuple[Keys, Formula], ...]


class ObjectCell:
    """See the module.

    Attributes:
        props: declared names in their order, with what their values satisfy.
        tests: the same for names that negated conditions speak of.
        foralls: the same for sets of names.
        required: names.
        low, high: how many members.
        clauses: of each, at least one alternative is fulfilled by some member.
        implied: (name, those that must be there if it is).
        evaluated: the names that annotations of this cell cover (for unevaluatedProperties).
        demanded: those of the required names that no ``required`` lists: that gives them no place in the order.
        later: those of the declared names, the last ones, that only conditions (``if``, ``dependentSchemas``) declare.
        constant: whether this is one object, whose names keep its order.
    """

    __slots__ = (
        "clauses",
        "constant",
        "demanded",
        "evaluated",
        "foralls",
        "high",
        "implied",
        "later",
        "low",
        "props",
        "required",
        "tests",
    )

    def __init__(
        self,
        props: dict[str, Formula],
        foralls: tuple[tuple[Keys, Formula], ...] = (),
        required: tuple[str, ...] = (),
        low: int = 0,
        high: int | None = None,
        clauses: tuple[Clause, ...] = (),
        implied: tuple[tuple[str, tuple[str, ...]], ...] = (),
        evaluated: Keys | None = None,
        tests: dict[str, Formula] | None = None,
        demanded: frozenset[str] = frozenset(),
        later: frozenset[str] = frozenset(),
        constant: bool = False,
    ) -> None:
        self.props = props
        self.tests = tests or {}
        self.foralls = foralls
        self.required = required
        self.low = low
        self.high = high
        self.clauses = clauses
        self.implied = implied
        self.evaluated = evaluated
        self.demanded = demanded
        self.later = later
        self.constant = constant

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two cells equal."""
        return (
            tuple(self.props.items()),
            tuple(self.tests.items()),
            self.foralls,
            self.required,
            self.low,
            self.high,
            self.clauses,
            self.implied,
            self.evaluated,
            self.demanded,
            self.later,
            self.constant,
        )

    def __copy__(self) -> ObjectCell:
        """For ``copy``, which cannot look into compiled classes."""
        return ObjectCell(
            self.props,
            self.foralls,
            self.required,
            self.low,
            self.high,
            self.clauses,
            self.implied,
            self.evaluated,
            self.tests,
            self.demanded,
            self.later,
            self.constant,
        )

    def with_evaluated(self, evaluated: Keys | None) -> ObjectCell:
        cell = copy(self)
        cell.evaluated = evaluated
        return cell

    def with_names_later(self) -> ObjectCell:
        """The same cell with all declared names behind those that another cell declares."""
        if self.constant or len(self.later) == len(self.props):
            return self
        cell = copy(self)
        cell.later = frozenset(self.props)
        return cell

    def listed(self) -> list[str]:
        """The names that some ``required`` lists."""
        return [name for name in self.required if name not in self.demanded]


ANY = ObjectCell({})


class ObjectAlgebra:
    """Operations on cells that need the tables of formulas and keys."""

    def __init__(self, formulas: Formulas, keys: KeySpace) -> None:
        self._formulas = formulas
        self._keys = keys

    def value_of(self, cell: ObjectCell, name: str) -> Formula:
        """What the value of a member must satisfy."""
        value = cell.props.get(name, self._formulas.true)
        if name in cell.tests:
            value = self._formulas.both(value, cell.tests[name])
        for keys, formula in cell.foralls:
            if self._keys.contains(keys, name):
                value = self._formulas.both(value, formula)
        return value

    def meet(self, a: ObjectCell, b: ObjectCell) -> ObjectCell | None:
        """Both cells at once; None where that is impossible for a reason that lies in the cell itself."""
        if a is ANY:
            return b
        if b is ANY:
            return a
        if b.constant:
            a, b = b, a
        evaluated = a.evaluated if b.evaluated is None else b.evaluated
        if a.evaluated is not None and b.evaluated is not None:
            evaluated = a.evaluated.union(b.evaluated)
        demanded = a.demanded | b.demanded
        if demanded:
            demanded -= {*a.listed(), *b.listed()}
        props, later = self._merged(a.props, b.props), a.later | b.later
        if later:
            first = [name for cell in (a, b) for name in cell.props if name not in cell.later]
            later -= set(first)
            props = {name: props[name] for name in (*first, *props)}
        highs = [high for high in (a.high, b.high) if high is not None]
        return self.simplify(
            ObjectCell(
                props,
                unique([*a.foralls, *b.foralls]),
                unique([*a.required, *b.required]),
                max(a.low, b.low),
                min(highs) if highs else None,
                unique([*a.clauses, *b.clauses]),
                unique([*a.implied, *b.implied]),
                evaluated,
                self._merged(a.tests, b.tests),
                demanded,
                later,
                a.constant,
            )
        )

    def _merged(self, a: dict[str, Formula], b: dict[str, Formula]) -> dict[str, Formula]:
        if not b:
            return a
        merged = dict(a)
        for name, formula in b.items():
            known = merged.get(name)
            merged[name] = formula if known is None else self._formulas.both(known, formula)
        return merged

    def simplify(self, cell: ObjectCell) -> ObjectCell | None:
        """Turns one-way clauses into required names, drops what already holds, and sees plain contradictions."""
        false = self._formulas.false
        tests, required, demanded = cell.tests, cell.required, cell.demanded
        clauses: tuple[Clause, ...] = cell.clauses
        if cell.high is not None and max(cell.low, len(required)) > cell.high:
            return None
        for name in required:  # before the clauses, which take longer
            if self.value_of(cell, name) is false:
                return None
        if not clauses and not cell.implied:
            return cell
        if clauses:
            tests = dict(tests)
            kept = []
            time_limit.check()
            for clause in clauses:
                options = [option for option in clause if not self._impossible(cell, *option)]
                if not options:
                    return None
                if any(self._fulfilled(cell, *option) for option in options):
                    continue
                only = only_name(options[0][0])
                if len(options) == 1 and only is not None:
                    tests[only] = self._formulas.both(tests.get(only, self._formulas.true), options[0][1])
                    if only not in required:
                        required, demanded = (*required, only), demanded | {only}
                else:
                    kept.append(tuple(options))
            clauses = unique(kept)
        for name, others in cell.implied:
            if name in required:
                demanded = demanded.union([other for other in others if other not in required])
                required = unique([*required, *others])
        result = ObjectCell(
            cell.props,
            cell.foralls,
            required,
            cell.low,
            cell.high,
            clauses,
            cell.implied,
            cell.evaluated,
            tests,
            demanded,
            cell.later,
            cell.constant,
        )
        for name in required:
            if self.value_of(result, name) is false:
                return None
        if cell.high is not None and max(cell.low, len(required)) > cell.high:
            return None
        return result

    def _impossible(self, cell: ObjectCell, keys: Keys, formula: Formula) -> bool:
        name = only_name(keys)
        if name is None:
            return keys in [k for k, f in cell.foralls if f is self._formulas.false]
        return self._formulas.both(self.value_of(cell, name), formula) is self._formulas.false

    def _fulfilled(self, cell: ObjectCell, keys: Keys, formula: Formula) -> bool:
        name = only_name(keys)
        if name is None or name not in cell.required:
            return False
        value = self.value_of(cell, name)
        return formula is self._formulas.true or self._formulas.both(value, formula) is value

    def negate(self, cell: ObjectCell) -> list[ObjectCell]:
        """Cells whose union is the complement (among objects)."""
        not_ = self._formulas.not_
        false = self._formulas.false
        values = self._merged(cell.props, cell.tests)
        if len(cell.required) == 1 and values.keys() <= set(cell.required) and not cell.foralls:
            # "absent, or with another value" is one condition on the values of that name.
            name = cell.required[0]
            rest = ObjectCell({}, (), (), cell.low, cell.high, cell.clauses, cell.implied)
            return [ObjectCell({}, tests={name: not_(values.get(name, self._formulas.true))}), *self.negate(rest)]
        clause: list[tuple[Keys, Formula]] = []
        for name, formula in values.items():
            if not_(formula) is not false:
                clause.append((one(name), not_(formula)))
        for keys, formula in cell.foralls:
            if not_(formula) is not false:
                clause.append((keys, not_(formula)))
        cells = []
        if clause:
            simple = self.simplify(ObjectCell({}, clauses=(tuple(clause),)))
            if simple is not None:
                cells.append(simple)
        cells.extend([ObjectCell({}, tests={name: false}) for name in cell.required])
        if cell.low > 0:
            cells.append(ObjectCell({}, high=cell.low - 1))
        if cell.high is not None:
            cells.append(ObjectCell({}, low=cell.high + 1))
        for alternatives in cell.clauses:
            cells.append(ObjectCell({}, foralls=tuple([(keys, not_(formula)) for keys, formula in alternatives])))
        for name, others in cell.implied:
            for other in others:
                if other != name:
                    cells.append(ObjectCell({}, required=(name,), tests={other: false}, demanded=frozenset((name,))))
        return cells


def only_name(keys: Keys) -> str | None:
    if len(keys.names) == 1 and not keys.families and not keys.negated:
        return next(iter(keys.names))
    return None


def unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
