"""Sets of strings as small trees, closed under intersection, union and complement.

A tree says what a string is made of; only when it is needed is it spelled as a byte language, with the spelling of
characters that the place asks for (values may use every JSON escape, keys are spelled in one way only).

    ANY, NONE, Only(texts), Except(texts), Length(low, high), Pattern(source), Format(name), Not(tree), And(trees),
    Or(trees)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from grammask import _core
from grammask.constraints.json_schema import formats
from grammask.engine import time_limit
from grammask.engine.errors import RAISE_LIMITS, ConstraintError, ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Spelling


@dataclass(frozen=True)
class Only:
    texts: frozenset[str]


@dataclass(frozen=True)
class Except:
    texts: frozenset[str]


@dataclass(frozen=True)
class Length:
    """Length in code points."""

    low: int
    high: int | None


@dataclass(frozen=True)
class Pattern:
    """Strings in which the pattern matches somewhere."""

    source: str


@dataclass(frozen=True)
class Format:
    name: str


# Nested conditions share their parts, so that a tree of a hundred levels may have 2^100 paths. Trees over others are
# compared and hashed by identity, and equal ones are made once in a compilation (meet, join, negate).


@dataclass(frozen=True, eq=False)
class Not:
    of: Strings


@dataclass(frozen=True, eq=False)
class And:
    parts: tuple[Strings, ...]


@dataclass(frozen=True, eq=False)
class Or:
    parts: tuple[Strings, ...]


Strings = Only | Except | Length | Pattern | Format | Not | And | Or

ANY = Except(frozenset())
NONE = Only(frozenset())
ALL_CHARACTERS = ((0, 0x10FFFF),)


_not = lru_cache(maxsize=None)(Not)
_and = lru_cache(maxsize=None)(And)
_or = lru_cache(maxsize=None)(Or)


def forget() -> None:
    """Lets go of the trees of a compilation. Those of others that run meanwhile are merely made again."""
    for remembered in (_not, _and, _or):
        remembered.cache_clear()


def meet(parts: Sequence[Strings]) -> Strings:
    only, excepted, rest = _sorted_out(parts, And)
    if any(isinstance(tree, Not) and tree.of in rest for tree in rest):
        return NONE
    lengths = [tree for tree in rest if isinstance(tree, Length)]
    if len(lengths) > 1:
        low = max(length.low for length in lengths)
        high = min((length.high for length in lengths if length.high is not None), default=None)
        if high is not None and high < low:
            return NONE
        rest = {Length(low, high): None, **{tree: None for tree in rest if not isinstance(tree, Length)}}
    never = frozenset[str]().union(*excepted)
    if only:
        kept = Only(frozenset.intersection(*only) - never)
        return _and((kept, *rest)) if rest and kept.texts else kept
    if never or not rest:
        rest[Except(never)] = None
    return _and(tuple(rest)) if len(rest) > 1 else next(iter(rest))


def join(parts: Sequence[Strings]) -> Strings:
    only, excepted, rest = _sorted_out(parts, Or)
    if any(isinstance(tree, Not) and tree.of in rest for tree in rest):
        return ANY
    lengths = _merged([tree for tree in rest if isinstance(tree, Length)])
    if Length(0, None) in lengths:
        return ANY
    rest = {**dict.fromkeys(lengths), **{tree: None for tree in rest if not isinstance(tree, Length)}}
    texts = frozenset[str]().union(*only)
    if excepted:
        left = Except(frozenset.intersection(*excepted) - texts)
        if not left.texts:
            return ANY
        rest[left] = None
    elif texts or not rest:
        rest[Only(texts)] = None
    return _or(tuple(rest)) if len(rest) > 1 else next(iter(rest))


def _sorted_out(
    parts: Sequence[Strings], nested: type[And | Or]
) -> tuple[list[frozenset[str]], list[frozenset[str]], dict[Strings, None]]:
    """The texts of each Only, those of each Except, and all other trees once; trees of the nested kind are opened."""
    only: list[frozenset[str]] = []
    excepted: list[frozenset[str]] = []
    rest: dict[Strings, None] = {}
    for part in parts:
        for tree in part.parts if isinstance(part, nested) else (part,):
            if isinstance(tree, Only):
                only.append(tree.texts)
            elif isinstance(tree, Except):
                excepted.append(tree.texts)
            else:
                rest[tree] = None
    return only, excepted, rest


def _merged(lengths: Sequence[Length]) -> list[Length]:
    """The same lengths as few ranges, in ascending order."""
    merged: list[Length] = []
    for length in sorted(lengths, key=lambda length: length.low):
        last = merged[-1] if merged else None
        if last is None or (last.high is not None and last.high + 1 < length.low):
            merged.append(length)
        elif last.high is not None and (length.high is None or length.high > last.high):
            merged[-1] = Length(last.low, length.high)
    return merged


def negate(tree: Strings) -> Strings:
    if isinstance(tree, Only):
        return Except(tree.texts)
    if isinstance(tree, Except):
        return Only(tree.texts)
    if isinstance(tree, Length):
        # A complement would hide the length from questions that it answers at a glance.
        shorter = [Length(0, tree.low - 1)] if tree.low > 0 else []
        longer = [] if tree.high is None else [Length(tree.high + 1, None)]
        return join([*shorter, *longer])
    if isinstance(tree, Not):
        return tree.of
    if isinstance(tree, And):
        return join([negate(part) for part in tree.parts])
    if isinstance(tree, Or):
        return meet([negate(part) for part in tree.parts])
    return _not(tree)


class StringLanguages:
    """Spells string trees as expressions of one Builder."""

    def __init__(
        self,
        builder: Builder,
        pattern_pointers: Mapping[str, str],
        *,
        literal_spelling: Spelling,
        value_spelling: Spelling,
    ) -> None:
        self._builder = builder
        self._pattern_pointers = pattern_pointers
        self._literal: Spelling = literal_spelling
        self._value: Spelling = value_spelling
        self._cache: dict[tuple[Strings, Spelling], Expr] = {}
        self._quote = builder.literal(b'"')

    def value(self, tree: Strings) -> Expr:
        """The JSON texts of the strings, quotes included."""
        finite = self.finite(tree)
        if finite is not None:
            return self._one_of(finite, self._literal, b'"')
        return self._quoted(self.content(tree, self._value))

    def keys(self, tree: Strings) -> Expr:
        """The JSON texts of the strings as keys: each in one spelling."""
        return self._quoted(self.content(tree, "json-canonical"))

    def is_void(self, tree: Strings) -> bool:
        """Whether no string is in the set."""
        if isinstance(tree, (Except, Length, Format)):
            return isinstance(tree, Length) and tree.high is not None and tree.high < tree.low
        finite = self.finite(tree)
        if finite is not None:
            return not finite
        return self._builder.is_empty(self.content(tree, self._value))

    def holds(self, tree: Strings, text: str) -> bool:
        """Whether the string is in the set."""
        if isinstance(tree, Only):
            return text in tree.texts
        if isinstance(tree, Except):
            return text not in tree.texts
        time_limit.check()
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            return False
        return self._builder.matches(self.content(tree, "utf8"), data)

    def finite(self, tree: Strings) -> frozenset[str] | None:
        """The strings of the set where it is a finite list by its form, else None."""
        if isinstance(tree, Only):
            return tree.texts
        if not isinstance(tree, And):
            return None
        only, excepted, rest = _sorted_out((tree,), And)
        if not only:
            return None
        texts = frozenset.intersection(*only).difference(*excepted)
        return frozenset([text for text in texts if all(self.holds(part, text) for part in rest)])

    def content(self, tree: Strings, spelling: Spelling) -> Expr:
        """The texts of the strings without quotes."""
        key = (tree, spelling)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._content(tree, spelling)
        return found

    def _content(self, tree: Strings, spelling: Spelling) -> Expr:
        builder = self._builder
        if tree == ANY:
            return builder.repeat(builder.chars(ALL_CHARACTERS, spelling), 0, None)
        if isinstance(tree, Length):
            return builder.repeat(builder.chars(ALL_CHARACTERS, spelling), tree.low, tree.high)
        if isinstance(tree, Pattern):
            return self._pattern(tree.source, spelling)
        if isinstance(tree, Format):
            return formats.lower(tree.name, builder, spelling)
        if isinstance(tree, Or):
            return builder.union([self.content(part, spelling) for part in tree.parts])
        finite = self.finite(tree)
        if finite is not None:
            return self._one_of(finite, spelling)
        kept: list[Expr] = []
        excluded: list[Expr] = []
        for part in tree.parts if isinstance(tree, And) else (tree,):
            if isinstance(part, Not):
                excluded.append(self.content(part.of, spelling))
            elif isinstance(part, Except):
                excluded.append(self._one_of(part.texts, spelling))
            else:
                kept.append(self.content(part, spelling))
        if not kept:
            kept.append(self.content(ANY, spelling))
        return builder.intersection([*kept, *map(builder.complement, excluded)])

    def _one_of(self, texts: frozenset[str], spelling: Spelling, around: bytes = b"") -> Expr:
        """One of some texts with a literal on both sides; thousands of them cost no more than their letters."""
        builder = self._builder
        spellable = sorted(filter(is_spellable, texts))
        if spelling == "json":
            mark = builder.literal(around)
            return builder.union([builder.concat([mark, builder.text(text, spelling), mark]) for text in spellable])
        if spelling == "json-canonical":
            spellable = [json.dumps(text, ensure_ascii=False)[1:-1] for text in spellable]
        return builder.literals([around + text.encode() + around for text in spellable])

    def _quoted(self, content: Expr) -> Expr:
        return self._builder.concat([self._quote, content, self._quote])

    def _pattern(self, source: str, spelling: Spelling) -> Expr:
        from grammask.constraints.regex import lower_pattern

        key = f"pattern/{spelling}/{source}" if is_spellable(source) else f"surrogates/{spelling}/{source!a}"
        found = self._builder.memo_get(key)
        if found is not None:
            return found
        try:
            found = lower_pattern(source, self._builder, spelling=spelling, search=True)
            self._builder.memo_set(key, found)
            return found
        except ConstraintError as error:
            hint = f"in the pattern {source!r}" + (f"; {error.hint}" if error.hint else "")
            pointer = self._pattern_pointers.get(source)
            raise type(error)(error.message, pointer=pointer, column=error.column, hint=hint) from error
        except _core.ConstraintTooLargeError as error:
            raise ConstraintTooLarge(
                str(error), pointer=self._pattern_pointers.get(source), hint=RAISE_LIMITS
            ) from error


def is_spellable(text: str) -> bool:
    """Whether a text is free of lone surrogates, which UTF-8 cannot carry."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
