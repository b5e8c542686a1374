"""Object frames: the cells of ``object_cells`` as what the core's object frame is built from."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from grammask.constraints.json_schema.formulas import Formula, Formulas
from grammask.constraints.json_schema.keys import Keys, KeySpace, one
from grammask.constraints.json_schema.object_cells import ObjectAlgebra, ObjectCell, only_name
from grammask.constraints.json_schema.strings import is_spellable
from grammask.constraints.json_schema.values import Value
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Expr

MAX_OBLIGATIONS = 32
MAX_SPLIT = 8
"""A member's value is split by at most this many conditions, of which some member must fulfil each."""
COMFORTABLE_SPLIT = 2
"""Above this, an object is first told apart by the constants of one of its properties."""
MAX_FRAMES = 500


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


def frames(
    cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra, keys: KeySpace, *, ordered: bool = False
) -> list[ObjectFrame]:
    """The frames whose union is a cell; none when no object fits for a reason that shows without looking into values.

    ordered: members are to come in the order of the frame. Names that only conditions speak of are then families, since
        they have no place in that order.

    Raises:
        ConstraintTooLarge: too many conditions of which some member must fulfil each.
    """
    if cell.high is not None and cell.low > cell.high:
        return []
    if not (cell.clauses or cell.tests or cell.implied) and len(cell.foralls) < 2:
        others = _others(cell, formulas)
        if others is not None:
            plain = _plain_frame(cell, others, formulas, keys)
            return [] if plain is None else [plain]
    found: list[ObjectFrame] = []
    waiting = [cell] if cell.high is None or not cell.implied else _spelled_out(cell, formulas, algebra)
    while waiting:
        time_limit.check()
        part = waiting.pop()
        if len(part.clauses) < 2:
            single = _frame(part, formulas, algebra, keys, MAX_SPLIT, ordered)
        else:
            try:
                single = _frame(part, formulas, algebra, keys, COMFORTABLE_SPLIT, ordered)
            except ConstraintTooLarge:
                parts = _told_apart(part, formulas, algebra)
                if parts is not None:
                    waiting += parts
                    if len(waiting) + len(found) > MAX_FRAMES:
                        raise
                    continue
                single = _frame(part, formulas, algebra, keys, MAX_SPLIT, ordered)
        if single is not None:
            found.append(single)
    return found


def _spelled_out(cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra) -> list[ObjectCell]:
    """The cell cut by which of the names that ask for others are there.

    A frame cannot follow such names and have a greatest number of members at once.
    """
    whole = copy(cell)
    whole.implied = ()
    mentioned = [*cell.listed(), *[name for implied in cell.implied for name in (implied[0], *implied[1])]]
    more = {name: formulas.true for name in mentioned if name not in cell.props}
    whole.props, whole.later = {**cell.props, **more}, cell.later.union(more)
    parts = [whole]
    for name, others in cell.implied:
        without = ObjectCell({}, tests={name: formulas.false})
        with_others = ObjectCell({}, required=(name, *others))
        cut = [algebra.meet(part, option) for part in parts for option in (without, with_others)]
        parts = [part for part in cut if part is not None]
        if len(parts) > MAX_FRAMES:
            raise ConstraintTooLarge(
                f"maxProperties beside dependentRequired, which leave more than {MAX_FRAMES} cases",
                hint="drop one of the two",
            )
    return parts


def _others(cell: ObjectCell, formulas: Formulas) -> Formula | None:
    """The value of every name that is not declared, if one formula says it; None if names are told apart further."""
    if not cell.foralls:
        return formulas.true
    listed, formula = cell.foralls[0]
    if listed.negated and not listed.families and listed.names == cell.props.keys():
        return formula
    return None


def _plain_frame(cell: ObjectCell, others: Formula, formulas: Formulas, keys: KeySpace) -> ObjectFrame | None:
    """The frame of declared names and one value for all others; None when no object fits."""
    false = formulas.false
    props, required = cell.props, cell.required
    if cell.high is not None and max(cell.low, len(required)) > cell.high:
        return None
    members = []
    needed = frozenset(required)
    for name, value in props.items():
        if value is not false and (name.isascii() or is_spellable(name)):
            members.append(Member(name, None, name in needed, ((value, 0),)))
        elif name in needed:
            return None
    names = list(props)
    for name in required:
        if name not in props:
            if others is false or not is_spellable(name):
                return None
            names.append(name)
            members.append(Member(name, None, True, ((others, 0),)))
    if others is not false:
        members.append(Member(None, keys.without(keys.every, names), False, ((others, 0),)))
    return ObjectFrame(tuple(members), cell.low, cell.high, 0, ())


