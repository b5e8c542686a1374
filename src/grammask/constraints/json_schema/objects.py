"""Objects: cells of conditions that close under intersection and complement, and their frames.

A cell is a conjunction of

* "every member whose name is in K has a value in F" (properties, patternProperties, additionalProperties,
propertyNames),
* "some member has a name in K and a value in F", in clauses of alternatives (what the negation of the former yields),
* required names, bounds on the number of members, "if this name is there, so are those".

The complement of each is again of this kind, so a negated cell is a union of cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from grammask.constraints.json_schema.formulas import Formula, Formulas
from grammask.constraints.json_schema.keys import Keys, KeySpace, one
from grammask.constraints.json_schema.strings import is_spellable
from grammask.constraints.json_schema.values import Value
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Expr

T = TypeVar("T")

Clause = tuple[tuple[Keys, Formula], ...]

MAX_OBLIGATIONS = 32
MAX_SPLIT = 8
"""A member's value is split by at most this many conditions, of which some member must fulfil each."""
COMFORTABLE_SPLIT = 2
"""Above this, an object is first told apart by the constants of one of its properties."""
MAX_FRAMES = 500


class ObjectCell:
    """See the module. ``evaluated`` are the names that annotations of this cell cover (for unevaluatedProperties)."""

    __slots__ = ("clauses", "evaluated", "foralls", "high", "implied", "low", "props", "required")

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
    ) -> None:
        self.props = props
        self.foralls = foralls
        self.required = required
        self.low = low
        self.high = high
        self.clauses = clauses
        self.implied = implied
        self.evaluated = evaluated

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two cells equal."""
        return (
            tuple(self.props.items()),
            self.foralls,
            self.required,
            self.low,
            self.high,
            self.clauses,
            self.implied,
            self.evaluated,
        )

    def with_evaluated(self, evaluated: Keys | None) -> ObjectCell:
        return ObjectCell(
            self.props, self.foralls, self.required, self.low, self.high, self.clauses, self.implied, evaluated
        )


ANY = ObjectCell({})


class ObjectAlgebra:
    """Operations on cells that need the tables of formulas and keys."""

    def __init__(self, formulas: Formulas, keys: KeySpace) -> None:
        self._formulas = formulas
        self._keys = keys

    def value_of(self, cell: ObjectCell, name: str) -> Formula:
        """What the value of a member must satisfy."""
        value = cell.props.get(name, self._formulas.true)
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
        props = dict(a.props)
        for name, formula in b.props.items():
            known = props.get(name)
            props[name] = formula if known is None else self._formulas.both(known, formula)
        evaluated = a.evaluated if b.evaluated is None else b.evaluated
        if a.evaluated is not None and b.evaluated is not None:
            evaluated = a.evaluated.union(b.evaluated)
        highs = [high for high in (a.high, b.high) if high is not None]
        return self.simplify(
            ObjectCell(
                props,
                _unique([*a.foralls, *b.foralls]),
                _unique([*a.required, *b.required]),
                max(a.low, b.low),
                min(highs) if highs else None,
                _unique([*a.clauses, *b.clauses]),
                _unique([*a.implied, *b.implied]),
                evaluated,
            )
        )

    def simplify(self, cell: ObjectCell) -> ObjectCell | None:
        """Turns one-way clauses into required names, drops what already holds, and sees plain contradictions."""
        false = self._formulas.false
        props, required = cell.props, cell.required
        clauses: tuple[Clause, ...] = cell.clauses
        if cell.high is not None and max(cell.low, len(required)) > cell.high:
            return None
        for name in required:  # before the clauses, which take longer
            if self.value_of(cell, name) is false:
                return None
        if clauses:
            props = dict(props)
            kept = []
            for clause in clauses:
                options = [option for option in clause if not self._impossible(cell, *option)]
                if not options:
                    return None
                if any(self._fulfilled(cell, *option) for option in options):
                    continue
                only = _only_name(options[0][0])
                if len(options) == 1 and only is not None:
                    props[only] = self._formulas.both(props.get(only, self._formulas.true), options[0][1])
                    required = _unique([*required, only])
                else:
                    kept.append(tuple(options))
            clauses = _unique(kept)
        for name, others in cell.implied:
            if name in required:
                required = _unique([*required, *others])
        result = ObjectCell(props, cell.foralls, required, cell.low, cell.high, clauses, cell.implied, cell.evaluated)
        for name in required:
            if self.value_of(result, name) is false:
                return None
        if cell.high is not None and max(cell.low, len(required)) > cell.high:
            return None
        return result

    def _impossible(self, cell: ObjectCell, keys: Keys, formula: Formula) -> bool:
        name = _only_name(keys)
        if name is None:
            return keys in [k for k, f in cell.foralls if f is self._formulas.false]
        return self._formulas.both(self.value_of(cell, name), formula) is self._formulas.false

    def _fulfilled(self, cell: ObjectCell, keys: Keys, formula: Formula) -> bool:
        name = _only_name(keys)
        if name is None or name not in cell.required:
            return False
        value = self.value_of(cell, name)
        return formula is self._formulas.true or self._formulas.both(value, formula) is value

    def negate(self, cell: ObjectCell) -> list[ObjectCell]:
        """Cells whose union is the complement (among objects)."""
        not_ = self._formulas.not_
        false = self._formulas.false
        if len(cell.required) == 1 and cell.props.keys() <= set(cell.required) and not cell.foralls:
            # "absent, or with another value" is one condition on the values of that name.
            name = cell.required[0]
            rest = ObjectCell({}, (), (), cell.low, cell.high, cell.clauses, cell.implied)
            return [ObjectCell({name: not_(cell.props.get(name, self._formulas.true))}), *self.negate(rest)]
        clause: list[tuple[Keys, Formula]] = []
        for name, formula in cell.props.items():
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
        cells.extend([ObjectCell({name: false}) for name in cell.required])
        if cell.low > 0:
            cells.append(ObjectCell({}, high=cell.low - 1))
        if cell.high is not None:
            cells.append(ObjectCell({}, low=cell.high + 1))
        for alternatives in cell.clauses:
            cells.append(ObjectCell({}, foralls=tuple([(keys, not_(formula)) for keys, formula in alternatives])))
        for name, others in cell.implied:
            cells.extend([ObjectCell({other: false}, required=(name,)) for other in others if other != name])
        return cells


class Member(NamedTuple):
    """A literal name (with its text) or a family (None and its language), and what its values fulfil."""

    name: str | None
    language: Expr | None
    required: bool
    values: tuple[tuple[Formula, int], ...]


class ObjectFrame(NamedTuple):
    """What the core's object frame is built from."""

    members: tuple[Member, ...]
    low: int
    high: int | None
    obligations: int
    implied: tuple[tuple[int, tuple[int, ...]], ...]

    def children(self) -> Iterable[Formula]:
        for member in self.members:
            for formula, _ in member.values:
                yield formula


