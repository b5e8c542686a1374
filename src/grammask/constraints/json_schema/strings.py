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


@dataclass(frozen=True)
class Not:
    of: Strings


@dataclass(frozen=True)
class And:
    parts: tuple[Strings, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Strings, ...]


Strings = Only | Except | Length | Pattern | Format | Not | And | Or

ANY = Except(frozenset())
NONE = Only(frozenset())
ALL_CHARACTERS = ((0, 0x10FFFF),)


def meet(parts: Sequence[Strings]) -> Strings:
    rest: dict[Strings, None] = {}
    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()
    for part in parts:
        for tree in part.parts if isinstance(part, And) else (part,):
            if isinstance(tree, Only):
                only = tree.texts if only is None else only & tree.texts
            elif isinstance(tree, Except):
                never |= tree.texts
            else:
                rest[tree] = None
    if any(isinstance(tree, Not) and tree.of in rest for tree in rest):
        return NONE
    lengths = [tree for tree in rest if isinstance(tree, Length)]
    if len(lengths) > 1:
        low = max(length.low for length in lengths)
        high = min((length.high for length in lengths if length.high is not None), default=None)
        if high is not None and high < low:
            return NONE
        rest = {Length(low, high): None, **{tree: None for tree in rest if not isinstance(tree, Length)}}
    if only is not None:
        kept = Only(only - never)
        return And((kept, *rest)) if rest and kept.texts else kept
    if never or not rest:
        rest[Except(never)] = None
    return And(tuple(rest)) if len(rest) > 1 else next(iter(rest))


def join(parts: Sequence[Strings]) -> Strings:
    rest: dict[Strings, None] = {}
    texts: frozenset[str] = frozenset()
    allowed_but: frozenset[str] | None = None
    for part in parts:
        for tree in part.parts if isinstance(part, Or) else (part,):
            if isinstance(tree, Only):
                texts |= tree.texts
            elif isinstance(tree, Except):
                allowed_but = tree.texts if allowed_but is None else allowed_but & tree.texts
            else:
                rest[tree] = None
    if any(isinstance(tree, Not) and tree.of in rest for tree in rest):
        return ANY
    lengths = _merged([tree for tree in rest if isinstance(tree, Length)])
    if Length(0, None) in lengths:
        return ANY
    rest = {**dict.fromkeys(lengths), **{tree: None for tree in rest if not isinstance(tree, Length)}}
    if allowed_but is not None:
        left = Except(allowed_but - texts)
        if not left.texts:
            return ANY
        rest[left] = None
    elif texts or not rest:
        rest[Only(texts)] = None
    return Or(tuple(rest)) if len(rest) > 1 else next(iter(rest))


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
    return Not(tree)


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
        if isinstance(tree, Only):
            return self._literals(tree.texts)
        if isinstance(tree, And) and any(isinstance(part, Only) for part in tree.parts):
            return self._literals(self._finite(tree))
        return self._quoted(self.content(tree, self._value))

    def keys(self, tree: Strings) -> Expr:
        """The JSON texts of the strings as keys: each in one spelling."""
        return self._quoted(self.content(tree, "json-canonical"))

    def is_void(self, tree: Strings) -> bool:
        """Whether no string is in the set."""
        if isinstance(tree, Only):
            return not tree.texts
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
        if isinstance(tree, And) and any(isinstance(part, Only) for part in tree.parts):
            return self._finite(tree)
        return None

    def content(self, tree: Strings, spelling: Spelling) -> Expr:
        """The texts of the strings without quotes."""
        key = (tree, spelling)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._content(tree, spelling)
        return found

    def _content(self, tree: Strings, spelling: Spelling) -> Expr:
        builder = self._builder
        if isinstance(tree, Except):
            anything = builder.repeat(builder.chars(ALL_CHARACTERS, spelling), 0, None)
            if not tree.texts:
                return anything
            return builder.intersection([anything, builder.complement(self._content(Only(tree.texts), spelling))])
        if isinstance(tree, Only):
            return self._one_of(tree.texts, spelling)
        if isinstance(tree, Length):
            return builder.repeat(builder.chars(ALL_CHARACTERS, spelling), tree.low, tree.high)
        if isinstance(tree, Pattern):
            return self._pattern(tree.source, spelling)
        if isinstance(tree, Format):
            return formats.lower(tree.name, builder, spelling)
        if isinstance(tree, Not):
            return builder.intersection(
                [self.content(ANY, spelling), builder.complement(self.content(tree.of, spelling))]
            )
        if isinstance(tree, Or):
            return builder.union([self.content(part, spelling) for part in tree.parts])
        if any(isinstance(part, Only) for part in tree.parts):
            return self._content(Only(self._finite(tree)), spelling)
        excluded: list[Strings] = [part.of for part in tree.parts if isinstance(part, Not)]
        excluded += [Only(part.texts) for part in tree.parts if isinstance(part, Except) and part.texts]
        parts = [self.content(part, spelling) for part in tree.parts if not isinstance(part, (Not, Except))]
        if not parts:
            parts.append(self.content(ANY, spelling))
        parts += [builder.complement(self.content(part, spelling)) for part in excluded]
        return builder.intersection(parts)

    def _finite(self, tree: And) -> frozenset[str]:
        texts: frozenset[str] | None = None
        for part in tree.parts:
            if isinstance(part, Only):
                texts = part.texts if texts is None else texts & part.texts
        assert texts is not None
        rest = [part for part in tree.parts if not isinstance(part, Only)]
        return frozenset([text for text in texts if all(self.holds(part, text) for part in rest)])

    def _literals(self, texts: frozenset[str]) -> Expr:
        return self._one_of(texts, self._literal, b'"')

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
