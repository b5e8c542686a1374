"""Output that is one of given values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
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
        ``null``);
            a member of an Enum for its value. Any iterable; a million values take seconds to compile.

    Raises:
        UnsatisfiableConstraint: there is no value.
        ConstraintSyntaxError: a value is of another type, not finite, or a string with lone surrogates.
    """

    def __init__(self, values: Iterable[str | int | float | bool | Enum | None]) -> None:
        if isinstance(values, str):
            raise ConstraintSyntaxError(
                "Choice takes a list of values, not one string", hint=f"write Choice([{values!r}])"
            )
        by_text: dict[str, Any] = {}
        for value in values:
            by_text.setdefault(value if type(value) is str else _text_of(value), value)
        if not by_text:
            raise UnsatisfiableConstraint("a Choice of no values allows no output")
        self._value_of_text = by_text
        self._words = sorted(map(encode, by_text))

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
        return literals(builder, self._words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self._words == other._words

    def __hash__(self) -> int:
        return hash((len(self._words), self._words[0], self._words[-1]))

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


def literals(builder: Builder, words: Sequence[bytes]) -> Expr:
    """The union of words that are sorted and distinct, as a tree with shared prefixes.

    The words are added in order to a stack that holds the path of the last one: each open node is its depth in bytes
    and the alternatives that go on from there. A node is closed when the next word leaves it; equal subtrees become
    one expression by the Builder's interning, so common suffixes are shared as well.
    """
    depths = [0]
    alternatives: list[list[Expr]] = [[]]
    previous = b""

    def close(down_to: int) -> None:
        """Close the nodes deeper than ``down_to``, which becomes the depth of the innermost open node."""
        while depths[-1] > down_to:
            depth, closed = depths.pop(), alternatives.pop()
            if depths[-1] < down_to:
                depths.append(down_to)
                alternatives.append([])
            edge = builder.literal(previous[depths[-1] : depth])
            branches = closed[0] if len(closed) == 1 else builder.union(closed)
            alternatives[-1].append(edge if branches == builder.epsilon else builder.concat([edge, branches]))

    for word in words:
        close(_common_prefix(previous, word))
        if len(word) > depths[-1]:
            depths.append(len(word))
            alternatives.append([builder.epsilon])
        else:
            alternatives[-1].append(builder.epsilon)
        previous = word
    close(0)
    return builder.union(alternatives[0])


def _common_prefix(left: bytes, right: bytes) -> int:
    """The length of the longest common prefix."""
    limit = min(len(left), len(right))
    for position in range(limit):
        if left[position] != right[position]:
            return position
    return limit