def frames(cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra, keys: KeySpace) -> list[ObjectFrame]:
    """The frames whose union is a cell; none when no object fits for a reason that shows without looking into values.

    Raises:
        ConstraintTooLarge: too many conditions of which some member must fulfil each.
    """
    found: list[ObjectFrame] = []
    waiting = [cell]
    while waiting:
        part = waiting.pop()
        if len(part.clauses) < 2:
            single = _frame(part, formulas, algebra, keys, MAX_SPLIT)
        else:
            try:
                single = _frame(part, formulas, algebra, keys, COMFORTABLE_SPLIT)
            except ConstraintTooLarge:
                parts = _told_apart(part, formulas, algebra)
                if parts is not None:
                    waiting += parts
                    if len(waiting) + len(found) > MAX_FRAMES:
                        raise
                    continue
                single = _frame(part, formulas, algebra, keys, MAX_SPLIT)
        if single is not None:
            found.append(single)
    return found


def _told_apart(cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra) -> list[ObjectCell] | None:
    """The cell cut along the constants of the property that settles most clauses; None if no property settles any."""
    tests: dict[str, dict[int, Formula]] = {}
    for bit, clause in enumerate(cell.clauses):
        for listed, formula in clause:
            name = _only_name(listed)
            if name is not None and _is_flat(formula):
                tests.setdefault(name, {})[bit] = formula
    if not tests:
        return None
    name = max(tests, key=lambda candidate: len(tests[candidate]))
    flat: dict[Formula, int] = {}
    for bit, formula in tests[name].items():
        flat[formula] = flat.get(formula, 0) | 1 << bit
    base = algebra.value_of(cell, name)
    options = [ObjectCell({name: part}, required=(name,)) for part, _ in _split_flat(base, flat, formulas)]
    if name not in cell.required:
        options.append(ObjectCell({name: formulas.false}))
    parts = [algebra.meet(cell, option) for option in options]
    kept = [part for part in parts if part is not None]
    return kept if all(len(part.clauses) < len(cell.clauses) for part in kept) else None


