"""What an output is wanted to be, apart from any model: a constraint, and the way from its texts to values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grammask.constraints.base import Constraint
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.json_value import JsonValue
from grammask.constraints.types import TypedOutput, typed_output
from grammask.constraints.where import Integer
from grammask.engine.compile import CompiledConstraint


@dataclass(frozen=True)
class Wanted:
    """An output's constraint and its reader.

    Attributes:
        constraint: None for free text; a text stands for itself.
        parse: from a text that satisfies it to the value; raises ValueError where a type's own validators refuse.
    """

    constraint: Constraint | str | None
    parse: Callable[[str], Any]

    @classmethod
    def of(cls, wanted: Any) -> Wanted:
        """From what ``generate`` takes: None, a Constraint, a text, a CompiledConstraint, a TypedOutput, a type.

        Raises:
            ConstraintError: a type has no JSON form.
        """
        if isinstance(wanted, Wanted):
            return wanted
        if isinstance(wanted, CompiledConstraint):
            wanted = wanted.constraint
        if isinstance(wanted, (JsonSchema, JsonValue)):
            return cls(wanted, json.loads)
        if isinstance(wanted, Integer):
            return cls(wanted, int)
        if wanted is None or isinstance(wanted, (Constraint, str)):
            return cls(wanted, str)
        typed = wanted if isinstance(wanted, TypedOutput) else typed_output(wanted)
        return cls(typed.constraint, typed.parse)
