"""Constraints made of constraints: what the operators ``+ | & ~`` and ``repeat`` and ``optional`` build.

Each node is a value: equal parts give equal nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grammask.constraints.base import Constraint
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge, UnsupportedConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr

MAX_HEIGHT = 200
"""Levels of nodes in a composition: bounds the recursion of lowering."""


@dataclass(frozen=True)
class Exactly(Constraint):
    """This text and no other."""

    text: str

    def __post_init__(self) -> None:
        encode(self.text)

    @property
    def is_regular(self) -> bool:
        return True

    def lower(self, builder: Builder) -> Expr:
        return builder.literal(encode(self.text))


@dataclass(frozen=True)
class Text(Constraint):
    """Free text of ``min_chars`` to ``max_chars`` characters (code points; None: no upper limit)."""

    min_chars: int = 0
    max_chars: int | None = None

    def __post_init__(self) -> None:
        _check_counts(self.min_chars, self.max_chars)

    @property
    def is_regular(self) -> bool:
        return True

    def lower(self, builder: Builder) -> Expr:
        return builder.repeat(builder.chars([(0, 0x10FFFF)]), self.min_chars, self.max_chars)


@dataclass(frozen=True)
class _Composition(Constraint):
    """A node with parts."""

    height: int = field(init=False, default=1, compare=False, repr=False)

    @property
    def operands(self) -> tuple[Constraint, ...]:
        raise NotImplementedError

    def __post_init__(self) -> None:
        height = 1 + max((part.height if isinstance(part, _Composition) else 0 for part in self.operands), default=0)
        if height > MAX_HEIGHT:
            raise ConstraintTooLarge(
                f"constraints are composed more than {MAX_HEIGHT} levels deep",
                hint="use repeat, a longer + or | of many parts, or a grammar",
            )
        object.__setattr__(self, "height", height)

    @property
    def is_regular(self) -> bool:
        return all(part.is_regular for part in self.operands)


@dataclass(frozen=True)
class Sequence(_Composition):
    """One part after the other."""

    parts: tuple[Constraint, ...]

    @property
    def operands(self) -> tuple[Constraint, ...]:
        return self.parts

    def lower(self, builder: Builder) -> Expr:
        return builder.concat([part.lower(builder) for part in self.parts])


@dataclass(frozen=True)
class Union(_Composition):
    """Any one of the parts."""

    parts: tuple[Constraint, ...]

    @property
    def operands(self) -> tuple[Constraint, ...]:
        return self.parts

    def lower(self, builder: Builder) -> Expr:
        return builder.union([part.lower(builder) for part in self.parts])


@dataclass(frozen=True)
class Intersection(_Composition):
    """The texts that every part allows. The parts must be regular.

    Raises:
        UnsupportedConstraint: a part is not regular.
    """

    parts: tuple[Constraint, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            _require_regular(part, "&")
        super().__post_init__()

    @property
    def operands(self) -> tuple[Constraint, ...]:
        return self.parts

    def lower(self, builder: Builder) -> Expr:
        return builder.intersection([part.lower(builder) for part in self.parts])


@dataclass(frozen=True)
class Complement(_Composition):
    """Every text (sequence of Unicode characters) that the body, a regular constraint, does not allow.

    Raises:
        UnsupportedConstraint: the body is not regular.
    """

    body: Constraint

    def __post_init__(self) -> None:
        _require_regular(self.body, "~")
        super().__post_init__()

    @property
    def operands(self) -> tuple[Constraint, ...]:
        return (self.body,)

    def lower(self, builder: Builder) -> Expr:
        any_text = Text().lower(builder)
        return builder.intersection([any_text, builder.complement(self.body.lower(builder))])


@dataclass(frozen=True)
class Repeat(_Composition):
    """``low`` to ``high`` copies of the body, one directly after the other (None: no upper limit)."""

    body: Constraint
    low: int
    high: int | None = None

    def __post_init__(self) -> None:
        _check_counts(self.low, self.high)
        super().__post_init__()

    @property
    def operands(self) -> tuple[Constraint, ...]:
        return (self.body,)

    def lower(self, builder: Builder) -> Expr:
        return builder.repeat(self.body.lower(builder), self.low, self.high)


@dataclass(frozen=True)
class Optional(_Composition):
    """The body or nothing."""

    body: Constraint

    @property
    def operands(self) -> tuple[Constraint, ...]:
        return (self.body,)

    def lower(self, builder: Builder) -> Expr:
        return builder.optional(self.body.lower(builder))


def as_constraint(value: Constraint | str) -> Constraint:
    """A constraint for itself, a string for exactly that text."""
    return Exactly(value) if isinstance(value, str) else value


def sequence(*parts: Constraint | str) -> Constraint:
    """One part after the other; sequences among the parts are flattened."""
    flat: list[Constraint] = []
    for part in map(as_constraint, parts):
        flat.extend(part.parts if isinstance(part, Sequence) else (part,))
    return Sequence(tuple(flat))


def union(*parts: Constraint | str) -> Constraint:
    """Any one of the parts; unions among the parts are flattened."""
    flat: list[Constraint] = []
    for part in map(as_constraint, parts):
        flat.extend(part.parts if isinstance(part, Union) else (part,))
    return Union(tuple(flat))


def intersection(*parts: Constraint | str) -> Constraint:
    """What all parts allow; intersections among the parts are flattened."""
    flat: list[Constraint] = []
    for part in map(as_constraint, parts):
        flat.extend(part.parts if isinstance(part, Intersection) else (part,))
    return Intersection(tuple(flat))


def encode(text: str) -> bytes:
    """The UTF-8 of a text.

    Raises:
        ConstraintSyntaxError: it holds a lone surrogate, which no UTF-8 text can spell; ``column`` says where.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConstraintSyntaxError(
            f"the text holds a lone surrogate U+{ord(text[error.start]):04X}, which UTF-8 cannot spell",
            column=error.start + 1,
            hint="decode the text with errors='strict' at its source",
        ) from None


def _check_counts(low: int, high: int | None) -> None:
    if low < 0 or (high is not None and high < low):
        raise ConstraintSyntaxError(f"counts must be 0 <= low <= high, not {low} and {high}")
    if max(low, high or 0) >= 2**31:
        raise ConstraintTooLarge(f"a count over {2**31 - 1}", hint="use None for no upper limit")


def _require_regular(part: Constraint, operator: str) -> None:
    if not part.is_regular:
        raise UnsupportedConstraint(
            f"{operator} needs regular constraints, and {type(part).__name__} is not regular",
            hint="apply it to the regular parts (Regex, Choice, Text, combinations); in JSON Schema use allOf and not",
        )
