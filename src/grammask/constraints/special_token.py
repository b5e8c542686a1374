"""Special tokens in constraints: matched by their id, never by text that spells their name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammask.constraints.base import Constraint
from grammask.engine.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.engine.vocabulary import Vocabulary


def vocabulary_of(builder: Builder) -> Vocabulary | None:
    """The vocabulary that a constraint is being compiled for; None for a Builder that does not know its names."""
    vocabulary: Vocabulary | None = getattr(builder, "vocabulary", None)
    return vocabulary


@dataclass(frozen=True)
class SpecialToken(Constraint):
    """Exactly one special token of the vocabulary, by its name (``<|im_end|>``)."""

    name: str

    def lower(self, builder: Builder) -> Expr:
        """The expression of the token.

        Raises:
            UnsupportedConstraint: the vocabulary has no special token of this name.
        """
        vocabulary = vocabulary_of(builder)
        found = None if vocabulary is None else vocabulary.special_tokens.get(self.name)
        if found is None:
            raise UnsupportedConstraint(
                f"the vocabulary has no special token {self.name!r}",
                hint="what the vocabulary has as ordinary text is written as a string",
            )
        return builder.special_token(found)
