"""Sets of numbers: unions of cells, each an interval with divisors.

All arithmetic is on exact fractions; the core turns a cell into an automaton over decimal digits.

JSON lets a number be spelled with any number of zeros, so a model that writes them could go on forever. Under the
"bounded" policy (``NumberSpelling``) every number text ends: see docs/json-schema.md for what it leaves out. How many
digits there may be depends on the numbers of the schema, so that no bound, multiple or constant is out of reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from grammask.constraints.json_schema.values import decimal_text, least_common_multiple
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr

NumberSpelling = Literal["bounded", "any"]

WHOLE_DIGITS = 64
"""Digits before the point where no number of the schema has more than FURTHER_WHOLE_DIGITS fewer."""
FURTHER_WHOLE_DIGITS = 16
FURTHER_PLACES = 28
"""Digits after the point beyond those of the schema's numbers. Doubles need 22: 0.0000012345678901234567."""


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
        time_limit.check()
        first += step
    return True


def lower(cell: NumberCell, builder: Builder, spelling: NumberSpelling = "bounded") -> Expr:
    """The texts of the numbers of a cell.

    The two sides of a difference must spell their numbers from the same set of texts: ``within_reach``.
    """
    if cell.only is not None:
        parts = [builder.union([_constant(builder, x, spelling) for x in sorted(cell.only)])]
    else:
        parts = [_bounded(cell, builder) if spelling == "bounded" else _unbounded(cell, builder)]
        for divisor in sorted(cell.not_divisors):
            parts.append(builder.complement(builder.decimal(multiple_of=decimal_text(divisor), within_reach=True)))
        for x in sorted(cell.never):
            text = decimal_text(x)
            parts.append(builder.complement(builder.decimal(minimum=text, maximum=text, within_reach=True)))
    if cell.plain is False or (cell.plain and cell.only is not None):
        if cell.divisor is not None and cell.divisor > MAX_CROSSED_DIVISOR:
            raise ConstraintTooLarge(
                f"numbers that are multiples of {cell.divisor} but no draft 4 integers",
                hint="declare a later draft: from draft 6 on, 1.0 is an integer and large multiples are no problem",
            )
        plain = builder.decimal(point=False)
        parts.append(plain if cell.plain else builder.complement(plain))
    return parts[0] if len(parts) == 1 else builder.intersection(parts)


class _Conditions(TypedDict):
    """What the core is asked of the value of a number, as arguments of ``Builder.decimal``."""

    minimum: str | None
    maximum: str | None
    exclusive_minimum: bool
    exclusive_maximum: bool
    multiple_of: str | None


def _conditions(cell: NumberCell) -> _Conditions:
    return {
        "minimum": None if cell.low is None else decimal_text(cell.low),
        "maximum": None if cell.high is None else decimal_text(cell.high),
        "exclusive_minimum": cell.low_open,
        "exclusive_maximum": cell.high_open,
        "multiple_of": None if cell.divisor is None else decimal_text(cell.divisor),
    }


def _unbounded(cell: NumberCell, builder: Builder) -> Expr:
    """The numbers between the bounds that are multiples of the divisor, with as many digits as JSON allows."""
    return builder.decimal(
        **_conditions(cell),
        point=not cell.plain,
        within_reach=bool(cell.not_divisors or cell.never),
        # One digit before the point of an exponent, as programs print it: digits typed then count, and a model
        # cannot be left with "1000" where only "1000e-2" would do.
        scientific=cell.low is not None or cell.high is not None or cell.divisor is not None,
    )


def _bounded(cell: NumberCell, builder: Builder) -> Expr:
    """The same numbers with the digits that the bounded policy allows.

    Without an exponent these are the numbers below a power of ten, so that limit is one more bound.
    """
    mentioned = [x for x in (cell.low, cell.high, cell.divisor) if x is not None]
    mentioned += [*cell.not_divisors, *cell.never]
    whole, places = _digits(mentioned)
    if cell.divisor is None:
        places += FURTHER_PLACES
    else:  # only zeros could follow
        places = max(places, 1 if cell.divisor.denominator == 1 else 2)
    if cell.low is None and cell.high is None and (cell.divisor is None or cell.divisor == 1):
        plain = _digits_only(builder, max(WHOLE_DIGITS, whole + FURTHER_WHOLE_DIGITS), cell, places)
        return plain if cell.plain else builder.union([plain, _scientific(cell, builder)])
    limit = Fraction(10) ** max(WHOLE_DIGITS, whole + FURTHER_WHOLE_DIGITS)
    limited = cell
    if cell.low is None:
        limited = limited._replace(low=-limit, low_open=True)
    if cell.high is None:
        limited = limited._replace(high=limit, high_open=True)
    plain = builder.decimal(
        **_conditions(limited),
        point=not cell.plain,
        exponent=False,
        places=places,
    )
    return plain if cell.plain else builder.union([plain, _scientific(cell, builder)])


def _digits_only(builder: Builder, whole: int, cell: NumberCell, places: int) -> Expr:
    """All numbers without an exponent, or all whole ones, of limited length."""
    digit = builder.byte_set([(ord("0"), ord("9"))])
    leading = builder.concat([builder.byte_set([(ord("1"), ord("9"))]), builder.repeat(digit, 0, whole - 1)])
    parts = [builder.optional(builder.literal(b"-")), builder.union([builder.literal(b"0"), leading])]
    if not cell.plain:
        follows = builder.repeat(digit if cell.divisor is None else builder.literal(b"0"), 1, places)
        parts.append(builder.optional(builder.concat([builder.literal(b"."), follows])))
    return builder.concat(parts)


def _scientific(cell: NumberCell, builder: Builder) -> Expr:
    """The numbers between the bounds that are multiples of the divisor, with an exponent."""
    return builder.decimal(**_conditions(cell), scientific=True, plain=False, places=FURTHER_PLACES)


def _constant(builder: Builder, x: Fraction, spelling: NumberSpelling) -> Expr:
    """One number. Bounded, it has no digits but its own, and one zero after the point where there would be none."""
    text = decimal_text(x)
    if spelling == "any":
        return builder.decimal(minimum=text, maximum=text, scientific=True)
    significant = len(text.lstrip("-").replace(".", "").strip("0"))
    plain = builder.decimal(minimum=text, maximum=text, exponent=False, places=max(_digits([x])[1], 1))
    if significant > FURTHER_PLACES:
        return plain
    places = max(significant - 1, 1)
    return builder.union(
        [plain, builder.decimal(minimum=text, maximum=text, scientific=True, plain=False, places=places)]
    )


def _digits(values: Iterable[Fraction]) -> tuple[int, int]:
    """The most digits before and after the point that any of the numbers has."""
    whole = places = 0
    for x in values:
        before, _, after = decimal_text(abs(x)).partition(".")
        whole, places = max(whole, len(before)), max(places, len(after))
    return whole, places
