"""Output that is one of given values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from grammask.constraints.algebra import encode
from grammask.constraints.base import Constraint
from grammask.engine.errors import ConstraintSyntaxError, UnsatisfiableConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


class Choice(Constraint):
    """Output that is exactly one of the given values.

    Args:
        values: strings stand for themselves; numbers, True, False and None for their JSON text (``1.5``, ``true``,
            ``null``); a member of an Enum for its value. Any iterable. A million values of 16 bytes take one and
            a half seconds, and 20 MB when compiled; the Choice keeps the values themselves besides.

    Raises:
        UnsatisfiableConstraint: there is no value.
        ConstraintSyntaxError: a value is of another type, not finite, or a string with lone surrogates.
    """

    def __init__(self, values: Iterable[str | int | float | bool | Enum | None], /, *others: Any) -> None:
        if others or isinstance(values, str) or not isinstance(values, Iterable):
            shown = ", ".join(map(repr, (values, *others)))
            raise ConstraintSyntaxError("Choice takes one list of values", hint=f"write Choice([{shown}])")
        by_text: dict[str, Any] = {}
        for value in values:
            by_text.setdefault(value if type(value) is str else _text_of(value), value)
        if not by_text:
            raise UnsatisfiableConstraint("a Choice of no values allows no output")
        for text in by_text:
            encode(text)
        self._value_of_text = by_text

    @property
    def texts(self) -> list[str]:
        """The allowed outputs, in the order given, without duplicates."""
        return list(self._value_of_text)

    @property
    def is_regular(self) -> bool:
        return True

    def value_of(self, text: str) -> Any:
        """The value that was given for this output (of several with the same text, the first).

        Raises:
            KeyError: no value has this text.
        """
        return self._value_of_text[text]

    def lower(self, builder: Builder) -> Expr:
        return builder.literals([encode(text) for text in self._value_of_text])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self._value_of_text.keys() == other._value_of_text.keys()

    def __hash__(self) -> int:
        return hash((len(self._value_of_text), min(self._value_of_text)))

    def __repr__(self) -> str:
        shown = list(self._value_of_text.values())
        if len(shown) > 10:
            return f"Choice([{', '.join(map(repr, shown[:5]))}, ... {len(shown):,} values])"
        return f"Choice({shown!r})"


def _text_of(value: object) -> str:
    """The output that stands for a value."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float) and math.isfinite(value):
        return json.dumps(value)
    raise ConstraintSyntaxError(
        f"{value!r} cannot be a choice",
        hint="choices are strings, finite numbers, True, False, None, or members of an Enum of those",
    )
