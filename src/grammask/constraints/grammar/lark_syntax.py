"""Reads Lark's notation into definitions and directives; ``lark`` gives them their meaning.

Reference: ``docs/grammar.md`` and ``lark/grammars/lark.lark`` of Lark; from llguidance's dialect come ``%json``,
``%regex``, ``{m,n}``, tokens by name, and ``&`` and ``~`` inside terminals. The parser keeps its own stack of open
brackets, so nesting is bounded by memory alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from grammask.constraints.grammar.lark_literals import read_regex, read_string
from grammask.constraints.grammar.model import Embedding
from grammask.constraints.grammar.names import Names
from grammask.constraints.grammar.nodes import (
    Arena,
    Complement,
    Embedded,
    Intersection,
    Lexeme,
    NodeId,
    Parameter,
    RuleRef,
    TemplateUse,
)
from grammask.constraints.grammar.scanning import Cursor
from grammask.constraints.grammar.source import Source
from grammask.constraints.grammar.substrings import substring_node
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintTooLarge

_NAME = re.compile(r"_*[A-Za-z][A-Za-z0-9_]*")
_REPETITION = re.compile(r"~[ \t]*(?=[0-9])")
_ARGUMENTS = re.compile(r"[ \t]*\{(?=\s*[^\s0-9,])")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Definition:
    """A rule, terminal or template as written."""

    name: str
    body: NodeId
    offset: int
    terminal: bool
    parameters: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Import:
    """``%import path.name -> alias``."""

    path: str
    name: str
    alias: str
    offset: int


@dataclass
class _Group:
    """An open bracket (or the definition itself) and what was read in it."""

    bracket: str
    opened_at: int
    template: str = ""
    arguments: list[NodeId] = field(default_factory=list)
    alternatives: list[NodeId] = field(default_factory=list)
    conjunction: list[NodeId] = field(default_factory=list)
    sequence: list[NodeId] = field(default_factory=list)
    complements: int = 0


class ExpressionParser:
    """Reads expressions of one source into an arena."""

    def __init__(self, source: Source, arena: Arena, names: Names) -> None:
        self.source = source
        self.cursor = Cursor(source, comments=("//", "#"))
        self.pattern_offsets: dict[str, tuple[int, ...]] = {}
        self._arena = arena
        self._names = names

    def skip(self, *, newlines: bool = False) -> None:
        """Steps over blanks, comments and escaped line breaks."""
        cursor = self.cursor
        while True:
            cursor.skip(newlines=newlines)
            if cursor.peek() != "\\":
                return
            ahead = 1
            while cursor.peek(ahead) in (" ", "\t", "\r"):
                ahead += 1
            if cursor.peek(ahead) != "\n":
                return
            cursor.offset += ahead + 1

    def name(self, wanted: str) -> str:
        """A name in one case: rules are lower case, terminals upper case."""
        match = _NAME.match(self.source.text, self.cursor.offset)
        if match is None:
            raise self.cursor.unexpected(wanted)
        name = match.group()
        if not (name.isupper() or name.islower()):
            raise self.source.error(
                self.cursor.offset,
                f"{name} mixes upper and lower case",
                hint="names of rules are all lower case, names of terminals all upper case",
            )
        self.cursor.offset = match.end()
        return name

    def expansions(self, *, terminal: bool, parameters: tuple[str, ...] = ()) -> NodeId:
        """Alternatives up to the end of the definition: a line break outside every bracket that no '|' follows."""
        cursor = self.cursor
        groups = [_Group("", cursor.offset)]
        while True:
            time_limit.check()
            group = groups[-1]
            nested = len(groups) > 1
            self.skip(newlines=nested)
            start = cursor.offset
            char = cursor.peek()
            if char == "":
                if nested:
                    raise self.source.error(group.opened_at, f"this '{group.bracket}' is never closed")
                break
            if char in "\r\n":
                self.skip(newlines=True)
                if cursor.peek() != "|":
                    break
            elif char == "|":
                cursor.advance()
                self.skip(newlines=True)
                self._end_alternative(group)
            elif char == "&":
                self._only_in_terminals(terminal, start)
                cursor.advance()
                self.skip(newlines=True)
                group.conjunction.append(self._end_sequence(group))
            elif cursor.looking_at("->"):
                self._alias(terminal, start)
            elif char in "([":
                cursor.advance()
                groups.append(_Group(char, start))
            elif group.bracket and char == _CLOSERS[group.bracket]:
                cursor.advance()
                groups.pop()
                self._append(groups[-1], self._close(group))
            elif char == "," and group.bracket == "{":
                cursor.advance()
                group.arguments.append(self._close_argument(group, start))
            elif char in ")]}":
                raise self.source.error(start, f"this '{char}' closes nothing")
            elif char == "~" and not (group.sequence and _REPETITION.match(self.source.text, start)):
                self._only_in_terminals(terminal, start)
                cursor.advance()
                group.complements += 1
            elif char in "*+?{~":
                self._repeat(group, nested)
            else:
                self._atom(groups, terminal, parameters)
        group = groups.pop()
        if group.complements:
            raise self.source.error(cursor.offset, "nothing follows '~'")
        return self._end_alternatives(group)

    def _only_in_terminals(self, terminal: bool, offset: int) -> None:
        if not terminal:
            raise self.source.error(
                offset,
                "'&' and '~' work on regular expressions only",
                hint="move this part into a terminal (an upper-case name)",
            )

    def _append(self, group: _Group, node: NodeId) -> None:
        for _ in range(group.complements):
            node = self._arena.add(Complement(node))
        group.complements = 0
        group.sequence.append(node)

    def _end_sequence(self, group: _Group) -> NodeId:
        if group.complements:
            raise self.source.error(self.cursor.offset, "nothing follows '~'")
        node = self._arena.concat(group.sequence)
        group.sequence = []
        return node

    def _end_alternative(self, group: _Group) -> None:
        node = self._end_sequence(group)
        if group.conjunction:
            node = self._arena.add(Intersection((*group.conjunction, node)))
            group.conjunction = []
        group.alternatives.append(node)

    def _end_alternatives(self, group: _Group) -> NodeId:
        self._end_alternative(group)
        node = self._arena.union(group.alternatives)
        group.alternatives = []
        return node

    def _close_argument(self, group: _Group, offset: int) -> NodeId:
        if not group.sequence and not group.alternatives:
            raise self.source.error(offset, "a template's argument is missing")
        return self._end_alternatives(group)

    def _close(self, group: _Group) -> NodeId:
        if group.bracket == "{":
            group.arguments.append(self._close_argument(group, self.cursor.offset - 1))
            return self._arena.add(TemplateUse(group.template, tuple(group.arguments), group.opened_at))
        node = self._end_alternatives(group)
        return self._arena.optional(node) if group.bracket == "[" else node

    def _alias(self, terminal: bool, start: int) -> None:
        if terminal:
            raise self.source.error(start, "aliases name alternatives of rules, not of terminals")
        self.cursor.offset += 2
        self.skip()
        self.name("an alias after '->'")
        self.skip()
        if self.cursor.peek() not in ("", "\r", "\n", "|", ")", "]"):
            raise self.cursor.unexpected("the end of the alternative after its alias")

    def _repeat(self, group: _Group, nested: bool) -> None:
        cursor = self.cursor
        start = cursor.offset
        if not group.sequence or group.complements:
            raise self.source.error(start, f"nothing stands before this '{cursor.peek()}' that could be repeated")
        if cursor.peek() == "~":
            cursor.advance()
            self.skip()
            low = high = cursor.number()
            after = cursor.offset
            self.skip()
            if cursor.take(".."):
                self.skip()
                high = cursor.number()
                cursor.check_bounds(low, high, start)
            else:
                cursor.offset = after
            bounds: tuple[int, int | None] = (low, high)
        else:
            bounds = cursor.repetition(newlines=nested)
        group.sequence.append(self._arena.repeat(group.sequence.pop(), *bounds))

    def _atom(self, groups: list[_Group], terminal: bool, parameters: tuple[str, ...]) -> None:
        cursor, arena, group = self.cursor, self._arena, groups[-1]
        start = cursor.offset
        char = cursor.peek()
        if char == '"':
            node = arena.add(read_string(cursor))
        elif char == "/":
            pattern, offsets = read_regex(cursor)
            self.pattern_offsets.setdefault(pattern.pattern, offsets)
            node = arena.add(pattern)
        elif char == "<":
            if terminal:
                raise self.source.error(
                    start, "a token is not text, so it cannot be part of a terminal", hint="use it in a rule"
                )
            node = arena.add(cursor.token())
        elif char == "%":
            node = self._embedded(terminal)
        else:
            name = self.name("a string, a regular expression, a name, a group or the end of the definition")
            arguments = _ARGUMENTS.match(self.source.text, cursor.offset)
            if arguments is not None:
                if terminal:
                    raise self.source.error(start, "templates can be used in rules only")
                cursor.offset = arguments.end()
                groups.append(_Group("{", start, template=name))
                return
            node = self._reference(name, start, terminal, parameters)
            if name in parameters or not (name.isupper() or self._names.is_hole(name)):
                self._append(group, node)
                return
        self._append(group, node if terminal else arena.add(Lexeme(node)))

    def _reference(self, name: str, offset: int, terminal: bool, parameters: tuple[str, ...]) -> NodeId:
        if name in parameters:
            return self._arena.add(Parameter(name))
        if terminal and self._names.is_hole(name):
            raise self.source.error(offset, "holes can be used in rules only", hint="use it in a lower-case rule")
        if terminal and not name.isupper():
            raise self.source.error(
                offset,
                f"the rule {name} cannot be part of a terminal",
                hint=f"name it {name.upper()}, or write this definition in lower case",
            )
        embedded = self._names.refer(name, offset)
        return self._arena.add(RuleRef(name) if embedded is None else Embedded(embedded))

    def _embedded(self, terminal: bool) -> NodeId:
        """``%json {schema}`` or ``%regex {substring…}``."""
        cursor = self.cursor
        start = cursor.offset
        if cursor.take("%regex"):
            return substring_node(self._arena, self.json(), self.source, start)
        if not cursor.take("%json"):
            raise cursor.unexpected("%json or %regex")
        if terminal:
            raise self.source.error(start, "%json is not regular", hint="use it in a lower-case rule")
        self.skip(newlines=True)
        text_start = cursor.offset
        self.json()
        from grammask.constraints.json_schema import JsonSchema

        constraint = JsonSchema(self.source.text[text_start : cursor.offset])
        return self._arena.add(Embedded(self._names.embed(Embedding(constraint, "this schema", start))))

    def json(self) -> Any:
        """A JSON value at the cursor."""
        cursor = self.cursor
        self.skip(newlines=True)
        start = cursor.offset
        try:
            value, cursor.offset = json.JSONDecoder().raw_decode(self.source.text, start)
        except json.JSONDecodeError as error:
            raise self.source.error(error.pos, f"this is not JSON: {error.msg}") from error
        except RecursionError as error:
            raise self.source.error(start, "this JSON is nested too deeply", kind=ConstraintTooLarge) from error
        return value
