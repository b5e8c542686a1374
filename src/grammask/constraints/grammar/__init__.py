"""Context-free grammars as constraints: GBNF, Lark, and grammars drawn from a database's schema."""

from __future__ import annotations

from grammask.constraints.grammar.grammar import Grammar
from grammask.constraints.grammar.model import Diagnostic, GrammarWarning

__all__ = ["Diagnostic", "Grammar", "GrammarWarning"]