def _told_apart(cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra) -> list[ObjectCell] | None:
    """The cell cut along the constants of the property that settles most clauses; None if no property settles any."""
    tests: dict[str, dict[int, Formula]] = {}
    for bit, clause in enumerate(cell.clauses):
        for listed, formula in clause:
            name = only_name(listed)
            if name is not None and _is_flat(formula):
                tests.setdefault(name, {})[bit] = formula
    if not tests:
        return None
    name = max(tests, key=lambda candidate: len(tests[candidate]))
    flat: dict[Formula, int] = {}
    for bit, formula in tests[name].items():
        flat[formula] = flat.get(formula, 0) | 1 << bit
    base = algebra.value_of(cell, name)
    options = [
        ObjectCell({}, required=(name,), tests={name: part}, demanded=frozenset((name,)))
        for part, _ in _split_flat(base, flat, formulas)
    ]
    if name not in cell.required:
        options.append(ObjectCell({}, tests={name: formulas.false}))
    parts = [algebra.meet(cell, option) for option in options]
    kept = [part for part in parts if part is not None]
    return kept if all(len(part.clauses) < len(cell.clauses) for part in kept) else None


def _frame(
    cell: ObjectCell, formulas: Formulas, algebra: ObjectAlgebra, keys: KeySpace, max_split: int, ordered: bool
) -> ObjectFrame | None:
    simple = algebra.simplify(cell) if cell.clauses or cell.implied or cell.required else cell
    if simple is None:
        return None
    cell = simple
    false = formulas.false
    names: dict[str, None] = dict.fromkeys(cell.props)
    names.update(dict.fromkeys(cell.listed() if ordered else cell.required))
    for name, others in cell.implied:
        names.update(dict.fromkeys([name, *others]))
    declared = len(names) if ordered else None
    # A demanded name without a place in the order is an obligation: one of the others must have it.
    clauses = [*cell.clauses, *[((one(name), formulas.true),) for name in cell.required if name not in names]]
    names.update(dict.fromkeys(cell.tests))
    families: frozenset[object] = frozenset()
    mentioned = [*cell.foralls, *[option for clause in clauses for option in clause]]
    for listed, _ in mentioned:
        if listed.families:
            families |= listed.families
        names.update(dict.fromkeys(sorted([name for name in listed.names if name not in names])))
    if len(clauses) > MAX_OBLIGATIONS:
        raise ConstraintTooLarge(
            f"an object with more than {MAX_OBLIGATIONS} alternatives to fulfil at once",
            hint="tell alternatives apart by a required property with different constants",
        )
    required = set(cell.required)
    members: list[Member] = []
    places: dict[str, int] = {}
    loose: dict[tuple[tuple[Formula, int], ...], list[str]] = {}
    for position, name in enumerate(names):
        base = algebra.value_of(cell, name)
        if base is false or not (name.isascii() or is_spellable(name)):
            if name in required:
                return None
            continue
        values: tuple[tuple[Formula, int], ...] = ((base, 0),)
        if clauses:
            tests = [
                (bit, formula)
                for bit, clause in enumerate(clauses)
                for listed, formula in clause
                if keys.contains(listed, name)
            ]
            values = _alternatives(base, tests, formulas, max_split)
        if declared is not None and position >= declared:
            loose.setdefault(values, []).append(name)
        else:
            places[name] = len(members)
            members.append(Member(name, None, name in required, values))
    by_value: dict[tuple[tuple[Formula, int], ...], list[Expr]] = {}
    for language, known in keys.partition(families):  # type: ignore[arg-type]
        base = formulas.and_([formula for listed, formula in cell.foralls if _covers(listed, known)])
        if base is false:
            continue
        tests = [
            (bit, formula) for bit, clause in enumerate(clauses) for listed, formula in clause if _covers(listed, known)
        ]
        by_value.setdefault(_alternatives(base, tests, formulas, max_split), []).append(language)
    for values, languages in by_value.items():
        language = keys.without(keys.any_of(languages), list(names))
        if values in loose:
            language = keys.any_of([language, keys.listed(loose.pop(values))])
        members.append(Member(None, language, False, values))
    members += [Member(None, keys.listed(listed), False, values) for values, listed in loose.items()]
    if clauses:
        reachable = 0
        for member in members:
            for _, mask in member.values:
                reachable |= mask
        if reachable != (1 << len(clauses)) - 1:
            return None
    if not cell.implied:
        return ObjectFrame(tuple(members), cell.low, cell.high, len(clauses), ())
    implied = [
        (places[name], tuple([places.get(other, -1) for other in others]))
        for name, others in cell.implied
        if name in places
    ]
    if any(-1 in others for _, others in implied):
        gone = {index for index, others in implied if -1 in others}
        forbidden = {members[index].name: false for index in gone}
        narrowed = copy(cell)
        narrowed.props = {**cell.props, **forbidden}  # type: ignore[dict-item]
        return _frame(narrowed, formulas, algebra, keys, max_split, ordered)
    return ObjectFrame(tuple(members), cell.low, cell.high, len(clauses), tuple(implied))


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
        time_limit.check()
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
