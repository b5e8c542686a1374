"""A slow, small implementation of the regular part of the core's Builder, to test against.

Expressions are interned tuples, matching is by Brzozowski derivatives, emptiness by walking all derivatives. It
shares no code with the core. Byte sets are integers of 256 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

Expr = int
DigitRanges = list[tuple[int, int]]

_ALL_BYTES = (1 << 256) - 1
_SURROGATES = (0xD800, 0xDFFF)
_SHORT_ESCAPES = {
    0x22: b'"', 0x5C: b"\\", 0x2F: b"/", 0x08: b"b", 0x0C: b"f", 0x0A: b"n", 0x0D: b"r", 0x09: b"t",
}  # fmt: skip
_UTF8_LENGTHS = [(0x0, 0x7F, 0x00, 0), (0x80, 0x7FF, 0xC0, 1), (0x800, 0xFFFF, 0xE0, 2), (0x10000, 0x10FFFF, 0xF0, 3)]


def byte_mask(ranges: Iterable[tuple[int, int]]) -> int:
    """The set of all bytes in inclusive ranges."""
    return reduce(lambda mask, r: mask | ((1 << (r[1] + 1)) - (1 << r[0])), ranges, 0)


def digit_products(low: int, high: int, base: int, digits: int) -> Iterator[DigitRanges]:
    """Products of digit ranges, most significant first, that together hold exactly the numbers low to high."""
    if digits == 1:
        yield [(low, high)]
        return
    unit = base ** (digits - 1)
    first, last = low // unit, high // unit
    if first == last:
        for rest in digit_products(low % unit, high % unit, base, digits - 1):
            yield [(first, first), *rest]
        return
    if low % unit:
        for rest in digit_products(low % unit, unit - 1, base, digits - 1):
            yield [(first, first), *rest]
        first += 1
    tail = None
    if high % unit != unit - 1:
        tail, last = last, last - 1
    if first <= last:
        yield [(first, last)] + [(0, base - 1)] * (digits - 1)
    if tail is not None:
        for rest in digit_products(0, high % unit, base, digits - 1):
            yield [(tail, tail), *rest]


def overlap(low: int, high: int, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts of ``ranges`` within low to high."""
    for first, last in ranges:
        if max(first, low) <= min(last, high):
            yield max(first, low), min(last, high)


