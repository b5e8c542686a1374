"""Sets of numbers: unions of cells, each an interval with divisors.

All arithmetic is on exact fractions; the core turns a cell into an automaton over decimal digits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from grammask.constraints.json_schema.values import decimal_text, least_common_multiple
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


class NumberCell(NamedTuple):
    """A conjunction of conditions on a number.

    Attributes:
        low, high: bounds, None for none; low_open, high_open: the bound itself is left out.
        divisor: the number is a multiple of it (1: a whole number), None for no condition.
        not_divisors: the number is a multiple of none of them.
        only: the number is one of these, None for no condition.
        never: the number is none of these.
        plain: whether the text has neither a fraction nor an exponent, None for no condition.
    """

    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    divisor: Fraction | None = None
    not_divisors: frozenset[Fraction] = frozenset()
    only: frozenset[Fraction] | None = None
    never: frozenset[Fraction] = frozenset()
    plain: bool | None = None

    def holds(self, x: Fraction) -> bool:
        if self.only is not None and x not in self.only:
            return False
        if self.low is not None and (x <= self.low if self.low_open else x < self.low):
            return False
        if self.high is not None and (x >= self.high if self.high_open else x > self.high):
            return False
        if self.divisor is not None and x % self.divisor:
            return False
        return x not in self.never and all(x % divisor for divisor in self.not_divisors)


ANY = NumberCell()

MAX_CROSSED_DIVISOR = 100_000
"""Multiples beyond this are not combined with a condition on spelling: their automaton has a state per remainder."""
WHOLE = NumberCell(divisor=Fraction(1))
FRACTIONAL = NumberCell(not_divisors=frozenset({Fraction(1)}))
PLAIN = NumberCell(divisor=Fraction(1), plain=True)
POINTED = NumberCell(divisor=Fraction(1), plain=False)


def meet(a: NumberCell, b: NumberCell) -> NumberCell | None:
    """The numbers in both cells, None if there are none (or none for an obvious reason)."""
    if a is ANY or a == b:
        return b
    if b is ANY:
        return a
    low, low_open = a.low, a.low_open
    if b.low is not None and (low is None or b.low > low or (b.low == low and b.low_open)):
        low, low_open = b.low, b.low_open
    high, high_open = a.high, a.high_open
    if b.high is not None and (high is None or b.high < high or (b.high == high and b.high_open)):
        high, high_open = b.high, b.high_open
    divisor = a.divisor if b.divisor is None else b.divisor
    if a.divisor is not None and b.divisor is not None:
        divisor = least_common_multiple(a.divisor, b.divisor)
    plain = a.plain if b.plain is None else b.plain
    if a.plain is not None and b.plain is not None and a.plain != b.plain:
        return None
    only = a.only if b.only is None else b.only
    if a.only is not None and b.only is not None:
        only = a.only & b.only
    cell = NumberCell(
        low, low_open, high, high_open, divisor, a.not_divisors | b.not_divisors, only, a.never | b.never, plain
    )
    return simplify(cell)


def simplify(cell: NumberCell) -> NumberCell | None:
    """The same numbers with finite sets made explicit; None when there are none."""
    if cell.only is not None:
        kept = frozenset([x for x in cell.only if cell.holds(x) and (not cell.plain or x.denominator == 1)])
        return NumberCell(only=kept, plain=cell.plain) if kept else None
    if cell.divisor is not None and any(not cell.divisor % d for d in cell.not_divisors):
        return None
    if cell.low is not None and cell.high is not None:
        if cell.low > cell.high or (cell.low == cell.high and (cell.low_open or cell.high_open)):
            return None
        if cell.low == cell.high:
            return simplify(cell._replace(only=frozenset({cell.low})))
    return cell


def negate(cell: NumberCell) -> list[NumberCell]:
    """Cells whose union is the complement."""
    cells = []
    if cell.low is not None:
        cells.append(NumberCell(high=cell.low, high_open=not cell.low_open))
    if cell.high is not None:
        cells.append(NumberCell(low=cell.high, low_open=not cell.high_open))
    if cell.divisor is not None:
        cells.append(NumberCell(not_divisors=frozenset({cell.divisor})))
    cells.extend([NumberCell(divisor=divisor) for divisor in cell.not_divisors])
    if cell.only is not None:
        cells.append(NumberCell(never=cell.only))
    if cell.never:
        cells.append(NumberCell(only=cell.never))
    if cell.plain is not None:
        cells.append(NumberCell(plain=not cell.plain))
    return cells


def has_instance(cell: NumberCell) -> bool:
    """Whether some number lies in a cell that ``simplify`` let through."""
    if cell.only is not None or cell.low is None or cell.high is None:
        return True
    step = cell.divisor
    if step is None:
        return True
    first = -(-cell.low // step) * step
    if first == cell.low and cell.low_open:
        first += step
    tries = len(cell.never) + 1
    for _ in range(tries + 1_000):
        if first > cell.high or (first == cell.high and cell.high_open):
            return False
        if first not in cell.never and all(first % divisor for divisor in cell.not_divisors):
            return True
        first += step
    return True


def lower(cell: NumberCell, builder: Builder) -> Expr:
    """The texts of the numbers of a cell.

    The two sides of a difference must spell their numbers from the same set of texts: ``within_reach``.
    """
    if cell.only is not None:
        parts = [builder.union([_point(builder, x) for x in sorted(cell.only)])]
    else:
        exact = bool(cell.not_divisors or cell.never)
        restricted = cell.low is not None or cell.high is not None or cell.divisor is not None
        parts = [
            builder.decimal(
                minimum=None if cell.low is None else decimal_text(cell.low),
                maximum=None if cell.high is None else decimal_text(cell.high),
                exclusive_minimum=cell.low_open,
                exclusive_maximum=cell.high_open,
                multiple_of=None if cell.divisor is None or cell.divisor == 1 else decimal_text(cell.divisor),
                integer=cell.divisor == 1,
                point=not cell.plain,
                within_reach=exact,
                # One digit before the point of an exponent, as programs print it: digits typed then count, and a model
                # cannot be left with "1000" where only "1000e-2" would do.
                scientific=restricted,
            )
        ]
        for divisor in sorted(cell.not_divisors):
            parts.append(builder.complement(builder.decimal(multiple_of=decimal_text(divisor), within_reach=True)))
        for x in sorted(cell.never):
            parts.append(builder.complement(_point(builder, x, within_reach=True)))
    if cell.plain is False or (cell.plain and cell.only is not None):
        if cell.divisor is not None and cell.divisor > MAX_CROSSED_DIVISOR:
            raise ConstraintTooLarge(
                f"numbers that are multiples of {cell.divisor} but no draft 4 integers",
                hint="declare a later draft: from draft 6 on, 1.0 is an integer and large multiples are no problem",
            )
        plain = builder.decimal(point=False)
        parts.append(plain if cell.plain else builder.complement(plain))
    return parts[0] if len(parts) == 1 else builder.intersection(parts)


def _point(builder: Builder, x: Fraction, within_reach: bool = False) -> Expr:
    text = decimal_text(x)
    return builder.decimal(minimum=text, maximum=text, within_reach=within_reach, scientific=not within_reach)
