"""Expressions as plain tuples that can be lowered twice: into a Builder of the core, and into the slow recogniser.

``("literal", bytes)``, ``("set", ranges)``, ``("chars", code points, spelling)``, ``("text", str, spelling)``,
``("concat", parts)``, ``("union", parts)``, ``("intersection", parts)``, ``("complement", e)``,
``("repeat", e, low, high)``, ``("call", e)``, ``("rule", name)``, ``("token", id)``,
``("object", members, options)``, ``("unique", item, prefix, options)``, ``("counted", kinds, positions, options)``.

Members of objects are ``(keys, required, values)``: ``bytes`` for a literal key, a tuple of ``bytes`` for a family of
so many keys; values are ``(expression, obligations)``. Items of unique arrays and kinds of counted ones are unions of
literals that are JSON.
Options are pairs of name and value.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grammask import _core
from support import recogniser as slow

Expression = tuple[Any, ...]
Rules = Mapping[str, Expression]

_SHORT = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}


def spellings(code_point: int, spelling: str) -> Iterator[bytes]:
    """Every spelling of a code point, straight from RFC 8259."""
    if 0xD800 <= code_point <= 0xDFFF:
        return
    raw = chr(code_point)
    if spelling == "utf8":
        yield raw.encode()
        return
    if spelling == "json-canonical":
        yield json.dumps(raw, ensure_ascii=False)[1:-1].encode()
        return
    if code_point >= 0x20 and raw not in '"\\':
        yield raw.encode()
    if code_point in _SHORT:
        yield b"\\" + _SHORT[code_point].encode()
    units = raw.encode("utf-16-be")
    digits = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
    cases = [sorted({digit, digit.upper()}) for digit in "".join(digits)]
    for choice in itertools.product(*cases):
        text = "".join(choice)
        yield "".join("\\u" + text[i : i + 4] for i in range(0, len(text), 4)).encode()


# -- into the core


def lower(b: _core.Builder, e: Expression, rules: Mapping[str, int]) -> int:
    """The expression in a Builder; ``rules`` are the rules made before."""
    kind = e[0]
    if kind == "literal":
        return b.literal(e[1])
    if kind == "set":
        return b.byte_set(e[1])
    if kind == "chars":
        return b.chars([(c, c) for c in e[1]], e[2])
    if kind == "text":
        return b.text(e[1], e[2])
    if kind in ("concat", "union", "intersection"):
        parts = [lower(b, part, rules) for part in e[1]]
        return {"concat": b.concat, "union": b.union, "intersection": b.intersection}[kind](parts)
    if kind == "complement":
        return b.complement(lower(b, e[1], rules))
    if kind == "repeat":
        return b.repeat(lower(b, e[1], rules), e[2], e[3])
    if kind == "call":
        return b.call(lower(b, e[1], rules))
    if kind == "rule":
        return rules[e[1]]
    if kind == "token":
        return b.special_token(e[1])
    if kind == "object":
        members: list[Any] = []
        for keys, required, values in e[1]:
            key = keys if isinstance(keys, bytes) else b.union([b.literal(k) for k in keys])
            members.append((key, required, [(lower(b, value, rules), mask) for value, mask in values]))
        marks = {name: b.literal(text) for name, text in _MARKS.items()}
        return b.object(members, **marks, **dict(e[2]))
    if kind == "unique":
        prefix = [lower(b, item, rules) for item in e[2]]
        return b.unique_array(lower(b, e[1], rules), prefix=prefix, **_array_marks(b), **dict(e[3]))
    if kind == "counted":
        kinds = [lower(b, item, rules) for item in e[1]]
        return b.counted_array(kinds, e[2], **_array_marks(b), **dict(e[3]))
    raise AssertionError(kind)


_MARKS = {"open": b"{", "colon": b":", "comma": b",", "close": b"}"}


def _array_marks(b: _core.Builder) -> dict[str, int]:
    return {"open": b.literal(b"["), "comma": b.literal(b","), "close": b.literal(b"]")}


def compile_native(vocabulary: _core.Vocabulary, root: Expression, rules: Rules | None = None) -> _core.Compiled:
    """The compiled constraint. Raises ValueError if the language is empty."""
    b = _core.Builder(vocabulary)
    made = {name: b.rule(name) for name in rules or {}}
    for name, body in (rules or {}).items():
        b.define(made[name], lower(b, body, made))
    return b.compile(lower(b, root, made))


# -- into the recogniser


def recognise(root: Expression, rules: Rules | None = None, alphabet: Sequence[int] = ()) -> slow.Recogniser:
    """The recogniser. alphabet: the bytes over which complements are taken."""
    bodies: dict[slow.Symbol, slow.Dfa] = {}
    letters = {e for e in _parts([root, *(rules or {}).values()]) if e[0] in ("call", "rule")}
    whole = [*alphabet, *letters]

    def dfa(e: Expression) -> slow.Dfa:
        kind = e[0]
        if kind == "literal":
            return slow.word(tuple(e[1]))
        if kind == "set":
            return slow.words([(byte,) for low, high in e[1] for byte in range(low, high + 1)])
        if kind == "chars":
            return slow.words([tuple(s) for c in e[1] for s in spellings(c, e[2])])
        if kind == "text":
            return slow.concat([slow.words([tuple(s) for s in spellings(ord(c), e[2])]) for c in e[1]])
        if kind == "concat":
            return slow.concat([dfa(part) for part in e[1]])
        if kind == "union":
            return slow.union([dfa(part) for part in e[1]])
        if kind == "intersection":
            return slow.intersection([dfa(part) for part in e[1]])
        if kind == "complement":
            return slow.complement(dfa(e[1]), whole)
        if kind == "repeat":
            return slow.repeat(dfa(e[1]), e[2], e[3])
        if kind == "call":
            bodies.setdefault(e, dfa(e[1]))
            return slow.word((e,))
        if kind in ("rule", "token"):
            return slow.word((e,))
        if kind == "object":
            values = {value: dfa(value) for _, _, alternatives in e[1] for value, _ in alternatives}
            return _substituted(slow.words(_object_words(e[1], **dict(e[2]))), values)
        if kind == "unique":
            return slow.words([tuple(text) for text in _unique_texts(e[1], e[2], **dict(e[3]))])
        if kind == "counted":
            return slow.words([tuple(text) for text in _counted_texts(e[1], e[2], **dict(e[3]))])
        raise AssertionError(kind)

    made = dfa(root)
    for name, body in (rules or {}).items():
        bodies["rule", name] = dfa(body)
    return slow.Recogniser(made, bodies)


def _parts(expressions: Sequence[Expression]) -> Iterator[Expression]:
    for e in expressions:
        yield e
        if e[0] in ("concat", "union", "intersection"):
            yield from _parts(e[1])
        elif e[0] in ("complement", "repeat", "call"):
            yield from _parts([e[1]])
        elif e[0] == "object":
            yield from _parts([value for _, _, values in e[1] for value, _ in values])


def _substituted(words: slow.Dfa, values: Mapping[Expression, slow.Dfa]) -> slow.Dfa:
    """The words with ``("value", e)`` replaced by the words of e, by exploring sets of positions in both."""

    def closed(places: set[tuple[Any, ...]]) -> frozenset[tuple[Any, ...]]:
        work = list(places)
        for place in work:
            outer, value, inner = place
            if value is None:
                new = [
                    (target, symbol[1], 0) for symbol, target in words.edges[outer].items() if isinstance(symbol, tuple)
                ]
            else:
                new = [(outer, None, 0)] if values[value].accepting[inner] else []
            for item in new:
                if item not in places:
                    places.add(item)
                    work.append(item)
        return frozenset(places)

    def step(places: frozenset[tuple[Any, ...]]) -> Mapping[slow.Symbol, Any]:
        following: dict[slow.Symbol, set[tuple[Any, ...]]] = {}
        for outer, value, inner in places:
            edges = words.edges[outer] if value is None else values[value].edges[inner]
            for symbol, target in edges.items():
                if value is None and isinstance(symbol, tuple):
                    continue
                place = (target, None, 0) if value is None else (outer, value, target)
                following.setdefault(symbol, set()).add(place)
        return {symbol: closed(found) for symbol, found in following.items()}

    return slow.explore(
        closed({(0, None, 0)}), step, lambda places: any(v is None and words.accepting[o] for o, v, _ in places)
    )


def _object_words(
    members: Sequence[tuple[Any, bool, Sequence[tuple[Expression, int]]]],
    min_members: int = 0,
    max_members: int | None = None,
    ordered: bool = True,
    obligations: int = 0,
    dependencies: Sequence[tuple[int, Sequence[int]]] = (),
) -> Iterator[list[Any]]:
    """Every object as a word of bytes and ``("value", e)``, by trying all sequences of keys."""
    keys = [(i, key) for i, (ks, _, _) in enumerate(members) for key in ([ks] if isinstance(ks, bytes) else ks)]
    literals = [i for i, (ks, _, _) in enumerate(members) if isinstance(ks, bytes)]
    goal = (1 << obligations) - 1
    for count in range(min_members, len(keys) + 1 if max_members is None else min(max_members, len(keys)) + 1):
        for chosen in itertools.permutations(keys, count):
            present = [i for i, _ in chosen]
            if any(members[i][1] and i not in present for i in literals):
                continue
            if any(i in present and any(j not in present for j in js) for i, js in dependencies):
                continue
            ranks = [literals.index(i) if i in literals else len(literals) for i in present]
            if ordered and ranks != sorted(ranks):
                continue
            for values in itertools.product(*(members[i][2] for i in present)):
                fulfilled = 0
                for _, mask in values:
                    fulfilled |= mask
                if fulfilled & goal != goal:
                    continue
                word: list[Any] = [*b"{"]
                for n, ((_, key), (value, _)) in enumerate(zip(chosen, values, strict=True)):
                    word += [*(b"," if n else b""), *key, *b":", ("value", value)]
                yield [*word, *b"}"]


def _unique_texts(
    item: Expression, prefix: Sequence[Expression], min_items: int = 0, max_items: int | None = None
) -> Iterator[bytes]:
    """Every array, by trying all sequences of items. An item is a union of literals."""

    known = {text for e in [item, *prefix] for text in _texts(e)}
    most = len(known) if max_items is None else min(max_items, len(known))
    for count in range(min_items, most + 1):
        positions = [_texts(prefix[i] if i < len(prefix) else item) for i in range(count)]
        for chosen in itertools.product(*positions):
            if len({_value(text) for text in chosen}) == count:
                yield b"[" + b",".join(chosen) + b"]"


def _counted_texts(
    kinds: Sequence[Expression],
    positions: Sequence[Sequence[tuple[int, int]]],
    counts: Sequence[tuple[int, int | None]] = (),
    repeats: bool = False,
    min_items: int = 0,
    max_items: int | None = None,
) -> Iterator[bytes]:
    """Every array, by trying all sequences of items. Where values may repeat, max_items must be given."""
    most = sum(len(_texts(kind)) for kind in kinds) if max_items is None else max_items
    arrays: list[list[tuple[bytes, str, int]]] = [[]]  # items as text, value and the counts that they add to
    for length in range(most + 1):
        for items in arrays:
            found = [sum(bits >> i & 1 for _, _, bits in items) for i in range(len(counts))]
            differ = len({value for _, value, _ in items}) == length
            fits = all(low <= n and (high is None or n <= high) for n, (low, high) in zip(found, counts, strict=True))
            if length >= min_items and differ != repeats and fits:
                yield b"[" + b",".join([text for text, _, _ in items]) + b"]"
        choices = [
            (text, _value(text), bits)
            for kind, bits in positions[min(length, len(positions) - 1)]
            for text in _texts(kinds[kind])
        ]
        arrays = [
            [*items, choice]
            for items in arrays
            for choice in choices
            if repeats or all(choice[1] != value for _, value, _ in items)
        ]


def _texts(union: Expression) -> list[bytes]:
    return [part[1] for part in union[1]]


def _value(text: bytes) -> str:
    def canonical(value: Any) -> Any:
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return [type(value).__name__, value]
        if isinstance(value, (int, float)):
            return ["number", float(value)]
        if isinstance(value, list):
            return ["array", [canonical(v) for v in value]]
        return ["object", sorted((k, canonical(v)) for k, v in value.items())]

    return json.dumps(canonical(json.loads(text)))
