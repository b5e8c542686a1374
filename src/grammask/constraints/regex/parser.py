"""Reads a pattern into a syntax tree.

The dialect is ECMA-262 with the ``u`` flag, plus what Python's ``re`` and ECMA's Annex B add where ECMA with ``u``
has an error (docs/reference/regex.md lists it all). Groups are kept on an explicit stack, so nesting costs no
recursion; what limits a pattern is the height of its tree.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from grammask.constraints.regex import codepoints, syntax
from grammask.constraints.regex.codepoints import CodePointSet
from grammask.constraints.regex.syntax import Node
from grammask.constraints.regex.unicode_properties import case_closure, case_variants, property_set, suggestions
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge, UnsupportedConstraint

MAX_HEIGHT = 100
"""Levels of nodes in a tree: bounds the recursion of everything that walks it."""

MAX_PARTS = 300_000
"""Characters with a meaning and runs of ordinary ones: bounds the time for reading a pattern."""

MAX_COUNT = 2**31 - 1
"""The largest count in a quantifier."""


class Flags(NamedTuple):
    """The modifiers in force at a place of the pattern."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    verbose: bool = False
    unicode_classes: bool = False


FLAG_LETTERS = {"i": "ignore_case", "m": "multiline", "s": "dot_all", "x": "verbose"}

LINE_TERMINATORS: CodePointSet = codepoints.of_text("\n\r\u2028\u2029")
DIGITS: CodePointSet = ((0x30, 0x39),)
WORD: CodePointSet = codepoints.from_ranges([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
SPACE: CodePointSet = codepoints.union(
    [((0x09, 0x0D), (0x2000, 0x200A)), codepoints.of_text(" \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff")]
)

_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "a": "\a"}
_QUANTIFIER = re.compile(r"\{(?:([0-9]+)(,([0-9]*))?|,([0-9]*))\}")
_ORDINARY = re.compile(r"[^\\\[\](){}|.^$*+?\ud800-\udfff]+(?![*+?{])")
_OCTAL = re.compile("0[0-7]{0,2}|[0-3][0-7]{2}")
_GROUP_NAME = re.compile(r"[^\W\d]\w*|\$\w*")
_GROUP_FLAGS = re.compile(r"([A-Za-z]*)(?:-([A-Za-z]*))?([:)])")
_VERBOSE_SPACE = " \t\n\r\v\f"


def word_set(flags: Flags) -> CodePointSet:
    """What ``\\w`` matches."""
    ranges = WORD
    if flags.unicode_classes:
        names = ("L", "M", "N", "Pc", "Join_Control")
        ranges = codepoints.union([found for name in names if (found := property_set(name)) is not None])
    return case_closure(ranges) if flags.ignore_case else ranges


def digit_set(flags: Flags) -> CodePointSet:
    """What ``\\d`` matches."""
    return (property_set("Nd") or DIGITS) if flags.unicode_classes else DIGITS


@dataclass
class _Group:
    """A group that is still open; the outermost one is the whole pattern."""

    column: int
    kind: str
    outer_flags: Flags
    branches: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)


