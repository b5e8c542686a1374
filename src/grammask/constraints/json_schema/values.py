"""JSON values with the equality that JSON Schema asks for, and exact decimal numbers.

Two values are equal when they are the same JSON value: 1 equals 1.0, true differs from 1, the order of an object's
members does not matter. Values are put into a hashable form, a pair of a kind letter and a payload:

    ("n",)  ("b", True)  ("d", Fraction)  ("s", str)  ("a", (value, ...))  ("o", Members({(key, value), ...}))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from grammask.engine import time_limit
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge

Value = tuple[Any, ...]


class Members:
    """The members of an object value: a set to equality, with the order in which they were written kept aside."""

    __slots__ = ("_set", "order")

    def __init__(self, members: Sequence[tuple[str, Value]]) -> None:
        self.order = tuple(members)
        self._set = frozenset(members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self._set == other._set

    def __hash__(self) -> int:
        return hash(self._set)


MAX_DEPTH = 200
MAX_EXPONENT = 350
"""Numbers in a schema may have at most about this many digits before or after the point."""


def number(value: int | float | Decimal, pointer: str) -> Fraction:
    """The exact decimal value that the schema's author wrote.

    A float stands for its shortest decimal spelling: 0.1 is one tenth, not the binary fraction nearest to it.

    Raises:
        ConstraintTooLarge: more digits than MAX_EXPONENT.
        ConstraintSyntaxError: NaN or infinity.
    """
    if type(value) is int:
        if value.bit_length() > 4 * MAX_EXPONENT:
            raise _too_long(pointer)
        return Fraction(value)
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not exact.is_finite():
        raise ConstraintSyntaxError(f"{exact} is not a JSON number", pointer=pointer)
    if exact and (abs(exact.adjusted()) > MAX_EXPONENT or len(exact.as_tuple().digits) > MAX_EXPONENT):
        raise _too_long(pointer)
    return Fraction(exact)


def _too_long(pointer: str) -> ConstraintTooLarge:
    return ConstraintTooLarge(
        f"a number with more than {MAX_EXPONENT} digits", pointer=pointer, hint="round it, or leave it out"
    )


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def canonical(value: object, pointer: str, depth: int = 0) -> Value:
    """The hashable form of a JSON value given as Python objects.

    Raises:
        ConstraintTooLarge: nested deeper than MAX_DEPTH.
        ConstraintSyntaxError: not a JSON value.
    """
    if isinstance(value, str):
        return ("s", value)
    if value is None:
        return ("n",)
    if isinstance(value, bool):
        return ("b", value)
    if isinstance(value, (int, float, Decimal)):
        return ("d", number(value, pointer))
    if depth > MAX_DEPTH:
        raise ConstraintTooLarge(
            f"a constant nested deeper than {MAX_DEPTH}", pointer=pointer, hint="describe it by a recursive schema"
        )
    time_limit.check()
    if isinstance(value, (list, tuple)):
        return ("a", tuple([canonical(item, pointer, depth + 1) for item in value]))
    if isinstance(value, dict):
        members = []
        for key, item in value.items():
            if not isinstance(key, str):
                raise ConstraintSyntaxError(f"the key {key!r} is not a string", pointer=pointer)
            members.append((key, canonical(item, pointer, depth + 1)))
        return ("o", Members(members))
    raise ConstraintSyntaxError(f"{type(value).__name__} is not a JSON value", pointer=pointer)


def decimal_text(value: Fraction) -> str:
    """The plain decimal spelling of a fraction whose denominator divides a power of ten: ``-12.5``."""
    denominator = value.denominator
    places = 0
    while denominator % 10 == 0:
        denominator //= 10
        places += 1
    twos = fives = 0
    while denominator % 2 == 0:
        denominator //= 2
        twos += 1
    while denominator % 5 == 0:
        denominator //= 5
        fives += 1
    assert denominator == 1, "numbers in schemas are decimals"
    places += max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    sign = "-" if value < 0 else ""
    if not places:
        return sign + digits
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def least_common_multiple(a: Fraction, b: Fraction) -> Fraction:
    """The smallest positive number that is a multiple of both."""
    scale = math.lcm(a.denominator, b.denominator)
    return Fraction(math.lcm(int(a * scale), int(b * scale)), scale)
