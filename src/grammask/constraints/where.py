"""Conditions on free text, as constraints: lengths, words, beginnings, what must and must not occur, whole numbers.

Each condition is the set of texts that satisfy it, so conditions are combined like any constraint (``&``, ``|``, ``~``)
and enforced exactly while the text is written. ``where(...)`` is the usual conjunction in one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammask.constraints.algebra import Exactly, Text, intersection, sequence, union
from grammask.constraints.base import Constraint
from grammask.constraints.choice import Choice
from grammask.constraints.regex import Regex
from grammask.engine.errors import ConstraintSyntaxError, UnsatisfiableConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr

Range = int | tuple[int | None, int | None]
"""An exact number, or (least, most) with None for no limit."""

_BLANK = r"[\t\n\r ]"
_SOLID = r"[^\t\n\r ]"


def where(
    *,
    chars: Range | None = None,
    words: Range | None = None,
    lines: Range | None = None,
    starts: str | Iterable[str] = (),
    ends: str | Iterable[str] = (),
    contains: str | Iterable[str] = (),
    excludes: str | Iterable[str] = (),
    one_of: Iterable[str] = (),
    not_in: Iterable[str] = (),
    matches: str | Regex | None = None,
    integer: Range | None = None,
) -> Constraint:
    """Texts that satisfy every condition given.

    Args:
        chars: length in characters (code points).
        words: number of words; see ``words``.
        lines: number of lines; see ``lines``.
        starts, ends: the text begins (ends) with one of these.
        contains: every one of these occurs.
        excludes: none of these occurs.
        one_of: the text is one of these.
        not_in: the text is none of these.
        matches: the whole text matches a pattern.
        integer: the text is a whole number within this range.

    Raises:
        ConstraintError: a condition is malformed, or there is none.
    """
    parts: list[Constraint] = []
    if integer is not None:
        parts.append(Integer(*_limits(integer, None)))
    if one_of:
        parts.append(Choice(one_of))
    if matches is not None:
        parts.append(matches if isinstance(matches, Regex) else Regex(matches))
    if chars is not None:
        low, high = _limits(chars)
        parts.append(Text(low or 0, high))
    if words is not None:
        parts.append(word_count(words))
    if lines is not None:
        parts.append(line_count(lines))
    if starts:
        parts.append(starts_with(*_listed(starts)))
    if ends:
        parts.append(ends_with(*_listed(ends)))
    parts += [containing(text) for text in _listed(contains)]
    if excludes:
        parts.append(~containing(*_listed(excludes)))
    if not_in:
        parts.append(~Choice(list(not_in)))
    if not parts:
        raise ConstraintSyntaxError("there is no condition", hint="free text is grammask.Text()")
    return parts[0] if len(parts) == 1 else intersection(*parts)


def word_count(count: Range) -> Constraint:
    """Texts of so many words: runs of characters other than space, tab and line breaks. No blank stands at the end, and
    at most one space at the beginning, so that words can go on with the text before them."""
    low, high = _limits(count)
    low = low or 0
    more = f"{{{max(0, low - 1)},{'' if high is None else max(0, high - 1)}}}"
    if high == 0:
        return Exactly("")
    some = Regex(f" ?{_SOLID}+(?:{_BLANK}+{_SOLID}+){more}")
    return some if low > 0 else some | Exactly("")


def line_count(count: Range) -> Constraint:
    """Texts with so many lines; a line feed at the end begins no further line."""
    low, high = _limits(count)
    if high == 0:
        return Exactly("")
    low = low or 0
    more = f"{{{max(0, low - 1)},{'' if high is None else high - 1}}}"
    some = rf"[^\n]*(?:\n[^\n]*){more}\n?"
    # A text without any character has no line, and one that is only a line feed has one.
    written = Regex(some) & Text(1)
    return written if low > 0 else written | Exactly("")


def starts_with(*texts: str) -> Constraint:
    """Texts that begin with one of these."""
    return sequence(_any_of(texts), Text())


def ends_with(*texts: str) -> Constraint:
    """Texts that end with one of these."""
    return sequence(Text(), _any_of(texts))


def containing(*texts: str) -> Constraint:
    """Texts in which one of these occurs."""
    return sequence(Text(), _any_of(texts), Text())


@dataclass(frozen=True)
class Integer(Constraint):
    """Whole numbers in decimal digits, without leading zeros, plus signs and minus zero.

    Attributes:
        low, high: the range, both ends included; None for no limit.
    """

    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        for limit in (self.low, self.high):
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
                raise ConstraintSyntaxError(f"a limit of whole numbers is a whole number, not {limit!r}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise UnsatisfiableConstraint(f"no number is at least {self.low} and at most {self.high}")

    @property
    def is_regular(self) -> bool:
        return True

    def lower(self, builder: Builder) -> Expr:
        numbers = builder.decimal(
            minimum=None if self.low is None else str(self.low),
            maximum=None if self.high is None else str(self.high),
            integer=True,
            point=False,
            exponent=False,
        )
        return builder.intersection([numbers, builder.complement(builder.literal(b"-0"))])


def _any_of(texts: Iterable[str]) -> Constraint:
    parts = [Exactly(text) for text in texts]
    if not parts:
        raise ConstraintSyntaxError("there is no text to look for")
    return parts[0] if len(parts) == 1 else union(*parts)


def _listed(texts: str | Iterable[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _limits(count: Range, least: int | None = 0) -> tuple[int | None, int | None]:
    low, high = count if isinstance(count, tuple) else (count, count)
    if least is not None:
        for limit in (low, high):
            if limit is not None and (not isinstance(limit, int) or limit < least):
                raise ConstraintSyntaxError(f"a count is a whole number from {least} on, not {limit!r}")
        if low is not None and high is not None and low > high:
            raise ConstraintSyntaxError(f"the least count {low} is above the most {high}")
    return low, high
