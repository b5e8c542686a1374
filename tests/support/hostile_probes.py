"""Rows that are not answered as they should be: what the runner of hostile constraints must notice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from grammask import Constraint, Regex

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


class Acts(Constraint):
    """A constraint that does something while it is compiled."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act

    def lower(self, builder: Builder) -> Expr:
        self._act()
        return builder.literal(b"a")


class Row(NamedTuple):
    make: Callable[[], Constraint]
    answers: frozenset[str]
    place: str = ""
    json: bool = False

    def constraint(self, made: Any) -> Constraint:
        assert isinstance(made, Constraint)
        return made


def overflow() -> None:
    overflow()


ROWS = {
    "hangs": Row(lambda: Acts(lambda: time.sleep(600)), frozenset({"killed"})),
    "eats memory": Row(lambda: Acts(lambda: bytearray(1 << 30)), frozenset({"MemoryError"})),
    "crashes": Row(lambda: Acts(os.abort), frozenset({"crashed"})),
    "recurses": Row(lambda: Acts(overflow), frozenset({"RecursionError"})),
    "writes what is no JSON": Row(lambda: Regex("[a-z]{3}"), frozenset({"JSONDecodeError"}), json=True),
    "is fine": Row(lambda: Regex("[a-z]{3}"), frozenset({"compiled"})),
}
