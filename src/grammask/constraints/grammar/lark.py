"""Lark grammars: the meaning of definitions and directives.

    start: greeting ("," NAME)+ "!"?
    greeting: "hello" | "good morning"
    NAME: /[A-Z][a-z]+/
    %ignore " "

The language is exactly that of the grammar read as text: a terminal is a regular language, a rule a context-free one.
There is no lexer, so no longest match, no terminal priorities and no contest between a keyword and an identifier: a
text belongs to the language if it can be split into terminals in some way that the rules allow. What only shapes Lark's
trees (``?rule``, ``!rule``, ``_rule``, ``-> alias``) or its lexer (priorities) is read and has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from grammask.constraints.base import Constraint
from grammask.constraints.grammar.graph import find_cycle
from grammask.constraints.grammar.lark_common import COMMON_TERMINALS
from grammask.constraints.grammar.lark_syntax import Definition, ExpressionParser, Import
from grammask.constraints.grammar.model import ParsedGrammar
from grammask.constraints.grammar.names import Names
from grammask.constraints.grammar.nodes import (
    Arena,
    Lexeme,
    Node,
    NodeId,
    Parameter,
    Rule,
    RuleRef,
    TemplateUse,
)
from grammask.constraints.grammar.source import Source
from grammask.engine.errors import ConstraintTooLarge, UnsupportedConstraint

MAX_TEMPLATE_INSTANCES = 10_000
"""How many different uses of templates a grammar may have."""

_PRIORITY = re.compile(r"[ \t]*\.[ \t]*([+-]?[0-9]+)")
_IMPORT_PATH = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def parse_lark(text: str, start: str, holes: Mapping[str, Constraint]) -> ParsedGrammar:
    """Reads a Lark grammar.

    Raises:
        ConstraintSyntaxError: malformed text, an undefined or repeated name, no rule named start.
        UnsupportedConstraint: an import from elsewhere than ``common``, the regex flag ``l``.
        ConstraintTooLarge: templates that unfold without end.
    """
    return _Reader(text, start, holes).read()


class _Reader:
    def __init__(self, text: str, start: str, holes: Mapping[str, Constraint]) -> None:
        self._source = Source(text, "Lark")
        self._arena = Arena()
        self._names = Names(self._source, holes)
        self._parser = ExpressionParser(self._source, self._arena, self._names)
        self._cursor = self._parser.cursor
        self._start = start
        self._definitions: dict[str, Definition] = {}
        self._templates: dict[str, Definition] = {}
        self._imports: list[Import] = []
        self._ignored: list[NodeId] = []

    def read(self) -> ParsedGrammar:
        parser, cursor = self._parser, self._cursor
        parser.skip(newlines=True)
        while not cursor.at_end:
            if cursor.peek() == "%":
                self._directive()
            else:
                self._add(self._definition())
            parser.skip(newlines=True)
        for definition in self._definitions.values():
            rule = Rule(definition.name, definition.body, definition.offset, definition.terminal)
            self._names.define(rule)
        for item in self._imports:
            self._import(item.name, item.alias, item.offset)
        self._expand_templates()
        start = self._names.finish(self._start, "start")
        self._check_terminals()
        return self._resolve_lexemes(start)

    # -- definitions

    def _definition(self) -> Definition:
        parser, cursor = self._parser, self._cursor
        offset = cursor.offset
        cursor.take_while("!?")
        name = parser.name("a rule, a terminal or a directive")
        terminal = name.isupper()
        parameters = self._parameters(name, terminal)
        priority = _PRIORITY.match(self._source.text, cursor.offset)
        if priority is not None:
            self._names.note(
                f"the priority of {name} has no effect: it chooses between readings of a text, not between texts",
                cursor.offset,
                name,
            )
            cursor.offset = priority.end()
        parser.skip()
        if not cursor.take(":"):
            raise cursor.unexpected(f"':' after {name}")
        body = parser.expansions(terminal=terminal, parameters=parameters or ())
        return Definition(name, body, offset, terminal, parameters)

    def _parameters(self, name: str, terminal: bool) -> tuple[str, ...] | None:
        parser, cursor = self._parser, self._cursor
        parser.skip()
        offset = cursor.offset
        if not cursor.take("{"):
            return None
        if terminal:
            raise self._source.error(offset, f"the terminal {name} cannot be a template", hint="templates are rules")
        parameters: list[str] = []
        while True:
            parser.skip(newlines=True)
            at = cursor.offset
            parameter = parser.name("the name of a parameter")
            if parameter in parameters:
                raise self._source.error(at, f"the parameter {parameter} is named twice")
            parameters.append(parameter)
            parser.skip(newlines=True)
            if cursor.take("}"):
                return tuple(parameters)
            if not cursor.take(","):
                raise cursor.unexpected("',' or '}' after a parameter")

    def _add(self, definition: Definition) -> None:
        table = self._definitions if definition.parameters is None else self._templates
        earlier = self._definitions.get(definition.name) or self._templates.get(definition.name)
        if earlier is not None:
            line = self._source.position(earlier.offset)[0]
            raise self._source.error(
                definition.offset,
                f"{definition.name} is already defined in line {line}",
                hint="join the two with '|', or write %override or %extend",
            )
        table[definition.name] = definition

    # -- directives

    def _directive(self) -> None:
        cursor, parser = self._cursor, self._parser
        offset = cursor.offset
        cursor.advance()
        word = cursor.take_while("abcdefghijklmnopqrstuvwxyz")
        parser.skip()
        if word == "ignore":
            self._ignored.append(parser.expansions(terminal=True))
        elif word == "import":
            self._imports.extend(self._read_import())
        elif word == "declare":
            self._declare()
        elif word in ("override", "extend"):
            self._redefine(word, offset)
        elif word == "llguidance":
            if parser.json() != {}:
                raise self._source.error(
                    offset,
                    "options of llguidance have no meaning here",
                    hint="leave them out",
                    kind=UnsupportedConstraint,
                )
        else:
            raise self._source.error(
                offset,
                f"%{word} is not a directive",
                hint="the directives are %import, %ignore, %declare, %override and %extend",
            )

    def _read_import(self) -> list[Import]:
        cursor, parser = self._cursor, self._parser
        offset = cursor.offset
        match = _IMPORT_PATH.match(self._source.text, offset)
        if match is None:
            raise cursor.unexpected("a path such as common.NUMBER")
        cursor.offset = match.end()
        parser.skip()
        path, _, name = match.group().rpartition(".")
        imports: list[Import] = []
        if cursor.take("("):
            path = match.group()
            while not cursor.take(")"):
                parser.skip(newlines=True)
                at = cursor.offset
                name = parser.name("a name to import")
                imports.append(Import(path, name, name, at))
                parser.skip(newlines=True)
                if not cursor.take(",") and cursor.peek() != ")":
                    raise cursor.unexpected("',' or ')' after an imported name")
        else:
            alias = name
            if cursor.take("->"):
                parser.skip()
                alias = parser.name("a name after '->'")
            imports.append(Import(path, name, alias, offset))
        for item in imports:
            if item.name.isupper() and not item.alias.isupper():
                raise self._source.error(offset, f"{item.name} is a terminal, so its new name must be upper case too")
        if path != "common":
            raise self._source.error(
                offset,
                f"only the library 'common' can be imported, not {path or name!r}",
                hint="copy the definitions into the grammar, or fill a hole with another grammar",
                kind=UnsupportedConstraint,
            )
        return imports

    def _declare(self) -> None:
        cursor, parser = self._cursor, self._parser
        while cursor.peek() not in ("", "\r", "\n"):
            offset = cursor.offset
            name = parser.name("a name to declare")
            if not self._names.is_hole(name):
                raise self._source.error(
                    offset,
                    f"{name} is declared, but nothing says what text it matches",
                    hint=f"fill it with holes={{{name!r}: ...}}",
                )
            parser.skip()

    def _redefine(self, word: str, offset: int) -> None:
        definition = self._definition()
        earlier = self._definitions.get(definition.name) or self._templates.get(definition.name)
        if earlier is None:
            raise self._source.error(offset, f"there is no earlier {definition.name} to {word}")
        if earlier.parameters != definition.parameters:
            raise self._source.error(offset, f"{definition.name} had other parameters before")
        if word == "extend":
            definition = replace(definition, body=self._arena.union([earlier.body, definition.body]))
        table = self._definitions if definition.parameters is None else self._templates
        table[definition.name] = definition

    def _import(self, name: str, alias: str, offset: int) -> None:
        """Defines alias as a terminal of the common library, and what it needs under names no grammar can write."""
        if name not in COMMON_TERMINALS:
            raise self._source.error(
                offset, f"the library 'common' has no {name}", hint=f"it has {', '.join(COMMON_TERMINALS)}"
            )
        self._names.define(Rule(alias, self._arena.add(RuleRef(f"common.{name}")), offset, terminal=True))
        pending = [name]
        while pending:
            needed = pending.pop()
            qualified = f"common.{needed}"
            if qualified in self._names.rules:
                continue
            library = ExpressionParser(Source(COMMON_TERMINALS[needed], "Lark"), self._arena, Names(self._source, {}))
            body = library.expansions(terminal=True)
            pending.extend(self._arena.references(body))
            body = self._arena.rewrite(body, self._qualify)
            self._names.define(Rule(qualified, body, None, terminal=True))

    def _qualify(self, node: Node) -> NodeId | None:
        return self._arena.add(RuleRef(f"common.{node.name}")) if isinstance(node, RuleRef) else None

    # -- meaning

    def _expand_templates(self) -> None:
        """Exchanges every use of a template for a reference to a rule with the arguments put in."""
        instances: dict[tuple[str, tuple[NodeId, ...]], str] = {}
        pending: list[tuple[str, NodeId, int | None]] = []

        def instantiate(node: Node) -> NodeId | None:
            if not isinstance(node, TemplateUse):
                return None
            key = (node.name, node.arguments)
            if key not in instances:
                template = self._template(node)
                instances[key] = f"{node.name}{{{len(instances) + 1}}}"
                if len(instances) > MAX_TEMPLATE_INSTANCES:
                    raise self._source.error(
                        template.offset,
                        f"templates unfold into more than {MAX_TEMPLATE_INSTANCES} rules",
                        hint="a template that uses itself must pass its own arguments on unchanged",
                        kind=ConstraintTooLarge,
                    )
                arguments = dict(zip(template.parameters or (), node.arguments, strict=True))

                def bind(inner: Node, arguments: dict[str, NodeId] = arguments) -> NodeId | None:
                    return arguments[inner.name] if isinstance(inner, Parameter) else None

                pending.append((instances[key], self._arena.rewrite(template.body, bind), template.offset))
            return self._arena.add(RuleRef(instances[key]))

        for rule in list(self._names.rules.values()):
            if rule.name in self._templates:
                raise self._source.error(rule.offset or 0, f"{rule.name} is both a template and an imported terminal")
            if not rule.terminal:
                self._names.rules[rule.name] = replace(rule, body=self._arena.rewrite(rule.body, instantiate))
        while pending:
            name, body, offset = pending.pop()
            self._names.rules[name] = Rule(name, self._arena.rewrite(body, instantiate), offset)
        used = {name for name, _ in instances}
        for template in self._templates.values():
            if template.name not in used:
                message = f"{template.name} is never used: no rule gives it arguments"
                self._names.note(message, template.offset, template.name, level="warning")

    def _template(self, use: TemplateUse) -> Definition:
        template = self._templates.get(use.name)
        if template is None:
            raise self._source.error(use.offset, f"there is no template {use.name}")
        wanted = len(template.parameters or ())
        if wanted != len(use.arguments):
            raise self._source.error(use.offset, f"{use.name} takes {wanted} arguments, here are {len(use.arguments)}")
        return template

    def _check_terminals(self) -> None:
        terminals = {
            name: [other for other in self._arena.references(rule.body) if self._names.rules[other].terminal]
            for name, rule in self._names.rules.items()
            if rule.terminal
        }
        cycle = find_cycle(terminals)
        if cycle:
            first = min(range(len(cycle)), key=lambda place: self._names.rules[cycle[place]].offset or 0)
            cycle = [*cycle[first:], *cycle[:first]]
            raise self._source.error(
                self._names.rules[cycle[0]].offset or 0,
                f"terminals cannot be recursive: {' → '.join([*cycle, cycle[0]])}",
                hint="write recursive definitions as rules, in lower case",
            )

    def _resolve_lexemes(self, start: RuleRef) -> ParsedGrammar:
        """Puts ignored text after every terminal that a rule uses, and before the first."""
        arena = self._arena
        gap = arena.star(arena.union(self._ignored)) if self._ignored else arena.epsilon

        def resolve(node: Node) -> NodeId | None:
            return arena.concat([node.part, gap]) if isinstance(node, Lexeme) else None

        rules = {
            name: rule if rule.terminal else replace(rule, body=arena.rewrite(rule.body, resolve))
            for name, rule in self._names.rules.items()
        }
        return ParsedGrammar(
            source=self._source,
            arena=arena,
            rules=rules,
            start=arena.concat([gap, arena.add(start)]),
            start_rule=self._start,
            embedded=self._names.embedded,
            pattern_offsets=self._parser.pattern_offsets,
            notes=self._names.notes,
        )