def _frame(
    cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra, keys: KeySpace, max_split: int
) -> ObjectFrame | None:
    simple = algebra.simplify(cell) if cell.clauses or cell.implied or cell.required else cell
    if simple is None:
        return None
    cell = simple
    false = formulas.false
    names: dict[str, None] = dict.fromkeys(cell.props)
    for name in cell.required:
        names[name] = None
    for name, others in cell.implied:
        names.update(dict.fromkeys([name, *others]))
    families: frozenset[object] = frozenset()
    mentioned = [*cell.foralls, *[option for clause in cell.clauses for option in clause]]
    for listed, _ in mentioned:
        if listed.families:
            families |= listed.families
        if not listed.names <= names.keys():
            names.update(dict.fromkeys(sorted(listed.names - names.keys())))
    if len(cell.clauses) > MAX_OBLIGATIONS:
        raise ConstraintTooLarge(f"an object with more than {MAX_OBLIGATIONS} alternatives to fulfil at once")
    required = set(cell.required)
    members: list[Member] = []
    places: dict[str, int] = {}
    for name in names:
        base = algebra.value_of(cell, name) if cell.foralls else cell.props.get(name, formulas.true)
        if base is false or not is_spellable(name):
            if name in required:
                return None
            continue
        tests = [
            (bit, formula)
            for bit, clause in enumerate(cell.clauses)
            for listed, formula in clause
            if keys.contains(listed, name)
        ]
        places[name] = len(members)
        members.append(Member(name, None, name in required, _alternatives(base, tests, formulas, max_split)))
    by_value: dict[tuple[tuple[Formula, int], ...], list[Expr]] = {}
    for language, known in keys.partition(families):  # type: ignore[arg-type]
        base = formulas.and_([formula for listed, formula in cell.foralls if _covers(listed, known)])
        if base is false:
            continue
        tests = [
            (bit, formula)
            for bit, clause in enumerate(cell.clauses)
            for listed, formula in clause
            if _covers(listed, known)
        ]
        by_value.setdefault(_alternatives(base, tests, formulas, max_split), []).append(language)
    for values, languages in by_value.items():
        language = keys.without(keys.any_of(languages), list(names))
        members.append(Member(None, language, False, values))
    reachable = 0
    for member in members:
        for _, mask in member.values:
            reachable |= mask
    if reachable != (1 << len(cell.clauses)) - 1:
        return None
    implied = [
        (places[name], tuple([places.get(other, -1) for other in others]))
        for name, others in cell.implied
        if name in places
    ]
    if any(-1 in others for _, others in implied):
        gone = {index for index, others in implied if -1 in others}
        forbidden = {members[index].name: false for index in gone}
        narrowed = ObjectCell(
            {**cell.props, **forbidden},  # type: ignore[dict-item]
            cell.foralls,
            cell.required,
            cell.low,
            cell.high,
            cell.clauses,
            cell.implied,
        )
        return _frame(narrowed, formulas, algebra, keys, max_split)
    return ObjectFrame(tuple(members), cell.low, cell.high, len(cell.clauses), tuple(implied))


def _alternatives(
    base: Formula, tests: list[tuple[int, Formula]], formulas: Formulas, max_split: int
) -> tuple[tuple[Formula, int], ...]:
    """The values of a member, by which clauses they fulfil. Alternatives may overlap: a value may fulfil less."""
    if not tests:
        return ((base, 0),)
    merged: dict[int, Formula] = {}
    for bit, formula in tests:
        merged[bit] = formulas.or_([merged[bit], formula]) if bit in merged else formula
    always = 0
    by_formula: dict[Formula, int] = {}
    for bit, formula in merged.items():
        both = formulas.both(base, formula)
        if both is base:
            always |= 1 << bit
        elif both is not formulas.false:
            by_formula[formula] = by_formula.get(formula, 0) | 1 << bit
    found: dict[Formula, int] = {}
    flat = {formula: mask for formula, mask in by_formula.items() if _is_flat(formula)}
    deep = [(formula, mask) for formula, mask in by_formula.items() if formula not in flat]
    if len(deep) > max_split:
        raise ConstraintTooLarge(
            f"a property whose value decides more than {max_split} alternatives at once",
            hint="tell alternatives apart by a required property with different constants",
        )
    for part, known in _split_flat(base, flat, formulas):
        for size in range(len(deep) + 1):
            for chosen in combinations(deep, size):
                value = formulas.and_([part, *[formula for formula, _ in chosen]])
                if value is formulas.false:
                    continue
                mask = always | known
                for _, bits in chosen:
                    mask |= bits
                found[value] = found.get(value, 0) | mask
    return tuple(found.items())


def _is_flat(formula: Formula) -> bool:
    """Whether a formula is about constants alone."""
    return formula.kind == "values" or (formula.kind == "not" and formula.args[0].kind == "values")


def _split_flat(base: Formula, flat: dict[Formula, int], formulas: Formulas) -> list[tuple[Formula, int]]:
    """The base cut into parts by which of the conditions on constants they fulfil; linear in the constants."""
    if not flat:
        return [(base, 0)]
    listed: dict[Value, int] = {}
    others = 0
    for formula in flat:
        for value in formula.payload if formula.kind == "values" else formula.args[0].payload:
            listed[value] = 0
    for formula, mask in flat.items():
        if formula.kind == "values":
            for value in formula.payload:
                listed[value] |= mask
        else:
            others |= mask
            for value in listed.keys() - formula.args[0].payload:
                listed[value] |= mask
    groups: dict[int, set[Value]] = {}
    for value, mask in listed.items():
        groups.setdefault(mask, set()).add(value)
    parts = [(formulas.and_([base, formulas.values(frozenset(group))]), mask) for mask, group in groups.items()]
    rest = formulas.and_([base, formulas.not_(formulas.values(frozenset(listed)))])
    return [(part, mask) for part, mask in [*parts, (rest, others)] if part is not formulas.false]


def _covers(listed: Keys, known: frozenset[object]) -> bool:
    """Whether a class of the partition (not a listed name) lies in a set of keys."""
    return bool(listed.families & known) != listed.negated


def _only_name(keys: Keys) -> str | None:
    if len(keys.names) == 1 and not keys.families and not keys.negated:
        return next(iter(keys.names))
    return None


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