class ReferenceBuilder:
    """Methods, arguments and meanings are those of ``grammask._core.Builder``."""

    def __init__(self) -> None:
        self._nodes: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[Any, ...], Expr] = {}
        self._nullable: list[bool] = []
        self._derivatives: dict[tuple[Expr, int], Expr] = {}
        self._empties: dict[Expr, bool] = {}
        self.empty = self._intern(("or",), False)
        self.epsilon = self._intern(("cat",), True)
        self._everything = self._intern(("not", self.empty), True)

    def _intern(self, node: tuple[Any, ...], nullable: bool) -> Expr:
        number = self._numbers.setdefault(node, len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(node)
            self._nullable.append(nullable)
        return number

    # -- leaves

    def _set(self, mask: int) -> Expr:
        return self._intern(("set", mask), False) if mask else self.empty

    def literals(self, words: Sequence[bytes]) -> Expr:
        return self.union([self.literal(word) for word in words])

    def byte_set(self, ranges: Sequence[tuple[int, int]]) -> Expr:
        return self._set(byte_mask(ranges))

    def literal(self, data: bytes) -> Expr:
        return self.concat([self._set(1 << byte) for byte in data])

    def chars(self, ranges: Sequence[tuple[int, int]], spelling: str = "utf8") -> Expr:
        ranges = [
            *overlap(0, _SURROGATES[0] - 1, ranges),
            *overlap(_SURROGATES[1] + 1, 0x10FFFF, ranges),
        ]
        if spelling == "utf8":
            return self._utf8(ranges)
        raw_legal = [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)]
        spelled = [self._utf8([part for low, high in raw_legal for part in overlap(low, high, ranges)])]
        for code_point, letter in _SHORT_ESCAPES.items():
            if list(overlap(code_point, code_point, ranges)) and (spelling == "json" or letter != b"/"):
                spelled.append(self.literal(b"\\" + letter))
        if spelling == "json":
            spelled += [self._hex_escape(low, high) for low, high in overlap(0, 0xFFFF, ranges)]
            for low, high in overlap(0x10000, 0x10FFFF, ranges):
                for upper, lower in digit_products(low - 0x10000, high - 0x10000, 1024, 2):
                    first = self._hex_escape(0xD800 + upper[0], 0xD800 + upper[1])
                    second = self._hex_escape(0xDC00 + lower[0], 0xDC00 + lower[1])
                    spelled.append(self.concat([first, second]))
        else:
            controls = [c for low, high in overlap(0, 0x1F, ranges) for c in range(low, high + 1)]
            spelled += [self.literal(b"\\u%04x" % c) for c in controls if c not in _SHORT_ESCAPES]
        return self.union(spelled)

    def _utf8(self, ranges: Sequence[tuple[int, int]]) -> Expr:
        parts = []
        for low, high, lead, continuations in _UTF8_LENGTHS:
            for first, last in overlap(low, high, ranges):
                for digits in digit_products(first, last, 64, continuations + 1):
                    sets = [(lead + digits[0][0], lead + digits[0][1])]
                    sets += [(0x80 + a, 0x80 + b) for a, b in digits[1:]]
                    parts.append(self.concat([self.byte_set([item]) for item in sets]))
        return self.union(parts)

    def _hex_escape(self, low: int, high: int) -> Expr:
        parts = []
        for digits in digit_products(low, high, 16, 4):
            sets = [{ord(c) for value in range(a, b + 1) for c in (f"{value:x}", f"{value:X}")} for a, b in digits]
            parts.append(self.concat([self.byte_set([(byte, byte) for byte in chosen]) for chosen in sets]))
        return self.concat([self.literal(b"\\u"), self.union(parts)])

    def text(self, text: str, spelling: str = "utf8") -> Expr:
        return self.concat([self.chars([(ord(char), ord(char))], spelling) for char in text])

    # -- combinators

    def concat(self, parts: Sequence[Expr]) -> Expr:
        return reduce(lambda rest, part: self._pair(part, rest), reversed(parts), self.epsilon)

    def _pair(self, first: Expr, second: Expr) -> Expr:
        if self.empty in (first, second):
            return self.empty
        if first == self.epsilon:
            return second
        if second == self.epsilon:
            return first
        if self._nodes[first][0] == "cat":
            return self._pair(self._nodes[first][1], self._pair(self._nodes[first][2], second))
        return self._intern(("cat", first, second), self._nullable[first] and self._nullable[second])

    def union(self, parts: Sequence[Expr]) -> Expr:
        members = self._members("or", parts) - {self.empty}
        if self._everything in members:
            return self._everything
        mask = 0
        for member in list(members):
            if self._nodes[member][0] == "set":
                mask |= self._nodes[member][1]
                members.discard(member)
        if mask:
            members.add(self._set(mask))
        if len(members) == 1:
            return members.pop()
        return self._intern(("or", *sorted(members)), any(self._nullable[member] for member in members))

    def intersection(self, parts: Sequence[Expr]) -> Expr:
        members = self._members("and", parts) - {self._everything}
        if self.empty in members:
            return self.empty
        if len(members) == 1:
            return members.pop()
        if not members:
            return self._everything
        return self._intern(("and", *sorted(members)), all(self._nullable[member] for member in members))

    def _members(self, kind: str, parts: Sequence[Expr]) -> set[Expr]:
        members: set[Expr] = set()
        for part in parts:
            node = self._nodes[part]
            members.update(node[1:] if node[0] == kind else (part,))
        return members

    def complement(self, e: Expr) -> Expr:
        node = self._nodes[e]
        return node[1] if node[0] == "not" else self._intern(("not", e), not self._nullable[e])

    def repeat(self, e: Expr, low: int, high: int | None) -> Expr:
        if high == 0 or e == self.epsilon:
            return self.epsilon
        if e == self.empty:
            return self.epsilon if low == 0 else self.empty
        if self._nullable[e]:
            low = 0
        if (low, high) == (1, 1):
            return e
        return self._intern(("repeat", e, low, high), low == 0)

    def optional(self, e: Expr) -> Expr:
        return self.union([self.epsilon, e])

    # -- questions

    def is_nullable(self, e: Expr) -> bool:
        return self._nullable[e]

    def derivative(self, e: Expr, byte: int) -> Expr:
        """What may follow ``byte`` in words of ``e``."""
        key = (e, byte)
        if key not in self._derivatives:
            self._derivatives[key] = self._derive(self._nodes[e], byte)
        return self._derivatives[key]

    def _derive(self, node: tuple[Any, ...], byte: int) -> Expr:
        kind = node[0]
        if kind == "set":
            return self.epsilon if node[1] >> byte & 1 else self.empty
        if kind == "or":
            return self.union([self.derivative(member, byte) for member in node[1:]])
        if kind == "and":
            return self.intersection([self.derivative(member, byte) for member in node[1:]])
        if kind == "not":
            return self.complement(self.derivative(node[1], byte))
        if kind == "repeat":
            _, body, low, high = node
            rest = self.repeat(body, max(low - 1, 0), None if high is None else high - 1)
            return self._pair(self.derivative(body, byte), rest)
        if len(node) == 1:
            return self.empty
        _, first, second = node
        taken = self._pair(self.derivative(first, byte), second)
        return self.union([taken, self.derivative(second, byte)]) if self._nullable[first] else taken

    def matches(self, e: Expr, data: bytes) -> bool:
        for byte in data:
            e = self.derivative(e, byte)
        return self._nullable[e]

    def is_empty(self, e: Expr) -> bool:
        if e not in self._empties:
            telling = self._telling_bytes(e)
            seen, pending = {e}, [e]
            while pending and not self._nullable[pending[-1]]:
                current = pending.pop()
                fresh = {self.derivative(current, byte) for byte in telling} - seen
                seen |= fresh
                pending += fresh
            self._empties[e] = not pending
        return self._empties[e]

    def _telling_bytes(self, e: Expr) -> list[int]:
        """One byte of each class that no byte set in ``e`` tells apart."""
        masks, seen, pending = set(), {e}, [e]
        while pending:
            node = self._nodes[pending.pop()]
            if node[0] == "set":
                masks.add(node[1])
                continue
            children = node[1:2] if node[0] == "repeat" else node[1:]
            fresh = set(children) - seen
            seen |= fresh
            pending += fresh
        blocks = [_ALL_BYTES]
        for mask in masks:
            blocks = [part for block in blocks for part in (block & mask, block & ~mask) if part]
        return [(block & -block).bit_length() - 1 for block in blocks]
