"""What every constraint is: a pure value that can be lowered to an expression of the core, and combined with others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


class Constraint(ABC):
    """A set of allowed outputs.

    Constraints are immutable and know nothing of tokens. ``grammask.compile`` joins one with a Vocabulary.
    Subclasses implement ``lower``; the operators build the nodes of ``grammask.constraints.algebra``. A plain string on
    either side of an operator stands for itself.

    ======================  ==========================================================
    ``a + b``               a, then b
    ``a | b``               a or b
    ``a & b``               both; regular constraints only
    ``~a``                  every text that is not in a; regular constraints only
    ``a.repeat(2, 5)``      two to five copies, one after the other
    ``a.optional()``        a or nothing
    ======================  ==========================================================
    """

    pointer: str | None = None
    """The place of the whole constraint, for errors about all of it: "" where places are JSON pointers."""

    @abstractmethod
    def lower(self, builder: Builder) -> Expr:
        """The expression of this constraint's language (the whole output matches it).

        Raises:
            ConstraintError: a subclass that says what is wrong, where, and what to do.
        """

    @property
    def is_regular(self) -> bool:
        """Whether ``lower`` gives an expression over bytes alone: no calls, rules or special tokens.

        Only such constraints can be intersected and complemented.
        """
        return False

    def __add__(self, other: Constraint | str) -> Constraint:
        from grammask.constraints.algebra import sequence

        return sequence(self, other) if isinstance(other, Constraint | str) else NotImplemented

    def __radd__(self, other: str) -> Constraint:
        from grammask.constraints.algebra import sequence

        return sequence(other, self) if isinstance(other, str) else NotImplemented

    def __or__(self, other: Constraint | str) -> Constraint:
        from grammask.constraints.algebra import union

        return union(self, other) if isinstance(other, Constraint | str) else NotImplemented

    def __ror__(self, other: str) -> Constraint:
        from grammask.constraints.algebra import union

        return union(other, self) if isinstance(other, str) else NotImplemented

    def __and__(self, other: Constraint | str) -> Constraint:
        from grammask.constraints.algebra import intersection

        return intersection(self, other) if isinstance(other, Constraint | str) else NotImplemented

    def __rand__(self, other: str) -> Constraint:
        from grammask.constraints.algebra import intersection

        return intersection(other, self) if isinstance(other, str) else NotImplemented

    def __invert__(self) -> Constraint:
        from grammask.constraints.algebra import Complement

        return Complement(self)

    def repeat(self, low: int, high: int | None = None) -> Constraint:
        """``low`` to ``high`` copies, one directly after the other (None: no upper limit)."""
        from grammask.constraints.algebra import Repeat

        return Repeat(self, low, high)

    def optional(self) -> Constraint:
        """This or nothing."""
        from grammask.constraints.algebra import Optional

        return Optional(self)
