"""Regular expressions: ``Regex``, and ``lower_pattern`` for constraints that hold patterns.

The dialect is documented in docs/reference/regex.md. The way from text to expression: ``parser`` reads the pattern
into a tree of ``syntax`` nodes over sets of code points, ``lowering`` turns the tree into an expression of the core
in the spelling asked for; ``context`` and ``repetition`` carry anchors and look-arounds.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from grammask.constraints.base import Constraint
from grammask.constraints.regex import syntax
from grammask.constraints.regex.context import Context
from grammask.constraints.regex.lowering import Emitter, Lowering
from grammask.constraints.regex.parser import FLAG_LETTERS, Flags, parse
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Spelling

__all__ = ["Regex", "lower_pattern"]

_MAX_CACHED_LENGTH = 10_000


def lower_pattern(
    pattern: str,
    builder: Builder,
    *,
    spelling: Spelling = "utf8",
    search: bool,
    flags: str = "",
    unicode_classes: bool = False,
) -> Expr:
    """The expression of the texts that match a pattern.

    Args:
        pattern: in the dialect of docs/reference/regex.md.
        builder: makes the expression.
        spelling: how each code point of the text is spelled in bytes; the result holds nothing around it (no quotes).
        search: False: the whole text matches. True: some part of it does (JSON Schema's ``pattern``). Anchors and
            look-arounds see the whole text either way.
        flags: letters out of ``imsx``; ``u`` and ``v`` are accepted and change nothing.
        unicode_classes: whether ``\\d``, ``\\w`` and ``\\b`` go by Unicode instead of ASCII.

    Raises:
        ConstraintSyntaxError, UnsupportedConstraint, ConstraintTooLarge: with the column in the pattern where there
        is one.
    """
    parsed = _parsed(pattern, flags, unicode_classes)
    emitter = Emitter(builder, spelling)
    branches = parsed.search_branches if search else parsed.whole_branches
    if branches is not None:
        return emitter.union([emitter.anchored(branch) for branch in branches])
    lowering = Lowering(emitter, parsed.context)
    tree = parsed.tree
    if search:
        tree = syntax.Concat((syntax.ANY_TEXT, tree, syntax.ANY_TEXT))
    try:
        return lowering.lower(tree, parsed.context.start, lowering.no_rest)
    except RecursionError:
        raise ConstraintTooLarge("the pattern is nested too deeply", hint="flatten the nested groups") from None


class _Parsed:
    """A pattern that has been read.

    Attributes:
        tree: its syntax tree.
        whole_branches, search_branches: the tree as alternatives with anchors at their edges only, if it is of that
            form: for a text that matches as a whole, and for one that holds a match.
        context: the states that its assertions look at; remembers the steps between them.
    """

    def __init__(self, tree: syntax.Node) -> None:
        self.tree = tree

    @cached_property
    def whole_branches(self) -> tuple[syntax.Anchored, ...] | None:
        return syntax.anchored_branches(self.tree, search=False)

    @cached_property
    def search_branches(self) -> tuple[syntax.Anchored, ...] | None:
        return syntax.anchored_branches(self.tree, search=True)

    @cached_property
    def context(self) -> Context:
        return Context(self.tree)


def _read(pattern: str, flags: str, unicode_classes: bool) -> _Parsed:
    initial = Flags(unicode_classes=unicode_classes)
    for letter in flags:
        if letter in FLAG_LETTERS:
            initial = initial._replace(**{FLAG_LETTERS[letter]: True})
        elif letter not in "uv":
            raise ConstraintSyntaxError(f"unknown regular expression flag {letter!r}", hint="known flags: i, m, s, x")
    return _Parsed(parse(pattern, initial))


_read_cached = lru_cache(maxsize=2048)(_read)


def _parsed(pattern: str, flags: str, unicode_classes: bool) -> _Parsed:
    """Reads a pattern; patterns of usual length are remembered."""
    read = _read if len(pattern) > _MAX_CACHED_LENGTH else _read_cached
    return read(pattern, flags, unicode_classes)


class Regex(Constraint):
    """Output that matches a regular expression.

    Args:
        pattern: in the dialect of docs/reference/regex.md: ECMA-262 with the ``u`` flag, with Python's additions.
        flags: letters out of ``i`` (ignore case), ``m`` (^ and $ at line ends), ``s`` (dot matches line ends), ``x``
        (spaces
            and comments); or ``re.RegexFlag`` values.
        search: the output contains a match, instead of being one.
        unicode_classes: ``\\d``, ``\\w`` and ``\\b`` go by Unicode instead of ASCII.

    Raises:
        ConstraintSyntaxError: the pattern is malformed, at ``column``.
        UnsupportedConstraint: it asks for what no automaton can do (backreferences), at ``column``.
        ConstraintTooLarge: it is nested too deeply or counts too far.
    """

    def __init__(
        self, pattern: str, flags: str | int = "", *, search: bool = False, unicode_classes: bool = False
    ) -> None:
        if not isinstance(pattern, str):
            raise TypeError(f"a pattern is a str, not {type(pattern).__name__}")
        self.pattern = pattern
        self.flags = flags if isinstance(flags, str) else _letters(flags)
        self.search = search
        self.unicode_classes = unicode_classes or (not isinstance(flags, str) and bool(flags & re.UNICODE))
        _parsed(pattern, self.flags, self.unicode_classes)

    @property
    def is_regular(self) -> bool:
        return True

    def lower(self, builder: Builder) -> Expr:
        return lower_pattern(
            self.pattern,
            builder,
            search=self.search,
            flags=self.flags,
            unicode_classes=self.unicode_classes,
        )

    def _key(self) -> tuple[Any, ...]:
        return (self.pattern, self.flags, self.search, self.unicode_classes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regex) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}"
            for name, value in (
                ("flags", self.flags),
                ("search", self.search),
                ("unicode_classes", self.unicode_classes),
            )
            if value
        )
        return f"Regex({self.pattern!r}{options})"


def _letters(flags: int) -> str:
    """The letters of ``re`` flags."""
    known = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "", re.UNICODE: ""}
    letters = "".join(letter for flag, letter in known.items() if flags & flag)
    unknown = flags & ~int(re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII | re.UNICODE)
    if unknown:
        raise ConstraintSyntaxError(f"unsupported regular expression flag {re.RegexFlag(unknown)!r}")
    return letters