class _Parser:
    def __init__(self, pattern: str, flags: Flags) -> None:
        self.pattern = pattern
        self.flags = flags
        self.position = 0
        self.groups = [_Group(0, "", flags)]
        # What a quantifier would apply to: the last of the current parts, or why it cannot.
        self.repeatable: str | None = "nothing to repeat"

    # -- errors

    def _shown(self, message: str, start: int) -> str:
        """The message with the part of the pattern around ``start`` and a caret below it."""
        first = max(0, start - 30)
        window = self.pattern[first : start + 30]
        readable = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in window)
        return f"{message}\n  {readable}\n  {' ' * (start - first)}^"

    def _fail(self, message: str, start: int, hint: str | None = None) -> NoReturn:
        raise ConstraintSyntaxError(self._shown(message, start), column=start + 1, hint=hint)

    def _refuse(self, message: str, start: int, hint: str) -> NoReturn:
        raise UnsupportedConstraint(self._shown(message, start), column=start + 1, hint=hint)

    # -- the main loop

    def parse(self) -> Node:
        pattern, length = self.pattern, len(self.pattern)
        parts = 0
        while self.position < length:
            time_limit.check()
            parts += 1
            if parts > MAX_PARTS:
                raise ConstraintTooLarge(
                    f"a pattern of more than {MAX_PARTS:,} characters, classes and brackets",
                    column=self.position + 1,
                    hint="list many words by grammask.Choice or enum",
                )
            char = pattern[self.position]
            if char in "\\[](){}|.^$*+?" or (self.flags.verbose and (char in _VERBOSE_SPACE or char == "#")):
                self._special(char)
            elif self.flags.ignore_case or self.flags.verbose or not (run := self._literal_run()):
                self.position += 1
                self._atom(self._literal(ord(char)))
            else:
                self.position += len(run)
                self._atom(syntax.Text(run))
        if len(self.groups) > 1:
            group = self.groups[-1]
            self._fail("this group is never closed", group.column, "write \\( for a parenthesis itself")
        return self._close_branches(self.groups[0])

    def _literal_run(self) -> str:
        """The ordinary characters from here on, less the last one if a quantifier follows: it is for that one alone."""
        run = _ORDINARY.match(self.pattern, self.position)
        return run.group() if run else ""

    def _special(self, char: str) -> None:
        start = self.position
        self.position += 1
        if char == "\\":
            self._escape(start)
        elif char == "[":
            self._atom(syntax.chars(self._char_class(start)))
        elif char == "(":
            self._open_group(start)
        elif char == ")":
            self._close_group(start)
        elif char == "|":
            group = self.groups[-1]
            group.branches.append(self._checked(syntax.concat(group.parts), start))
            group.parts = []
            self.repeatable = "nothing to repeat"
        elif char == ".":
            dot = codepoints.ANY if self.flags.dot_all else codepoints.complement(LINE_TERMINATORS)
            self._atom(syntax.Chars(dot))
        elif char == "^":
            self._assertion(syntax.Start(LINE_TERMINATORS if self.flags.multiline else codepoints.EMPTY))
        elif char == "$":
            self._assertion(syntax.End(LINE_TERMINATORS if self.flags.multiline else codepoints.EMPTY))
        elif char in "*+?":
            self._quantify(start, 1 if char == "+" else 0, 1 if char == "?" else None)
        elif char == "{":
            self._brace(start)
        elif char in "]}":
            self._atom(self._literal(ord(char)))
        elif char == "#":
            end = self.pattern.find("\n", start)
            self.position = len(self.pattern) if end < 0 else end + 1

    def _atom(self, node: Node) -> None:
        self.groups[-1].parts.append(node)
        self.repeatable = None

    def _assertion(self, node: Node) -> None:
        self.groups[-1].parts.append(node)
        self.repeatable = "an anchor cannot be repeated"

    def _literal(self, code_point: int) -> Node:
        if self.flags.ignore_case:
            variants = case_variants(code_point)
            if len(variants) > 1:
                return syntax.Chars(codepoints.from_ranges((variant, variant) for variant in variants))
        return syntax.chars(((code_point, code_point),))

    def _checked(self, node: Node, start: int) -> Node:
        if node.height > MAX_HEIGHT:
            message = self._shown(f"the pattern is nested more than {MAX_HEIGHT} levels deep", start)
            raise ConstraintTooLarge(message, column=start + 1, hint="flatten the nested groups")
        return node

    # -- quantifiers

    def _brace(self, start: int) -> None:
        match = _QUANTIFIER.match(self.pattern, start)
        if match is None:
            self._atom(self._literal(ord("{")))
            return
        self.position = match.end()
        exact, comma, upper, upper_only = match.groups()
        low = self._count(exact or "0", start)
        if exact is not None and comma is None:
            high: int | None = low
        else:
            digits = upper if exact is not None else upper_only
            high = self._count(digits, start) if digits else None
        if high is not None and high < low:
            self._fail(f"the least count {low} is greater than the most {high}", start)
        self._quantify(start, low, high)

    def _count(self, digits: str, start: int) -> int:
        digits = digits.lstrip("0") or "0"
        if len(digits) > 10 or int(digits) > MAX_COUNT:
            message = self._shown(f"a count over {MAX_COUNT}", start)
            raise ConstraintTooLarge(message, column=start + 1, hint="use {m,} for no upper limit")
        return int(digits)

    def _quantify(self, start: int, low: int, high: int | None) -> None:
        if self.repeatable is not None:
            self._fail(self.repeatable, start, f"write \\{self.pattern[start]} for the character itself")
        following = self.pattern[self.position : self.position + 1]
        if following == "?":
            self.position += 1
        elif following == "+":
            hint = "leave out the + after the quantifier, or rewrite the pattern without it"
            self._refuse("possessive quantifiers are not supported", self.position, hint)
        parts = self.groups[-1].parts
        parts[-1] = self._checked(syntax.repeat(parts[-1], low, high), start)
        self.repeatable = "a quantifier cannot follow another one"

    # -- groups

    def _open_group(self, start: int) -> None:
        pattern = self.pattern
        kind = "group"
        flags = self.flags
        if pattern.startswith("?", self.position):
            self.position += 1
            rest = pattern[self.position : self.position + 2]
            if rest[:1] == ":":
                self.position += 1
            elif rest[:1] in ("=", "!"):
                kind = "ahead" + rest[0]
                self.position += 1
            elif rest in ("<=", "<!"):
                kind = "behind" + rest[1]
                self.position += 2
            elif rest[:1] == "<" or rest == "P<":
                self._group_name(start, pattern.index("<", self.position) + 1)
            elif rest[:1] == "#":
                end = pattern.find(")", self.position)
                if end < 0:
                    self._fail("this comment is never closed", start)
                self.position = end + 1
                return
            elif rest == "P=":
                self._refuse_backreference(start)
            elif rest[:1] == ">":
                hint = "use (?:...) if the group need not be atomic, or rewrite the pattern"
                self._refuse("atomic groups are not supported", start, hint)
            elif rest[:1] == "(":
                self._refuse("conditional groups are not supported", start, "write the cases as alternatives")
            else:
                new_flags = self._group_flags(start)
                if new_flags is None:
                    return
                flags = new_flags
        self.groups.append(_Group(start, kind, self.flags))
        self.flags = flags
        self.repeatable = "nothing to repeat"

    def _group_name(self, start: int, begin: int) -> None:
        match = _GROUP_NAME.match(self.pattern, begin)
        if match is None or not self.pattern.startswith(">", match.end()):
            self._fail("a group name must be an identifier followed by >", start)
        self.position = match.end() + 1

    def _group_flags(self, start: int) -> Flags | None:
        """The flags inside ``(?i:``; for ``(?i)`` sets them for the whole pattern and returns None."""
        match = _GROUP_FLAGS.match(self.pattern, self.position)
        if match is None or match.end() == self.position + 1:
            self._fail("unknown kind of group", start, "write \\( for a parenthesis itself")
        on, off, end = match.groups()
        flags = self._with_flags(on, True, self.flags)
        if off is not None:
            flags = self._with_flags(off, False, flags)
        self.position = match.end()
        if end == ":":
            return flags
        if len(self.groups) > 1 or self.groups[0].parts or self.groups[0].branches:
            hint = f"write (?{on}:...) around the part that they are for"
            self._fail("flags for the whole pattern must stand at its start", start, hint)
        if off is not None:
            self._fail("flags can be switched off for a group only, as in (?-i:...)", start)
        self.flags = flags
        return None

    def _with_flags(self, letters: str, value: bool, flags: Flags) -> Flags:
        for letter in letters:
            if letter in FLAG_LETTERS:
                flags = flags._replace(**{FLAG_LETTERS[letter]: value})
            elif letter == "a" and value:
                flags = flags._replace(unicode_classes=False)
            elif letter == "u" and value:
                flags = flags._replace(unicode_classes=True)
            else:
                self._fail(f"unknown flag {letter!r}", self.position, "known flags: i, m, s, x, a, u")
        return flags

    def _close_branches(self, group: _Group) -> Node:
        last = self._checked(syntax.concat(group.parts), group.column)
        if not group.branches:
            return last
        return self._checked(syntax.alternation([*group.branches, last]), group.column)

    def _close_group(self, start: int) -> None:
        if len(self.groups) == 1:
            self._fail("this parenthesis closes no group", start, "write \\) for the character itself")
        group = self.groups.pop()
        node = self._close_branches(group)
        self.flags = group.outer_flags
        if group.kind.startswith("ahead"):
            node = syntax.LookAhead(
                syntax.shortest_tail(node), negated=group.kind.endswith("!"), column=group.column + 1
            )
        elif group.kind.startswith("behind"):
            node = syntax.LookBehind(syntax.shortest_head(node), negated=group.kind.endswith("!"))
        self._atom(self._checked(node, group.column))

    # -- escapes

    def _refuse_backreference(self, start: int) -> NoReturn:
        hint = "spell out the alternatives that the group can match"
        self._refuse("backreferences cannot be enforced by an automaton", start, hint)

    def _escape(self, start: int) -> None:
        char = self.pattern[self.position : self.position + 1]
        if char in ("b", "B"):
            self.position += 1
            self._assertion(syntax.WordBoundary(word_set(self.flags), negated=char == "B"))
        elif char == "A":
            self.position += 1
            self._assertion(syntax.Start())
        elif char in ("Z", "z"):
            self.position += 1
            self._assertion(syntax.End())
        elif char == "k" or (char and char in "123456789" and not _OCTAL.match(self.pattern, self.position)):
            self._refuse_backreference(start)
        else:
            value = self._class_escape(start)
            if isinstance(value, int):
                self._atom(self._literal(value))
            else:
                self._atom(syntax.chars(value))

    def _class_escape(self, start: int) -> int | CodePointSet:
        """An escape that stands for a code point or a set of them; the position is after the backslash."""
        pattern = self.pattern
        if self.position >= len(pattern):
            self._fail("the pattern ends in a backslash", start, "write \\\\ for a backslash itself")
        char = pattern[self.position]
        self.position += 1
        lower = char.lower()
        if char in _CONTROL_ESCAPES:
            return ord(_CONTROL_ESCAPES[char])
        if lower in ("d", "w", "s"):
            ranges = SPACE if lower == "s" else digit_set(self.flags) if lower == "d" else word_set(self.flags)
            return self._folded(codepoints.complement(ranges)) if char.isupper() else ranges
        if lower == "p":
            return self._property(start, negated=char == "P")
        if char == "x":
            return self._hex(start, 2)
        if char == "u":
            return self._unicode_escape(start)
        if char == "U":
            return self._hex(start, 8)
        if char == "c":
            letter = pattern[self.position : self.position + 1]
            if not (letter.isascii() and letter.isalpha()):
                self._fail("\\c needs a letter", start, "write \\\\c for a backslash and a c")
            self.position += 1
            return ord(letter) % 32
        if char == "N":
            return self._named_character(start)
        if char in "01234567":
            octal = _OCTAL.match(pattern, self.position - 1)
            if octal is not None:
                self.position = octal.end()
                return int(octal.group(), 8)
        if char.isascii() and char.isalnum():
            self._fail(
                f"unknown escape \\{char}", start, f"write {char} without the backslash for the character itself"
            )
        return ord(char)

    def _hex(self, start: int, digits: int) -> int:
        text = self.pattern[self.position : self.position + digits]
        if re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", text) is None or int(text, 16) > codepoints.LAST:
            self._fail(f"\\{self.pattern[start + 1]} needs {digits} hexadecimal digits of a code point", start)
        self.position += digits
        return int(text, 16)

    def _unicode_escape(self, start: int) -> int:
        if self.pattern.startswith("{", self.position):
            match = re.compile(r"\{([0-9A-Fa-f]+)\}").match(self.pattern, self.position)
            digits = match.group(1).lstrip("0") if match else ""
            if match is None or len(digits) > 6 or int(digits or "0", 16) > codepoints.LAST:
                self._fail("\\u{...} needs hexadecimal digits, at most 10FFFF", start)
            self.position = match.end()
            return int(digits or "0", 16)
        unit = self._hex(start, 4)
        if 0xD800 <= unit <= 0xDBFF:
            low = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})").match(self.pattern, self.position)
            if low is not None:
                self.position = low.end()
                return 0x10000 + ((unit - 0xD800) << 10) + int(low.group(1), 16) - 0xDC00
        return unit

    def _named_character(self, start: int) -> int:
        match = re.compile(r"\{([^}]+)\}").match(self.pattern, self.position)
        if match is None:
            self._fail("\\N needs a character name in braces", start)
        try:
            char = unicodedata.lookup(match.group(1))
        except KeyError:
            char = ""
        if len(char) != 1:
            self._fail(f"unknown character name {match.group(1)!r}", start)
        self.position = match.end()
        return ord(char)

    def _property(self, start: int, *, negated: bool) -> CodePointSet:
        match = re.compile(r"\{(\w+)(?:=(\w+))?\}", re.ASCII).match(self.pattern, self.position)
        if match is None:
            hint = "as in \\p{L}, \\p{Lu}, \\p{Script=Greek}"
            self._fail(f"\\{self.pattern[start + 1]} needs a property in braces", start, hint)
        ranges = property_set(match.group(1), match.group(2))
        if ranges is None:
            name = match.group()[1:-1]
            near = " or ".join(f"\\p{{{suggestion}}}" for suggestion in suggestions(name))
            self._fail(f"unknown Unicode property {name!r}", start, f"did you mean {near}?" if near else None)
        self.position = match.end()
        return self._folded(codepoints.complement(ranges) if negated else ranges)

    def _folded(self, ranges: CodePointSet) -> CodePointSet:
        return case_closure(ranges) if self.flags.ignore_case else ranges

    # -- classes

    def _char_class(self, start: int) -> CodePointSet:
        """The set of ``[...]``; the position is after the opening bracket."""
        pattern = self.pattern
        negated = pattern.startswith("^", self.position)
        self.position += negated
        ranges: list[tuple[int, int]] = []
        while True:
            if self.position >= len(pattern):
                self._fail("this character class is never closed", start, "write \\[ for a bracket itself")
            if pattern[self.position] == "]":
                self.position += 1
                break
            item_start = self.position
            first = self._class_item()
            if (
                pattern.startswith("-", self.position)
                and self.position + 1 < len(pattern)
                and pattern[self.position + 1] != "]"
            ):
                self.position += 1
                last = self._class_item()
                if isinstance(first, int) and isinstance(last, int):
                    if last < first:
                        self._fail(f"the range {chr(first)!r} to {chr(last)!r} is in reverse order", item_start)
                    ranges.append((first, last))
                else:
                    # Annex B of ECMA-262: next to a class such as \w the hyphen is a hyphen.
                    ranges.append((0x2D, 0x2D))
                    for item in (first, last):
                        ranges.extend(((item, item),) if isinstance(item, int) else item)
            else:
                ranges.extend(((first, first),) if isinstance(first, int) else first)
        members = self._folded(codepoints.from_ranges(ranges))
        return codepoints.complement(members) if negated else members

    def _class_item(self) -> int | CodePointSet:
        start = self.position
        char = self.pattern[start]
        self.position += 1
        if char != "\\":
            return ord(char)
        if self.pattern.startswith("b", self.position):
            self.position += 1
            return 0x08
        return self._class_escape(start)


def parse(pattern: str, flags: Flags = Flags()) -> Node:  # noqa: B008 - a Flags is immutable
    """The syntax tree of a pattern.

    Raises:
        ConstraintSyntaxError: the pattern is malformed; ``column`` says where (1-based).
        UnsupportedConstraint: backreferences, possessive quantifiers, atomic and conditional groups.
        ConstraintTooLarge: the tree is more than MAX_HEIGHT levels high, or a count exceeds MAX_COUNT.
    """
    return _Parser(pattern, flags).parse()
