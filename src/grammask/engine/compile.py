"""Joining a constraint with a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask import _core
from grammask.constraints.base import Constraint
from grammask.engine import time_limit
from grammask.engine.errors import RAISE_LIMITS, ConstraintError, ConstraintTooLarge, UnsatisfiableConstraint

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Limits:
    """What one constraint may cost; beyond it ``ConstraintTooLarge`` is raised.

    Attributes:
        expressions: nodes that lowering may add to the expressions shared by a vocabulary's constraints.
        seconds: wall time for lowering and compiling.
        mask_seconds: wall time for one mask, or one token taken. States are made when they are reached, and those of a
            constraint from a stranger may be too many to be made at all: the matcher then raises
            ``grammask._core.ConstraintTooLargeError``, and stays where it was.
    """

    expressions: int = 2_000_000
    seconds: float = 30.0
    mask_seconds: float = 10.0


class VocabularyBuilder(_core.Builder):
    """A Builder that also knows the vocabulary by its names, for constraints that mention special tokens.

    Attributes:
        vocabulary: what the constraint is compiled for.
    """

    vocabulary: Vocabulary


class CompiledConstraint:
    """A constraint ready for one vocabulary: immutable, and shareable between threads.

    States and masks are built on first use and kept, together with those of every other constraint over the same
    vocabulary: equal parts of different constraints share them.
    """

    __slots__ = ("_native", "constraint", "vocabulary")

    def __init__(self, native: _core.Compiled, constraint: Constraint, vocabulary: Vocabulary) -> None:
        self._native = native
        self.constraint = constraint
        self.vocabulary = vocabulary

    def matcher(self) -> _core.Matcher:
        """A new matcher at the start of the output; one per sequence."""
        return self._native.matcher()

    def report(self) -> list[Any]:
        """What is enforced and how, for constraints that can say so (``JsonSchema``); an empty list for others."""
        report = getattr(self.constraint, "report", None)
        return list(report()) if report is not None else []

    def memory_bytes(self) -> dict[str, int]:
        """Sizes of what this constraint shares with the others over its vocabulary: counts of ``expressions`` and
        ``states``, bytes of ``masks`` and ``total``."""
        return self._native.memory_bytes()

    def __repr__(self) -> str:
        return f"CompiledConstraint({self.constraint!r})"


def compile(  # the name is the public interface
    constraint: Constraint | str, vocabulary: Vocabulary, limits: Limits | None = None
) -> CompiledConstraint:
    """Compiles a constraint for a vocabulary.

    Args:
        constraint: what the output must be; a plain string stands for exactly itself.
        vocabulary: the tokens of the model.
        limits: what compiling and masks may cost.

    Raises:
        UnsatisfiableConstraint: no output satisfies the constraint.
        ConstraintTooLarge: a limit was reached.
        ConstraintError: another subclass, when the constraint is malformed or cannot be enforced exactly.
    """
    if isinstance(constraint, str):
        from grammask.constraints.algebra import as_constraint

        constraint = as_constraint(constraint)
    if not isinstance(constraint, Constraint):
        raise TypeError(
            f"expected a constraint such as grammask.Regex or grammask.JsonSchema, got {type(constraint).__name__}; "
            "a schema given as a dict goes through grammask.JsonSchema(schema), a Python type through "
            "grammask.constraint_for(type), and the vocabulary comes second"
        )
    if not hasattr(vocabulary, "native"):
        raise TypeError(
            f"expected a grammask.Vocabulary, got {type(vocabulary).__name__}; "
            "for a tokenizer file: grammask.Vocabulary.from_tokenizers(path)"
        )
    limits = limits or Limits()
    builder = VocabularyBuilder(vocabulary.native, max_expressions=limits.expressions, max_seconds=limits.seconds)
    builder.vocabulary = vocabulary
    try:
        with time_limit.Limited(limits.seconds):
            native = builder.compile(constraint.lower(builder))
    except ConstraintError:
        raise
    except _core.ConstraintTooLargeError as error:
        raise ConstraintTooLarge(
            f"the constraint is too large: {error}", pointer=constraint.pointer, hint=RAISE_LIMITS
        ) from error
    except ValueError as error:
        if "language is empty" in str(error):
            raise UnsatisfiableConstraint("no output satisfies this constraint", pointer=constraint.pointer) from error
        raise ConstraintError(str(error)) from error
    native.work_seconds = limits.mask_seconds
    return CompiledConstraint(native, constraint, vocabulary)
