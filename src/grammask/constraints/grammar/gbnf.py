"""GBNF, the grammar notation of llama.cpp.

    root  ::= "yes" | "no" reason?      # rules, one after another; a comment runs to the end of its line
    reason ::= " because " [^\\n]{1,80}

Reference: ``grammars/README.md`` and ``src/llama-grammar.cpp`` of llama.cpp. Three things are wider here: ``_`` in rule
names, ``{,n}``, and an alternative on a line of its own that starts with ``|``. Three are stricter, because llama.cpp
silently does something else than what is written: a rule may be defined only once, ``[]`` is an error (there: the empty
word), and bounds above 2000 are kept (there: dropped). Left recursion is fine.

The parser keeps its own stack of open groups, so nesting is bounded by memory alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from grammask.constraints.base import Constraint
from grammask.constraints.grammar.characters import encode, normalize_ranges, read_hex_escape
from grammask.constraints.grammar.model import ParsedGrammar
from grammask.constraints.grammar.names import Names
from grammask.constraints.grammar.nodes import (
    Arena,
    Characters,
    Embedded,
    Literal,
    NodeId,
    OtherToken,
    Rule,
    RuleRef,
)
from grammask.constraints.grammar.scanning import Cursor
from grammask.constraints.grammar.source import Source
from grammask.engine import time_limit

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}


def parse_gbnf(text: str, root: str, holes: Mapping[str, Constraint]) -> ParsedGrammar:
    """Reads a GBNF grammar.

    Raises:
        ConstraintSyntaxError: malformed text, an undefined or repeated rule, no rule named root.
    """
    return _Parser(text, root, holes).parse()


@dataclass
class _Group:
    """An open parenthesis (or the rule itself): finished alternatives, and the one being read."""

    opened_at: int
    alternatives: list[NodeId] = field(default_factory=list)
    sequence: list[NodeId] = field(default_factory=list)


class _Parser:
    def __init__(self, text: str, root: str, holes: Mapping[str, Constraint]) -> None:
        self._source = Source(text, "GBNF")
        self._cursor = Cursor(self._source, comments=("#",))
        self._arena = Arena()
        self._names = Names(self._source, holes)
        self._root = root

    def parse(self) -> ParsedGrammar:
        cursor = self._cursor
        cursor.skip(newlines=True)
        while not cursor.at_end:
            self._rule()
            cursor.skip(newlines=True)
        start = self._names.finish(self._root, "root")
        return ParsedGrammar(
            source=self._source,
            arena=self._arena,
            rules=self._names.rules,
            start=self._arena.add(start),
            start_rule=self._root,
            embedded=self._names.embedded,
            pattern_offsets={},
            notes=self._names.notes,
        )

    def _rule(self) -> None:
        cursor = self._cursor
        offset = cursor.offset
        name = cursor.take_while(_NAME)
        if not name:
            raise cursor.unexpected("a rule name")
        cursor.skip()
        if not cursor.take("::="):
            raise cursor.unexpected(f"'::=' after the rule name {name}")
        cursor.skip(newlines=True)
        self._names.define(Rule(name, self._alternatives(offset), offset))

    def _alternatives(self, offset: int) -> NodeId:
        """Reads up to the end of the rule: a line break outside every group that no '|' follows."""
        cursor, arena = self._cursor, self._arena
        groups = [_Group(offset)]
        while True:
            time_limit.check()
            group = groups[-1]
            nested = len(groups) > 1
            cursor.skip(newlines=nested)
            start = cursor.offset
            char = cursor.peek()
            if char == "" and not nested:
                break
            if char in "\r\n" and not nested:
                cursor.skip(newlines=True)
                if cursor.peek() != "|":
                    break
            elif char == "|":
                cursor.advance()
                cursor.skip(newlines=True)
                group.alternatives.append(arena.concat(group.sequence))
                group.sequence = []
            elif char == "(":
                cursor.advance()
                groups.append(_Group(start))
            elif char == ")":
                if not nested:
                    raise self._source.error(start, "this ')' closes nothing")
                cursor.advance()
                groups.pop()
                groups[-1].sequence.append(self._close(group))
            elif char in "*+?{" and char:
                if not group.sequence:
                    raise self._source.error(start, f"nothing stands before this '{char}' that could be repeated")
                low, high = cursor.repetition(newlines=nested)
                group.sequence.append(arena.repeat(group.sequence.pop(), low, high))
            elif char == "" and nested:
                raise self._source.error(group.opened_at, "this '(' is never closed")
            else:
                group.sequence.append(self._item(char))
        group = groups.pop()
        return self._close(group)

    def _close(self, group: _Group) -> NodeId:
        return self._arena.union([*group.alternatives, self._arena.concat(group.sequence)])

    def _item(self, char: str) -> NodeId:
        cursor, arena = self._cursor, self._arena
        start = cursor.offset
        if char == '"':
            return arena.add(Literal(self._literal()))
        if char == "[":
            return self._character_class()
        if char == ".":
            cursor.advance()
            return arena.add(Characters(normalize_ranges((), negated=True)))
        if char == "<":
            return arena.add(cursor.token())
        if char == "!":
            cursor.advance()
            if cursor.peek() != "<":
                raise cursor.unexpected("a token such as <|end|> after '!'")
            return arena.add(OtherToken(cursor.token()))
        name = cursor.take_while(_NAME)
        if not name:
            raise cursor.unexpected("a literal, a character class, a group, a rule name or the end of the rule")
        embedded = self._names.refer(name, start)
        return arena.add(RuleRef(name) if embedded is None else Embedded(embedded))

    def _literal(self) -> bytes:
        cursor = self._cursor
        start = cursor.offset
        cursor.advance()
        code_points: list[int] = []
        while cursor.peek() != '"':
            time_limit.check()
            if cursor.at_end:
                raise self._source.error(start, "this string is never closed", hint='end it with "')
            code_points.append(self._character())
        cursor.advance()
        return encode(self._source, code_points, start)

    def _character(self) -> int:
        cursor = self._cursor
        if cursor.peek() != "\\":
            return ord(cursor.advance())
        escape = cursor.peek(1)
        if escape in ("x", "u", "U"):
            code_point, cursor.offset = read_hex_escape(self._source, cursor.offset)
            return code_point
        if escape not in _SIMPLE_ESCAPES:
            shown = f"\\{escape}" if escape.isprintable() else "a backslash before the end of the line"
            raise self._source.error(
                cursor.offset,
                f"{shown} is not an escape",
                hint=r"the escapes are \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH; a backslash itself is \\",
            )
        cursor.offset += 2
        return ord(_SIMPLE_ESCAPES[escape])

    def _character_class(self) -> NodeId:
        cursor = self._cursor
        start = cursor.offset
        cursor.advance()
        negated = cursor.take("^")
        ranges: list[tuple[int, int]] = []
        while cursor.peek() != "]":
            if cursor.at_end:
                raise self._source.error(start, "this character class is never closed", hint="end it with ]")
            low_at = cursor.offset
            low = high = self._character()
            if cursor.peek() == "-" and cursor.peek(1) not in ("]", ""):
                cursor.advance()
                high = self._character()
                if high < low:
                    raise self._source.error(low_at, "the ends of this range are in the wrong order")
            ranges.append((low, high))
        cursor.advance()
        if not ranges:
            raise self._source.error(
                start, "an empty character class matches nothing", hint='any character is . and the empty word is ""'
            )
        kept = normalize_ranges(ranges, negated=negated)
        if not kept:
            raise self._source.error(start, "no character of UTF-8 text belongs to this class")
        return self._arena.add(Characters(kept))
