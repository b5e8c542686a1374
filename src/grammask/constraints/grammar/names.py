"""The names of a grammar: definitions, references, and holes that other constraints fill."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

from grammask.constraints.base import Constraint
from grammask.constraints.grammar.model import Diagnostic, Embedding
from grammask.constraints.grammar.nodes import Rule, RuleRef
from grammask.constraints.grammar.source import Source


class Names:
    """Collects rules and references while a grammar is read, and checks them at the end.

    Attributes:
        rules: the rules defined so far.
        embedded: the constraints in the grammar, holes first.
        notes: what was noticed.
    """

    def __init__(self, source: Source, holes: Mapping[str, Constraint]) -> None:
        self.rules: dict[str, Rule] = {}
        self.embedded = [Embedding(constraint, f"the hole {name}") for name, constraint in holes.items()]
        self.notes: list[Diagnostic] = []
        self._source = source
        self._holes = {name: index for index, name in enumerate(holes)}
        self._references: list[tuple[str, int]] = []
        self._used_holes: set[str] = set()

    def define(self, rule: Rule) -> None:
        offset = rule.offset or 0
        if rule.name in self._holes:
            raise self._source.error(
                offset, f"{rule.name} is defined here and filled as a hole", hint="rename one of the two"
            )
        earlier = self.rules.get(rule.name)
        if earlier is not None:
            line = self._source.position(earlier.offset or 0)[0]
            raise self._source.error(
                offset,
                f"{rule.name} is already defined in line {line}",
                hint="join the two definitions with '|', or rename one",
            )
        self.rules[rule.name] = rule

    def refer(self, name: str, offset: int) -> int | None:
        """Notes a reference; the number of the embedded constraint if the name is a hole's."""
        index = self._holes.get(name)
        if index is not None:
            self._used_holes.add(name)
            return index
        self._references.append((name, offset))
        return None

    def is_hole(self, name: str) -> bool:
        return name in self._holes

    def embed(self, embedding: Embedding) -> int:
        self.embedded.append(embedding)
        return len(self.embedded) - 1

    def note(
        self, message: str, offset: int, rule: str | None = None, *, level: Literal["note", "warning"] = "note"
    ) -> None:
        line, column = self._source.position(offset)
        self.notes.append(Diagnostic(level, message, rule, line, column))

    def finish(self, start: str, parameter: str) -> RuleRef:
        """Checks that every reference has a definition.

        start: the rule that the whole output matches; parameter: what the user calls it.
        """
        for name, offset in self._references:
            if name not in self.rules:
                raise self._source.error(offset, f"{name} is not defined", hint=self._suggestion(name))
        if start not in self.rules:
            names = ", ".join(list(self.rules)[:8]) or "none"
            end = len(self._source.text.rstrip())
            first = next((rule.offset for rule in self.rules.values() if rule.offset is not None), end)
            raise self._source.error(
                first,
                f"there is no rule {start!r} to start from",
                hint=f"define it or choose another with {parameter}=; the rules are: {names}",
            )
        for name in self._holes:
            if name not in self._used_holes:
                self.notes.append(Diagnostic("warning", f"the hole {name} does not occur in the grammar", name))
        return RuleRef(start)

    def _suggestion(self, name: str) -> str:
        close = get_close_matches(name, [*self.rules, *self._holes], n=1)
        if close:
            return f"did you mean {close[0]}?"
        return f"define it, or fill it with holes={{{name!r}: ...}}"
