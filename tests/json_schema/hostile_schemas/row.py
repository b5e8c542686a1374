"""What a row of hostile schemas is, how it may be answered, and parts of schemas that several tables use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from grammask.constraints.json_schema import JsonSchema

COMPILED = frozenset({"compiled"})
TOO_LARGE = frozenset({"ConstraintTooLarge"})
EITHER = COMPILED | TOO_LARGE
"""Whether it is too large depends on the machine and on the limits."""
UNSUPPORTED = frozenset({"UnsupportedConstraint"})
EMPTY = frozenset({"UnsatisfiableConstraint"})
SYNTAX = frozenset({"ConstraintSyntaxError"})


class Row(NamedTuple):
    """A schema, and how it may be answered.

    Attributes:
        make: gives the schema, as Python objects or as text.
        answers: "compiled", or names of error classes.
        place: what the JSON pointer of an error begins with.
        options: of JsonSchema.
        json: outputs are JSON.
    """

    make: Callable[[], Any]
    answers: frozenset[str]
    place: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    json: bool = True

    def constraint(self, made: Any) -> JsonSchema:
        """The constraint of what ``make`` gave."""
        return JsonSchema(made, **self.options)


def nested(depth: int, wrap: Callable[[Any], Any], inner: Any = None) -> Any:
    value: Any = {"type": "integer"} if inner is None else inner
    for _ in range(depth):
        value = wrap(value)
    return value


def has(name: str, value: Any = True) -> dict[str, Any]:
    return {"properties": {name: value}, "required": [name]}


def chain(count: int, step: Callable[[Any], Any], end: Any) -> dict[str, Any]:
    """Definitions of which each speaks of the next."""
    definitions = {f"d{i}": step({"$ref": f"#/$defs/d{i + 1}"}) for i in range(count)}
    return {"$defs": {**definitions, f"d{count}": end}, "$ref": "#/$defs/d0"}


def word(i: int) -> str:
    """Different texts of many lengths without common beginnings."""
    return f"{i * 2654435761 % 2**32:x}" * (1 + i % 5)


PAIRS = [(c, d) for c in "abcde" for d in "vwxyz"]
