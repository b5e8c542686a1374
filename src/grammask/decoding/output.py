"""What the caller wants to get: from a constraint, a type or nothing to a compiled constraint and a way to read the
text."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.engine.compile import CompiledConstraint
    from grammask.engine.vocabulary import Vocabulary

FREE_TEXT = r"[\s\S]*"
"""Every text. As a constraint it keeps special tokens and padding out, and ends only at whole characters."""


@dataclass(frozen=True)
class Output:
    """What an output must be, and what becomes of it.

    Attributes:
        compiled: the constraint over the model's vocabulary.
        parse: from a complete text to the value.
        partial: from a beginning of a text to what it tells of the value.
        structured: the user gave a constraint; False for free text.
    """

    compiled: CompiledConstraint
    parse: Callable[[str], Any]
    partial: Callable[[str], Any]
    structured: bool


def resolve_output(wanted: Any, vocabulary: Vocabulary) -> Output:
    """Compiles what the user passed.

    Args:
        wanted: None, a Constraint, a text (which stands for itself), a CompiledConstraint over an equal vocabulary, a
            TypedOutput, a Python type, or an Output that this function made.
        vocabulary: the model's.

    Raises:
        ConstraintError: it cannot be enforced.
        ValueError: a CompiledConstraint over another vocabulary.
    """
    from grammask.constraints.base import Constraint
    from grammask.decoding.partial import partial_reader
    from grammask.engine.compile import CompiledConstraint, compile

    if isinstance(wanted, Output):
        return wanted
    if wanted is None:
        return _free_text(vocabulary)
    partial = partial_reader(wanted)
    if isinstance(wanted, CompiledConstraint):
        if wanted.vocabulary.fingerprint != vocabulary.fingerprint:
            theirs, ours = repr(wanted.vocabulary), repr(vocabulary)
            raise ValueError(
                f"the constraint was compiled for {theirs}, but the model has {ours}: use model.vocabulary"
            )
        return Output(wanted, reader_of(wanted.constraint), partial, structured=True)
    if isinstance(wanted, (Constraint, str)):
        return Output(compile(wanted, vocabulary), reader_of(wanted), partial, structured=True)
    from grammask.constraints.types import TypedOutput, typed_output

    typed = wanted if isinstance(wanted, TypedOutput) else typed_output(wanted)
    return Output(compile(typed.constraint, vocabulary), typed.parse, partial, structured=True)


@functools.lru_cache(maxsize=4)
def _free_text(vocabulary: Vocabulary) -> Output:
    from grammask.constraints.regex import Regex
    from grammask.engine.compile import compile

    return Output(compile(Regex(FREE_TEXT), vocabulary), _as_it_is, _as_it_is, structured=False)


def reader_of(constraint: Constraint | str) -> Callable[[str], Any]:
    """From a whole text of a constraint to its value."""
    from grammask.constraints.json_schema import JsonSchema
    from grammask.constraints.json_value import JsonValue

    return json.loads if isinstance(constraint, (JsonSchema, JsonValue)) else _as_it_is


def _as_it_is(text: str) -> str:
    return text
