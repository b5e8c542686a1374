"""What every constraint is: a pure value that can be lowered to an expression of the core, and combined with others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


class Constraint(ABC):
    """A set of allowed outputs.

    Constraints are immutable and know nothing of tokens. ``grammask.compile`` joins one with a Vocabulary.
    Subclasses implement ``lower``; the operators build ``Sequence``, ``Union``, ``Intersection`` and ``Complement`` nodes
    (see ``grammask.constraints.algebra``). A plain string on either side of an operator stands for itself.
    """

    @abstractmethod
    def lower(self, builder: Builder) -> Expr:
        """The expression of this constraint's language (the whole output matches it).

        Raises:
            ConstraintError: a subclass that says what is wrong, where, and what to do.
        """
