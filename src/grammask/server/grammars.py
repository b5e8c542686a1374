"""The grammar fields of several interfaces take GBNF or Lark notation without saying which."""

from __future__ import annotations

from grammask.constraints.base import Constraint
from grammask.constraints.grammar import Grammar


def grammar_from_text(text: str) -> Constraint:
    """A grammar in GBNF, whose rules are written with ``::=``, or else in Lark notation.

    Raises:
        ConstraintSyntaxError: it is neither.
    """
    return Grammar.gbnf(text) if "::=" in text else Grammar.lark(text)
