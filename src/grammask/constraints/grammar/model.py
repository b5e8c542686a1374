"""What a grammar's text means, before it becomes expressions of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grammask.constraints.base import Constraint
from grammask.constraints.grammar.nodes import Arena, NodeId, Rule
from grammask.constraints.grammar.source import Source


class GrammarWarning(UserWarning):
    """A grammar holds what is probably a mistake; the message is that of its diagnostics, one a line."""


@dataclass(frozen=True)
class Diagnostic:
    """Something about a grammar that its author should know.

    Attributes:
        level: "warning" for what is probably a mistake, "note" for what merely has no effect here.
        message: one sentence.
        rule: the rule it is about, if any.
        line, column: where, counted from 1, if the text holds the place.
    """

    level: Literal["warning", "note"]
    message: str
    rule: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}, column {self.column}: "
        return f"{self.level}: {where}{self.message}"


@dataclass(frozen=True)
class Embedding:
    """Another constraint inside a grammar.

    Attributes:
        place: what it is, for messages: "the hole person", "this schema".
        offset: where the grammar's text holds it; None for holes, which may stand at several places.
    """

    constraint: Constraint
    place: str
    offset: int | None = None


@dataclass(frozen=True)
class ParsedGrammar:
    """A grammar whose names are all resolved.

    Attributes:
        source: the text, for messages.
        arena: the nodes of all expressions.
        rules: every rule by name; templates are instantiated.
        start: the expression that the whole output matches.
        start_rule: the rule that the user named as the start.
        embedded: what ``Embedded`` nodes refer to.
        pattern_offsets: for each regular expression, where in the text each of its characters comes from.
        notes: diagnostics found while reading.
    """

    source: Source
    arena: Arena
    rules: Mapping[str, Rule]
    start: NodeId
    start_rule: str
    embedded: Sequence[Embedding]
    pattern_offsets: Mapping[str, Sequence[int]]
    notes: Sequence[Diagnostic]
