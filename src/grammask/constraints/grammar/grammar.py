"""``Grammar``: a constraint written in GBNF or Lark."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from grammask.constraints.algebra import as_constraint
from grammask.constraints.base import Constraint
from grammask.constraints.grammar.analysis import check_other_tokens, diagnose, productive_rules, reachable_rules
from grammask.constraints.grammar.gbnf import parse_gbnf
from grammask.constraints.grammar.lark import parse_lark
from grammask.constraints.grammar.lowering import lower_grammar
from grammask.constraints.grammar.model import Diagnostic, GrammarWarning, ParsedGrammar
from grammask.constraints.grammar.nodes import Node, NodeId, Pattern, RuleRef
from grammask.constraints.grammar.recursion import solve
from grammask.constraints.grammar.tokens import SpecialTokens
from grammask.constraints.regex.parser import parse as parse_pattern
from grammask.constraints.special_token import vocabulary_of
from grammask.engine.errors import ConstraintError

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.grammar.open_rules import OpenRules, RulePath


class Grammar(Constraint):
    """The texts of a context-free grammar.

    Made by ``Grammar.gbnf`` or ``Grammar.lark``, which read the whole text and report faults at once. Recursion of
    every kind (left, right, mutual, ambiguous, nullable) is fine. Special tokens that the text names (``<|end|>``) are
    looked up in the vocabulary that the grammar is compiled for. docs/reference/grammars.md describes both notations.

    Rules that are never used, or that can never finish, are told by a ``GrammarWarning``; ``diagnostics`` lists them.
    """

    def __init__(self, parsed: ParsedGrammar) -> None:
        self._parsed = parsed
        graph = reachable_rules(parsed)
        productive = productive_rules(parsed, graph)
        self._diagnostics = diagnose(parsed, graph, productive)
        check_other_tokens(parsed, [parsed.start, *(parsed.rules[name].body for name in graph)])
        _check_patterns(parsed)
        self._bodies = _without_dead_alternatives(parsed, productive)
        self._solved = solve(parsed.arena, self._bodies)
        suspicious = [str(found) for found in self._diagnostics if found.level == "warning"]
        if suspicious:
            warnings.warn("\n".join(suspicious), GrammarWarning, stacklevel=3)

    @classmethod
    def gbnf(
        cls,
        text: str,
        root: str = "root",
        *,
        holes: Mapping[str, Constraint | str] | None = None,
    ) -> Grammar:
        """A grammar in llama.cpp's notation.

        Args:
            text: the grammar.
            root: the rule that the whole output matches.
            holes: constraints (or plain strings) for names that the text uses but does not define.

        Raises:
            ConstraintSyntaxError: with line, column and an excerpt.
            UnsatisfiableConstraint: no text at all matches the grammar.
            UnsupportedConstraint: a negated token outside a free repetition.
        """
        return cls(parse_gbnf(text, root, _filled(holes)))

    @classmethod
    def lark(
        cls,
        text: str,
        start: str = "start",
        *,
        holes: Mapping[str, Constraint | str] | None = None,
    ) -> Grammar:
        """A grammar in Lark's notation, with ``%json {…}`` and ``%regex {…}`` as in llguidance.

        Args:
            text: the grammar.
            start: the rule that the whole output matches.
            holes: constraints (or plain strings) for names that the text uses but does not define.

        Raises:
            ConstraintSyntaxError: with line, column and an excerpt.
            UnsatisfiableConstraint: no text at all matches the grammar.
            UnsupportedConstraint: an import from elsewhere than ``common``, the regex flag ``l``.
            ConstraintTooLarge: templates that unfold without end.
        """
        return cls(parse_lark(text, start, _filled(holes)))

    def diagnostics(self) -> list[Diagnostic]:
        """Rules that are never used or can never finish, and notations that have no effect here."""
        return list(self._diagnostics)

    def open_rules(self, text: str | bytes) -> list[RulePath]:
        """Where in the grammar the end of a text lies, told by the rules as they are written.

        Returns:
            One path of rules for each way to go on; empty if no output begins with the text, or if nothing but the end
            can follow. Special tokens cannot be part of the text.

        Raises:
            ConstraintTooLarge: the text is too long or too ambiguous for this.
        """
        reader = self.rule_reader()
        return reader.paths() if reader.feed(text.encode() if isinstance(text, str) else text) else []

    def rule_reader(self) -> OpenRules:
        """As ``open_rules``, for a text that grows."""
        from grammask.constraints.grammar.open_rules import OpenRules

        return OpenRules(self._parsed, self._bodies, self._solved)

    def lower(self, builder: Builder) -> Expr:
        tokens = SpecialTokens(vocabulary_of(builder))
        return lower_grammar(self._parsed, self._solved, tokens, builder)

    def __repr__(self) -> str:
        return f"<Grammar in {self._parsed.source.dialect}, {len(self._parsed.rules)} rules>"


def _filled(holes: Mapping[str, Constraint | str] | None) -> dict[str, Constraint]:
    return {name: as_constraint(constraint) for name, constraint in (holes or {}).items()}


def _without_dead_alternatives(parsed: ParsedGrammar, productive: set[str]) -> dict[str, NodeId]:
    """The bodies of the rules that matter, without alternatives that can never finish."""
    arena = parsed.arena

    def drop_dead(node: Node) -> NodeId | None:
        return arena.nothing if isinstance(node, RuleRef) and node.name not in productive else None

    return {name: arena.rewrite(parsed.rules[name].body, drop_dead) for name in sorted(productive)}


def _check_patterns(parsed: ParsedGrammar) -> None:
    """Reads every regular expression, so that its faults are reported with a place in the grammar."""
    for node in parsed.arena.nodes:
        offsets = parsed.pattern_offsets.get(node.pattern) if isinstance(node, Pattern) else None
        if not isinstance(node, Pattern) or offsets is None:
            continue
        try:
            parse_pattern(node.pattern)
        except ConstraintError as error:
            column = min((error.column or 1) - 1, len(offsets) - 1)
            offset = offsets[column] if offsets else 0
            message = f"in this regular expression, {error.message.splitlines()[0]}"
            raise parsed.source.error(offset, message, hint=error.hint, kind=type(error)) from error
