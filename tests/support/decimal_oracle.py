"""An independent judge of number texts: exact fractions, no automata.

``DecimalOracle`` answers the two questions that a decimal expression must answer, whether a text belongs to it and
whether a prefix can be completed. The second is decided by trying every magnitude that the value could have: the values
that continue a prefix of digits M are the intervals [M, M + 1) * 10**k, and one of them must hold a member of the set.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

REACH = 40
"""kExponentReach in core/regular/decimal.hpp."""

EXPONENT_DIGITS = 3
"""kExponentDigits there."""

_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_PREFIX = re.compile(r"(-?)(?:(0|[1-9][0-9]*)(?:(\.)([0-9]*))?)?")
_MAGNITUDES = 130
"""Powers of ten tried in each direction: more than any bound, multiple or text of the tests needs."""


def is_number_prefix(text: str) -> bool:
    """Whether some JSON number starts with this text."""
    mantissa, e, exponent = text.lower().partition("e")
    if not e:
        return _PREFIX.fullmatch(text) is not None
    return _NUMBER.fullmatch(mantissa) is not None and re.fullmatch(r"[+-]?[0-9]*", exponent) is not None


def number_prefixes(alphabet: str, length: int) -> Iterator[str]:
    """Every prefix of a JSON number over the alphabet, shortest first, up to a length."""
    layer = [""]
    for _ in range(length + 1):
        yield from layer
        layer = [text + char for text in layer for char in alphabet if is_number_prefix(text + char)]


@dataclass(frozen=True)
class _Mantissa:
    """The text before an exponent: its digits, and where the first nonzero one stands (1 for units, 0 for tenths)."""

    negative: bool
    digits: int
    places: int
    lead: int
    length: int

    @classmethod
    def of(cls, negative: bool, integer: str, fraction: str) -> _Mantissa:
        written = integer + fraction
        significant = written.lstrip("0")
        lead = len(integer) - (len(written) - len(significant))
        return cls(negative, int(written), len(fraction), lead, len(significant))


@dataclass(frozen=True)
class DecimalOracle:
    """The arguments of ``Builder.decimal``."""

    minimum: str | None = None
    maximum: str | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: str | None = None
    integer: bool = False
    point: bool = True
    exponent: bool = True
    scientific: bool = False
    plain: bool = True
    places: int | None = None
    within_reach: bool = False

    def contains(self, value: Fraction) -> bool:
        """Whether the number belongs to the set."""
        if self.minimum is not None:
            low = _fraction(self.minimum)
            if value < low or (self.exclusive_minimum and value == low):
                return False
        if self.maximum is not None:
            high = _fraction(self.maximum)
            if value > high or (self.exclusive_maximum and value == high):
                return False
        if self.integer and value.denominator != 1:
            return False
        return self.multiple_of is None or (value / _fraction(self.multiple_of)).denominator == 1

    def accepts(self, text: str) -> bool:
        """Whether the text belongs to the language."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            return False
        sign, integer, fraction, exponent = match.groups()
        if not self.point and (fraction is not None or exponent is not None):
            return False
        if self.places is not None and len(fraction or "") > self.places:
            return False
        mantissa = _Mantissa.of(sign == "-", integer, fraction or "")
        if exponent is None:
            if not self.plain:
                return False
        elif not (self.exponent and self._in_reach(mantissa) and self._bounds_allow(mantissa, exponent)):
            return False
        value = Fraction(mantissa.digits, 10**mantissa.places) * Fraction(10) ** int(exponent or 0)
        return self.contains(-value if mantissa.negative else value)

    def alive(self, prefix: str) -> bool:
        """Whether some text of the language starts with this prefix."""
        if not is_number_prefix(prefix):
            return False
        match = _PREFIX.fullmatch(prefix)
        if match is None:
            return self._alive_in_exponent(prefix)
        sign, integer, point, fraction = match.groups()
        if point and not self.point:
            return False
        if integer is None:
            signs = [sign] if sign else ["", "-"]
            return any(self.alive(first + digit) for first in signs for digit in "0123456789")
        if self.places is not None and (len(fraction or "") > self.places or (point and self.places == 0)):
            return False
        mantissa = _Mantissa.of(sign == "-", integer, fraction or "")
        if self.plain and self._alive_without_exponent(mantissa, growing=not point and mantissa.digits > 0):
            return True
        if not (self.exponent and self.point):
            return False
        return self._alive_by_exponent(mantissa, ends_with_point=bool(point) and not fraction)

    def _alive_without_exponent(self, mantissa: _Mantissa, *, growing: bool) -> bool:
        if mantissa.digits == 0 and self.contains(Fraction(0)):
            return True
        more_digits = range(_MAGNITUDES) if growing else range(1 if self.point else 0)
        powers = [more - mantissa.places for more in more_digits]
        return any(self._block_holds(mantissa, k, None if self.places is None else k + self.places) for k in powers)

    def _alive_by_exponent(self, mantissa: _Mantissa, *, ends_with_point: bool) -> bool:
        if mantissa.digits == 0:
            if self.places is None and self.contains(Fraction(0)):
                return True
            firsts = [_Mantissa(mantissa.negative, d, mantissa.places + 1, -mantissa.places, 1) for d in range(1, 10)]
            return any(self._alive_by_exponent(first, ends_with_point=False) for first in firsts)
        if not self._in_reach(mantissa) or (ends_with_point and self._limits_length and mantissa.length == self._reach):
            return False
        room = self._reach - mantissa.length if self._limits_length else None
        return any(self._block_holds(mantissa, k, room) for k in range(-_MAGNITUDES, _MAGNITUDES))

    def _alive_in_exponent(self, prefix: str) -> bool:
        if not (self.exponent and self.point):
            return False
        mantissa, exponent = prefix.lower().split("e")
        allowed = _allowed_exponents(self, mantissa)
        signs = [exponent[:1]] if exponent[:1] in ("+", "-") and exponent else ["", "-"] if not exponent else [""]
        for sign in signs:
            digits = exponent[len(sign) :].lstrip("0")
            sizes = {abs(e) for e in allowed if e == 0 or (e < 0) == (sign == "-")}
            if self.places is not None:
                if self._alive_in_bounded_exponent(exponent[len(sign) :], sizes):
                    return True
                continue
            # The exponents are an interval, so one that holds the last magnitude tried goes on for ever.
            if _MAGNITUDES in sizes or any(str(size).startswith(digits) for size in sizes):
                return True
        return False

    def _bounds_allow(self, mantissa: _Mantissa, exponent: str) -> bool:
        return self.places is None or (mantissa.digits != 0 and len(exponent.lstrip("+-")) <= EXPONENT_DIGITS)

    @staticmethod
    def _alive_in_bounded_exponent(digits: str, sizes: set[int]) -> bool:
        if _MAGNITUDES in sizes:
            sizes = sizes | set(range(_MAGNITUDES, 10**EXPONENT_DIGITS))
        left = EXPONENT_DIGITS - len(digits)
        written = int(digits or 0)
        return any(written * 10**n <= size < (written + 1) * 10**n for n in range(left + 1) for size in sizes)

    @property
    def _reach(self) -> int:
        return REACH if self.places is None else self.places + 1

    @property
    def _limits_length(self) -> bool:
        return self.places is not None or self.within_reach or self.integer or self.multiple_of is not None

    def _in_reach(self, mantissa: _Mantissa) -> bool:
        if mantissa.digits == 0:
            return True
        bounds = [_fraction(bound) for bound in (self.minimum, self.maximum) if bound is not None]
        bounded = any(bound != 0 and (bound < 0) == mantissa.negative for bound in bounds)
        if self.scientific and mantissa.lead != 1:
            return False
        if (self._limits_length or bounded) and not -REACH <= mantissa.lead <= REACH:
            return False
        return not self._limits_length or mantissa.length <= self._reach

    def _block_holds(self, mantissa: _Mantissa, k: int, room: int | None) -> bool:
        """Whether a member other than zero lies in [M, M + 1) * 10**k, written with at most ``room`` more digits."""
        scale = Fraction(10) ** k
        low, low_open = mantissa.digits * scale, mantissa.digits == 0
        high, high_open = (mantissa.digits + 1) * scale, True
        bounds = [(self.minimum, self.exclusive_minimum), (self.maximum, self.exclusive_maximum)]
        if mantissa.negative:
            bounds.reverse()
        (near, near_open), (far, far_open) = bounds
        sign = -1 if mantissa.negative else 1
        if near is not None:
            low, low_open = max((low, low_open), (sign * _fraction(near), near_open))
        if far is not None:
            high, closed = min((high, not high_open), (sign * _fraction(far), not far_open))
            high_open = not closed
        steps = [_fraction(self.multiple_of)] if self.multiple_of is not None else []
        steps += [Fraction(1)] if self.integer or not self.point else []
        steps += [scale / 10**room] if room is not None else []
        if not steps:
            return low < high or (low == high and not low_open and not high_open)
        denominator = math.lcm(*(step.denominator for step in steps))
        step = Fraction(math.lcm(*(int(step * denominator) for step in steps)), denominator)
        first = math.ceil(low / step) * step
        if first == low and low_open:
            first += step
        return first < high or (first == high and not high_open)


_fraction = functools.cache(Fraction)


@functools.cache
def _allowed_exponents(numbers: DecimalOracle, mantissa: str) -> list[int]:
    """The exponents, of those tried, with which the mantissa spells a number of the set."""
    return [e for e in range(-_MAGNITUDES, _MAGNITUDES + 1) if numbers.accepts(f"{mantissa}e{e}")]
