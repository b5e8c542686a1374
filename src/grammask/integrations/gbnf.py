"""Constraints as GBNF, for llama.cpp's own grammar engine: ``llama-server --grammar-file``, ``grammar`` in a request.

    Path("ticket.gbnf").write_text(to_gbnf(grammask.JsonSchema(schema)))

A constraint is lowered as always, but into rules of text beside the expressions of the core. GBNF is context-free and
its characters are code points: what intersects, complements or counts is written out as an automaton where it is
regular; objects whose members come in any order are written out for a few members; the rest is refused. One thing is
narrower: numbers have no exponent, since a whole number such as 120e-1 needs counting. Every number can be written
without one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from grammask import _core
from grammask.engine.errors import ConstraintTooLarge, UnsatisfiableConstraint, UnsupportedConstraint
from grammask.integrations.gbnf_automata import automaton_of

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint

MAX_RULES = 20_000
MAX_ORDERED_ANYHOW = 4
"""Members of an object in any order: every order is written out."""

Expr = int


def to_gbnf(constraint: Constraint) -> str:
    """The grammar of a constraint's outputs; its first rule is ``root``.

    Raises:
        UnsupportedConstraint: GBNF cannot say it exactly.
        ConstraintError: another subclass, as from ``compile``.
    """
    from grammask.engine.vocabulary import Vocabulary

    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)], eos_token_ids=[])
    native = _core.Builder(vocabulary.native)
    writer = GbnfBuilder(native)
    try:
        root = constraint.lower(cast(Any, writer))
        return writer.write(root)
    except _core.ConstraintTooLargeError as error:
        raise ConstraintTooLarge(f"the constraint is too large: {error}") from error


@dataclass(frozen=True)
class _Part:
    """An expression: the core's, where it is call-free, and how to write it.

    Attributes:
        native: of the core's builder; None if it holds calls.
        write: gives its GBNF, an alternative-safe text; may add rules.
    """

    native: Expr | None
    write: Callable[[], str]


class GbnfBuilder:
    """The interface of the core's Builder, writing rules. Only the parts that are reached are written."""

    def __init__(self, native: _core.Builder) -> None:
        self._native = native
        self._parts: list[_Part] = []
        self._written: dict[int, str] = {}
        self._rules: dict[str, str] = {}
        self._bodies: dict[str, Expr] = {}
        self._names = (f"r{number}" for number in itertools.count())
        self._memo: dict[str, Expr] = {}
        self.empty = self._add(native.empty, lambda: self._refuse("an alternative without any text"))
        self.epsilon = self._add(native.epsilon, lambda: '""')

    # -- leaves

    def literal(self, data: bytes) -> Expr:
        if not data:
            return self.epsilon
        return self._add(self._native.literal(data), lambda: _quoted(data))

    def literals(self, words: Sequence[bytes]) -> Expr:
        return self.union([self.literal(word) for word in words])

    def byte_set(self, ranges: Sequence[tuple[int, int]]) -> Expr:
        return self._automaton(self._native.byte_set(ranges))

    def chars(self, ranges: Sequence[tuple[int, int]], spelling: Any = "utf8") -> Expr:
        native = self._native.chars(ranges, spelling)
        if spelling == "utf8":
            return self._add(native, lambda: _char_class([(low, high) for low, high in ranges]))
        return self._automaton(native)

    def text(self, text: str, spelling: Any = "utf8") -> Expr:
        native = self._native.text(text, spelling)
        if spelling == "utf8":
            return self._add(native, lambda: _quoted(text.encode()))
        return self._automaton(native)

    def decimal(self, **options: Any) -> Expr:
        if not options.get("plain", True):
            return self.empty
        return self._automaton(self._native.decimal(**{**options, "exponent": False, "scientific": False}))

    # -- combinators

    def concat(self, parts: Sequence[Expr]) -> Expr:
        some = [part for part in parts if part != self.epsilon]
        if len(some) == 1:
            return some[0]
        if not some:
            return self.epsilon
        return self._add(self._same(some, self._native.concat), lambda: " ".join(map(self._text, some)))

    def union(self, parts: Sequence[Expr]) -> Expr:
        some = [part for part in dict.fromkeys(parts) if not self._is_nothing(part)]
        if len(some) == 1:
            return some[0]
        if not some:
            return self.empty
        return self._add(
            self._same(some, self._native.union), lambda: f"({' | '.join(self._text(part) for part in some)})"
        )

    def intersection(self, parts: Sequence[Expr]) -> Expr:
        return self._automaton(
            self._only_native(parts, self._native.intersection, "an intersection of recursive parts")
        )

    def complement(self, e: Expr) -> Expr:
        return self._automaton(self._only_native([e], lambda one: self._native.complement(one[0]), "a complement"))

    def repeat(self, e: Expr, low: int, high: int | None) -> Expr:
        if high == 0 or e == self.epsilon:
            return self.epsilon
        if (low, high) == (1, 1):
            return e
        bounds = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
        bounds = bounds or (f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}")
        return self._add(
            self._same([e], lambda one: self._native.repeat(one[0], low, high)),
            lambda: f"{self._unit(e)}{bounds}",
        )

    def optional(self, e: Expr) -> Expr:
        return self.repeat(e, 0, 1)

    # -- frames and recursion

    def call(self, e: Expr) -> Expr:
        return self._add(None, lambda: self._rule(e))

    def rule(self, name: str) -> Expr:
        own = next(self._names)
        place = len(self._parts)

        def write() -> str:
            if own not in self._rules:
                self._rules[own] = ""
                self._rules[own] = self._text(self._bodies[str(place)])
            return own

        return self._add(None, write)

    def define(self, rule: Expr, body: Expr) -> None:
        self._bodies[str(rule)] = body

    def special_token(self, token_id: int) -> Expr:
        raise UnsupportedConstraint("GBNF knows no special tokens by their id", hint="write the token's text")

    def object(
        self,
        members: Sequence[tuple[bytes | Expr, bool, Sequence[tuple[Expr, int]]]],
        *,
        open: Expr,
        colon: Expr,
        comma: Expr,
        close: Expr,
        min_members: int = 0,
        max_members: int | None = None,
        ordered: bool = True,
        obligations: int = 0,
        dependencies: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> Expr:
        if obligations or dependencies:
            self._refuse("an object in which one member asks for another one")
        pairs: list[Expr] = []
        for key, _, values in members:
            name = self.literal(key) if isinstance(key, bytes) else key
            pairs.append(self.concat([name, colon, self.union([value for value, _ in values])]))
        free = [i for i, (key, _, _) in enumerate(members) if not isinstance(key, bytes)]
        fixed = [i for i in range(len(members)) if i not in free]
        required = {i for i in fixed if members[i][1]}
        limited = min_members > len(required) or max_members is not None
        if free:
            if any(not self._is_nothing(pairs[i]) for i in free):
                self._refuse("an object with further members, whose names must differ,")
            free = []
        if limited and max_members is not None and max_members >= len(fixed) and min_members <= len(required):
            limited = False
        if not ordered and len(fixed) > 1:
            if len(fixed) > MAX_ORDERED_ANYHOW:
                self._refuse(f"an object of {len(fixed)} members in any order")
            return self._objects(fixed, required, pairs, (open, comma, close), min_members, max_members)
        if limited:
            return self._objects(fixed, required, pairs, (open, comma, close), min_members, max_members, ordered=True)
        return self.concat([open, self._ordered(fixed, required, pairs, comma), close])

    def unique_array(self, item: Expr, **options: Any) -> Expr:
        raise UnsupportedConstraint("GBNF cannot say that the items of an array differ (uniqueItems)")

    def counted_array(self, kinds: Sequence[Expr], *_: Any, **options: Any) -> Expr:
        raise UnsupportedConstraint("GBNF cannot say whether the items of an array differ (uniqueItems)")

    def _ordered(self, fixed: list[int], required: set[int], pairs: list[Expr], comma: Expr) -> Expr:
        """Members in their order, some of them optional: a rule for what may follow each of them."""
        # after[i]: what may stand from member i on, once a member has been written.
        after = first = self.epsilon
        for i in reversed(fixed):
            pair = pairs[i]
            here = self.concat([pair, after])
            first = here if i in required else self.union([here, first])
            following = self.concat([comma, here])
            after = self._shared(following if i in required else self.union([following, after]))
        return first

    def _objects(
        self,
        fixed: list[int],
        required: set[int],
        pairs: list[Expr],
        marks: tuple[Expr, Expr, Expr],
        low: int,
        high: int | None,
        *,
        ordered: bool = False,
    ) -> Expr:
        """Every allowed choice of members, in every order, written out."""
        if len(fixed) > MAX_ORDERED_ANYHOW + 4:
            self._refuse(f"an object of {len(fixed)} members whose number is limited")
        open_, comma, close = marks
        choices = []
        for count in range(max(low, len(required)), len(fixed) + 1 if high is None else min(high, len(fixed)) + 1):
            pick = itertools.combinations if ordered else itertools.permutations
            for chosen in pick(fixed, count):
                if required <= set(chosen):
                    body = [part for i in chosen for part in (comma, pairs[i])][1:]
                    choices.append(self.concat([open_, *body, close]))
        return self.union(choices)

    # -- what constraints keep for each other

    def memo_get(self, key: str) -> Expr | None:
        return self._memo.get(key)

    def memo_set(self, key: str, e: Expr) -> None:
        self._memo[key] = e

    # -- questions, which the core answers for call-free expressions

    def is_empty(self, e: Expr) -> bool:
        native = self._parts[e].native
        return native is not None and self._native.is_empty(native)

    def is_nullable(self, e: Expr) -> bool:
        return self._native.is_nullable(self._required(e))

    def count_words(self, e: Expr, limit: int) -> int:
        return self._native.count_words(self._required(e), limit)

    def shortest(self, e: Expr) -> bytes | None:
        return self._native.shortest(self._required(e))

    def matches(self, e: Expr, data: bytes) -> bool:
        return self._native.matches(self._required(e), data)

    # -- writing

    def write(self, root: Expr) -> str:
        """All rules.

        Raises:
            UnsatisfiableConstraint: there is no text.
        """
        if self._is_nothing(root):
            raise UnsatisfiableConstraint("no output satisfies this constraint")
        body = self._text(root)
        rules = {"root": body, **self._rules}
        return "".join(f"{name} ::= {text}\n" for name, text in rules.items())

    def _add(self, native: Expr | None, write: Callable[[], str]) -> Expr:
        self._parts.append(_Part(native, write))
        return len(self._parts) - 1

    def _text(self, e: Expr) -> str:
        if e not in self._written:
            if len(self._rules) > MAX_RULES:
                raise ConstraintTooLarge(f"the grammar would have more than {MAX_RULES} rules")
            self._written[e] = self._parts[e].write()
        return self._written[e]

    def _unit(self, e: Expr) -> str:
        """The text of an expression, as one item that a repetition binds to."""
        return f"({self._text(e)})"

    def _rule(self, e: Expr) -> str:
        """The name of a rule for an expression."""
        text = self._text(e)
        for name, known in self._rules.items():
            if known == text:
                return name
        name = next(self._names)
        self._rules[name] = text
        return name

    def _shared(self, e: Expr) -> Expr:
        """An expression that is written once, as a rule, however often it is used."""
        if e == self.epsilon:
            return e
        return self._add(self._parts[e].native, lambda: self._rule(e))

    def _automaton(self, native: Expr) -> Expr:
        return self._add(native, lambda: self._automaton_text(native))

    def _automaton_text(self, native: Expr) -> str:
        """A rule for each state: what follows it."""
        automaton = automaton_of(self._native, native)
        names = [next(self._names) for _ in automaton.arcs]
        for name, arcs, accepts in zip(names, automaton.arcs, automaton.accepting, strict=True):
            targets: dict[int, list[tuple[int, int]]] = {}
            for low, high, target in arcs:
                targets.setdefault(target, []).append((low, high))
            choices = [f"{_char_class(ranges)} {names[target]}" for target, ranges in targets.items()]
            self._rules[name] = " | ".join([*choices, *(['""'] if accepts else [])])
        return names[0]

    def _same(self, parts: Sequence[Expr], combine: Callable[[list[Expr]], Expr]) -> Expr | None:
        natives = [self._parts[part].native for part in parts]
        return None if any(native is None for native in natives) else combine(cast(list[Expr], natives))

    def _only_native(self, parts: Sequence[Expr], combine: Callable[[list[Expr]], Expr], what: str) -> Expr:
        native = self._same(parts, combine)
        if native is None:
            self._refuse(what)
        return cast(Expr, native)

    def _required(self, e: Expr) -> Expr:
        native = self._parts[e].native
        if native is None:
            raise UnsupportedConstraint("GBNF cannot say this constraint: it asks about a recursive part of itself")
        return native

    def _is_nothing(self, e: Expr) -> bool:
        native = self._parts[e].native
        return native is not None and self._native.is_empty(native)

    def _refuse(self, what: str) -> Any:
        raise UnsupportedConstraint(
            f"GBNF cannot say {what} exactly",
            hint='property_order="schema", additionalProperties false, or grammask\'s own engine',
        )


def _quoted(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UnsupportedConstraint("GBNF holds characters, and this text is no UTF-8") from error
    escaped = "".join(_escaped(character) if character in '"\\' or character < " " else character for character in text)
    return f'"{escaped}"'


def _char_class(ranges: Sequence[tuple[int, int]]) -> str:
    kept = _without_surrogates(ranges)
    return "[" + "".join(_bound(low) if low == high else f"{_bound(low)}-{_bound(high)}" for low, high in kept) + "]"


def _without_surrogates(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    kept = []
    for low, high in ranges:
        if low < 0xD800 <= high:
            kept.append((low, 0xD7FF))
        if high > 0xDFFF >= low:
            kept.append((0xE000, high))
        elif not 0xD800 <= low <= 0xDFFF and not low < 0xD800 <= high:
            kept.append((low, high))
    return kept


def _bound(code: int) -> str:
    if chr(code).isascii() and chr(code).isalnum():
        return chr(code)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _escaped(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or (
        "\\" + character if character in '"\\' else f"\\x{ord(character):02X}"
    )
