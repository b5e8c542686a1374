"""Arrays: cells of conditions that close under intersection and complement, and their layouts.

A cell is a conjunction of

* a formula for each of the first positions and one for all later ones (prefixItems, items, additionalItems),
* bounds on the length,
* "between n and m of the items from position p on satisfy F" (contains, minContains, maxContains),
* clauses: "item p satisfies F" or "some item from p on satisfies F" or ... (what the negation of the first yields),
* pairwise different items, or two items that are equal.

All complements are of this kind.

A layout says which values each position may have, and which conditions each value is known to meet. Where items are
compared with each other, the values of all positions are moreover split until they share nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from grammask.constraints.json_schema.formulas import Formula, Formulas
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintTooLarge

MAX_TESTS = 5
"""An item is split by at most this many conditions on counts."""
MAX_KINDS = 64
"""Items that are counted and compared are of at most this many kinds."""
MAX_PREFIX = 20_000
FEWER_ITEMS = "describe items that far back like all others"


class Count(NamedTuple):
    """Between low and high of the items from position start on satisfy the formula."""

    start: int
    formula: Formula
    low: int
    high: int | None


class Option(NamedTuple):
    """The item at a position (or, with later, some item from there on) satisfies the formula."""

    position: int
    later: bool
    formula: Formula


class ArrayCell:
    """See the module.

    Attributes:
        unique, repeats: the pointer of the ``uniqueItems`` that asks for different items, or for two equal ones.
        evaluated: (items covered by annotations, None for all; values covered anywhere).
    """

    __slots__ = ("clauses", "counts", "evaluated", "high", "low", "prefix", "repeats", "rest", "unique")

    def __init__(
        self,
        prefix: tuple[Formula, ...],
        rest: Formula,
        low: int = 0,
        high: int | None = None,
        counts: tuple[Count, ...] = (),
        clauses: tuple[tuple[Option, ...], ...] = (),
        unique: str | None = None,
        evaluated: tuple[int | None, Formula] | None = None,
        repeats: str | None = None,
    ) -> None:
        self.prefix = prefix
        self.repeats = repeats
        self.rest = rest
        self.low = low
        self.high = high
        self.counts = counts
        self.clauses = clauses
        self.unique = unique
        self.evaluated = evaluated

    @property
    def key(self) -> tuple[object, ...]:
        return (
            self.prefix,
            self.rest,
            self.low,
            self.high,
            self.counts,
            self.clauses,
            self.unique,
            self.evaluated,
            self.repeats,
        )

    def with_evaluated(self, evaluated: tuple[int | None, Formula] | None) -> ArrayCell:
        rest = (self.low, self.high, self.counts, self.clauses, self.unique)
        return ArrayCell(self.prefix, self.rest, *rest, evaluated, self.repeats)

    def at(self, position: int) -> Formula:
        return self.prefix[position] if position < len(self.prefix) else self.rest


class ArrayAlgebra:
    """Operations on cells that need the table of formulas."""

    def __init__(self, formulas: Formulas) -> None:
        self._formulas = formulas
        self.any = ArrayCell((), formulas.true)

    def meet(self, a: ArrayCell, b: ArrayCell) -> ArrayCell | None:
        """Both cells at once; None where that is impossible for a reason that lies in the cell itself."""
        if a is self.any:
            return b
        if b is self.any:
            return a
        formulas = self._formulas
        width = max(len(a.prefix), len(b.prefix))
        evaluated = a.evaluated if b.evaluated is None else b.evaluated
        if a.evaluated is not None and b.evaluated is not None:
            ends = (a.evaluated[0], b.evaluated[0])
            evaluated = (
                None if None in ends else max(end for end in ends if end is not None),
                formulas.or_([a.evaluated[1], b.evaluated[1]]),
            )
        if (a.unique and b.repeats) or (a.repeats and b.unique):
            return None
        highs = [high for high in (a.high, b.high) if high is not None]
        return self.simplify(
            ArrayCell(
                tuple([formulas.and_([a.at(i), b.at(i)]) for i in range(width)]),
                formulas.and_([a.rest, b.rest]),
                max(a.low, b.low),
                min(highs) if highs else None,
                tuple(dict.fromkeys([*a.counts, *b.counts])),
                tuple(dict.fromkeys([*a.clauses, *b.clauses])),
                a.unique or b.unique,
                evaluated,
                a.repeats or b.repeats,
            )
        )

    def simplify(self, cell: ArrayCell) -> ArrayCell | None:
        """Turns one-way clauses into item conditions and counts, and sees plain contradictions."""
        formulas = self._formulas
        prefix = list(cell.prefix)
        low, high = cell.low, cell.high
        counts = list(cell.counts)
        kept: list[tuple[Option, ...]] = []
        for clause in cell.clauses:
            time_limit.check()
            options = tuple(
                [
                    option
                    for option in clause
                    if not (high is not None and option.position >= high)
                    and (
                        option.later or formulas.and_([cell.at(option.position), option.formula]) is not formulas.false
                    )
                    and not (
                        option.later
                        and option.position >= len(cell.prefix)
                        and formulas.and_([cell.rest, option.formula]) is formulas.false
                    )
                ]
            )
            if not options:
                return None
            if len(options) > 1:
                kept.append(options)
            elif options[0].later:
                counts.append(Count(options[0].position, options[0].formula, 1, None))
            else:
                position = options[0].position
                if position >= MAX_PREFIX:
                    raise ConstraintTooLarge(f"a condition on item {position} alone", hint=FEWER_ITEMS)
                while len(prefix) <= position:
                    prefix.append(cell.rest)
                prefix[position] = formulas.and_([prefix[position], options[0].formula])
                low = max(low, position + 1)
        rest = cell.rest
        remaining = []
        for count in counts:
            if count.high is not None and count.low > count.high:
                return None
            if count.formula is formulas.true:
                low = max(low, count.start + count.low if count.low else 0)
                if count.high is not None:
                    high = count.start + count.high if high is None else min(high, count.start + count.high)
            elif count.low == 0 and count.high is None:
                continue
            elif count.formula is formulas.false:
                if count.low:
                    return None
            elif count.high == 0 and count.start <= MAX_PREFIX:
                if count.low:
                    return None
                excluded = formulas.not_(count.formula)
                prefix += [rest] * (count.start - len(prefix))
                prefix[count.start :] = [formulas.and_([item, excluded]) for item in prefix[count.start :]]
                rest = formulas.and_([rest, excluded])
            else:
                remaining.append(count)
                if count.low:
                    low = max(low, count.start + count.low)
        for position, formula in enumerate(prefix):
            if formula is formulas.false:
                high = position if high is None else min(high, position)
                del prefix[position:]
                break
        if rest is formulas.false and (high is None or high > len(prefix)):
            high = len(prefix)
        if high is not None and low > high:
            return None
        if cell.repeats:
            low = max(low, 2)
            if high is not None and high < 2:
                return None
        unique = cell.unique if high is None or high > 1 else None
        return ArrayCell(
            tuple(prefix), rest, low, high, tuple(remaining), tuple(kept), unique, cell.evaluated, cell.repeats
        )

    def negate(self, cell: ArrayCell) -> list[ArrayCell]:
        """Cells whose union is the complement (among arrays)."""
        not_, true = self._formulas.not_, self._formulas.true
        cells = []
        clause = [Option(i, False, not_(formula)) for i, formula in enumerate(cell.prefix) if formula is not true]
        if cell.rest is not true:
            clause.append(Option(len(cell.prefix), True, not_(cell.rest)))
        if clause:
            simple = self.simplify(ArrayCell((), true, clauses=(tuple(clause),)))
            if simple is not None:
                cells.append(simple)
        if cell.low > 0:
            cells.append(ArrayCell((), true, high=cell.low - 1))
        if cell.high is not None:
            cells.append(ArrayCell((), true, low=cell.high + 1))
        for count in cell.counts:
            if count.low > 0:
                cells.append(ArrayCell((), true, counts=(count._replace(low=0, high=count.low - 1),)))
            if count.high is not None:
                cells.append(ArrayCell((), true, counts=(count._replace(low=count.high + 1, high=None),)))
        for options in cell.clauses:
            counts = []
            prefix: list[Formula] = []
            for option in options:
                if option.later:
                    counts.append(Count(option.position, option.formula, 0, 0))
                else:
                    prefix += [true] * (option.position + 1 - len(prefix))
                    prefix[option.position] = self._formulas.and_([prefix[option.position], not_(option.formula)])
            cells.append(ArrayCell(tuple(prefix), true, counts=tuple(counts)))
        if cell.unique is not None:
            cells.append(ArrayCell((), true, repeats=cell.unique))
        if cell.repeats is not None:
            cells.append(ArrayCell((), true, unique=cell.repeats))
        found = [self.simplify(option) for option in cells]
        return [option for option in found if option is not None]


class Letters(NamedTuple):
    """The values an item may have, each with the tests that it is known to pass."""

    values: tuple[tuple[Formula, frozenset[int]], ...]


class ArrayLayout(NamedTuple):
    """What an array expression is built from.

    Attributes:
        prefix, rest: the letters of the first positions and of all later ones (none: no later item).
        low, high: bounds on the length.
        counts: (test, start, low, high): so many of the items from start on pass the test.
        clauses: alternatives (test, position, later).
        unique, repeats: pointer of the ``uniqueItems`` that asks for different items or two equal ones, or None.
    """

    prefix: tuple[Letters, ...]
    rest: Letters
    low: int
    high: int | None
    counts: tuple[tuple[int, int, int, int | None], ...]
    clauses: tuple[tuple[tuple[int, int, bool], ...], ...]
    unique: str | None
    repeats: str | None

    @property
    def has_kinds(self) -> bool:
        """Whether items are compared and more is asked for than that they differ: then their values share nothing."""
        return self.repeats is not None or (self.unique is not None and bool(self.counts or self.clauses))

    def children(self) -> Iterable[Formula]:
        for letters in (*self.prefix, self.rest):
            for formula, _ in letters.values:
                yield formula


def layout(cell: ArrayCell, formulas: Formulas, algebra: ArrayAlgebra) -> ArrayLayout | None:
    """The layout of a cell; None when no array fits for a reason that shows without looking into items."""
    simple = algebra.simplify(cell)
    if simple is None:
        return None
    cell = simple
    tests: list[tuple[Formula, bool]] = []  # (formula, both sides must be known)
    counts = []
    for count in cell.counts:
        counts.append((len(tests), count.start, count.low, count.high))
        tests.append((count.formula, count.high is not None))
    clauses = []
    for clause in cell.clauses:
        options = []
        for option in clause:
            options.append((len(tests), option.position, option.later))
            tests.append((option.formula, False))
        clauses.append(tuple(options))
    width = len(cell.prefix)
    if tests:
        starts = [start for _, start, _, _ in counts]
        starts += [position + (not later) for clause in clauses for _, position, later in clause]
        width = max([width, *starts])
        if width > MAX_PREFIX:
            raise ConstraintTooLarge(f"conditions on the first {width} items", hint=FEWER_ITEMS)
    if cell.repeats is not None or (cell.unique is not None and tests):
        prefix, rest = _by_kinds([cell.at(position) for position in range(width + 1)], tests, formulas)
        return ArrayLayout(prefix, rest, cell.low, cell.high, tuple(counts), tuple(clauses), cell.unique, cell.repeats)
    places = []
    for position in range(width):
        relevant = [test for test, start, _, _ in counts if position >= start]
        relevant += [
            test for clause in clauses for test, at, later in clause if (position >= at if later else position == at)
        ]
        places.append(_letters(cell.at(position), relevant, tests, formulas))
    relevant = [test for test, _, _, _ in counts] + [test for clause in clauses for test, _, later in clause if later]
    rest = _letters(cell.rest, relevant, tests, formulas)
    return ArrayLayout(tuple(places), rest, cell.low, cell.high, tuple(counts), tuple(clauses), cell.unique, None)


def _letters(
    base: Formula, relevant: Sequence[int], tests: Sequence[tuple[Formula, bool]], formulas: Formulas
) -> Letters:
    """The values at a position, split by the tests.

    A test with an upper bound splits into the values that pass and those that do not. A test with a lower bound only
    needs to know values that pass: the unsplit value stands beside them.
    """
    if base is formulas.false:
        return Letters(())
    if not relevant:
        return Letters(((base, frozenset()),))
    if len(relevant) > MAX_TESTS:
        raise ConstraintTooLarge(
            f"an array with more than {MAX_TESTS} conditions on how many items satisfy a schema",
            hint="state fewer of them in contains, or constrain items by their position",
        )
    found: dict[Formula, frozenset[int]] = {}
    for size in range(len(relevant) + 1):
        for chosen in combinations(relevant, size):
            parts = [base]
            for test in relevant:
                formula, exact = tests[test]
                if test in chosen:
                    parts.append(formula)
                elif exact:
                    parts.append(formulas.not_(formula))
            value = formulas.and_(parts)
            if value is not formulas.false:
                found[value] = found.get(value, frozenset()) | frozenset(chosen)
    return Letters(tuple(found.items()))


def _by_kinds(
    bases: Sequence[Formula], tests: Sequence[tuple[Formula, bool]], formulas: Formulas
) -> tuple[tuple[Letters, ...], Letters]:
    """The values at each position and at all later ones (the last base), such that no value is of two kinds."""
    if len(tests) > MAX_TESTS:
        raise ConstraintTooLarge(f"an array with more than {MAX_TESTS} conditions on how many items satisfy a schema")
    distinct = dict.fromkeys(bases)
    kinds = _split([(formulas.true, frozenset())], distinct, formulas)
    kinds = [(kind, holding) for kind, holding in kinds if not holding.isdisjoint(distinct)]
    kinds = _split(kinds, [formula for formula, _ in tests], formulas)
    places = {}
    for base in distinct:
        values = [
            (kind, frozenset([test for test, (formula, _) in enumerate(tests) if formula in holding]))
            for kind, holding in kinds
            if base in holding
        ]
        places[base] = Letters(tuple(values))
    return tuple([places[base] for base in bases[:-1]]), places[bases[-1]]


def _split(
    kinds: list[tuple[Formula, frozenset[Formula]]], by: Iterable[Formula], formulas: Formulas
) -> list[tuple[Formula, frozenset[Formula]]]:
    """Kinds, each with the formulas that hold of it, split by further formulas."""
    for formula in dict.fromkeys(by):
        parts = [(formulas.and_([kind, formula]), holding | {formula}) for kind, holding in kinds]
        parts += [(formulas.and_([kind, formulas.not_(formula)]), holding) for kind, holding in kinds]
        kinds = [(kind, holding) for kind, holding in parts if kind is not formulas.false]
        if len(kinds) > MAX_KINDS:
            raise ConstraintTooLarge(
                f"items of more than {MAX_KINDS} kinds, which must differ (or two be equal) and are counted",
                hint="drop uniqueItems or the counts, or let fewer positions have schemas of their own",
            )
    return kinds
