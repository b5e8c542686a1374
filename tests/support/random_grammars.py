"""Random small grammars, and what they mean by definition: their words and the beginnings of their words.

The oracle knows nothing of automata or parsing. It computes least fixpoints over sets of strings, up to a length.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

ALPHABET = "ab"

# An expression is ("letter", "a"), ("rule", name), ("seq", parts), ("alt", parts), ("repeat", part, low, high).
Expression = tuple[Any, ...]
Rules = dict[str, Expression]


def random_grammar(seed: int) -> Rules:
    """One to four rules.

    Of every three grammars one is made of short rules that mostly call each other: recursion on the left, on the right,
    in the middle, through each other and through rules that may be empty.
    """
    generator = random.Random(seed)
    names = ["start", *["p", "q", "r"][: generator.randint(0, 3)]]
    if seed % 3 == 2:
        return {name: _recursive_body(generator, names) for name in names}

    def expression(depth: int) -> Expression:
        choice = generator.random()
        if depth == 0 or choice < 0.3:
            return ("letter", generator.choice(ALPHABET))
        if choice < 0.55:
            return ("rule", generator.choice(names))
        if choice < 0.75:
            return ("seq", tuple(expression(depth - 1) for _ in range(generator.choice((0, 2, 2, 3)))))
        if choice < 0.9:
            return ("alt", tuple(expression(depth - 1) for _ in range(2)))
        low, high = generator.choice(((0, 1), (0, None), (1, None), (0, 2), (2, 2), (1, 3)))
        return ("repeat", expression(depth - 1), low, high)

    def body() -> Expression:
        return ("alt", tuple(expression(3) for _ in range(generator.randint(1, 3))))

    return {name: body() for name in names}


def _recursive_body(generator: random.Random, names: list[str]) -> Expression:
    def factor() -> Expression:
        letter = generator.random() < 0.4
        return ("letter", generator.choice(ALPHABET)) if letter else ("rule", generator.choice(names))

    lengths = [generator.choice((0, 1, 1, 2, 2, 3)) for _ in range(generator.randint(2, 3))]
    return ("alt", tuple(("seq", tuple(factor() for _ in range(length))) for length in lengths))


def words_and_prefixes(rules: Rules, length: int) -> tuple[set[str], set[str]]:
    """All words of ``start`` and all prefixes of its words, up to a length, as least fixpoints."""
    words: dict[str, set[str]] = {name: set() for name in rules}
    prefixes: dict[str, set[str]] = {name: set() for name in rules}
    productive: set[str] = set()

    def derives(e: Expression) -> bool:
        if e[0] == "rule":
            return e[1] in productive
        if e[0] == "seq":
            return all(map(derives, e[1]))
        if e[0] == "alt":
            return any(map(derives, e[1]))
        return e[0] == "letter" or e[2] == 0 or derives(e[1])

    def joined(left: set[str], right: set[str]) -> set[str]:
        return {a + b for a in left for b in right if len(a) + len(b) <= length}

    def copies(e: Expression) -> Iterator[tuple[Expression, ...]]:
        _, part, low, high = e
        for count in range(low, (low + length if high is None else high) + 1):
            yield (part,) * count

    def language(e: Expression) -> set[str]:
        if e[0] == "letter":
            return {e[1]}
        if e[0] == "rule":
            return words[e[1]]
        if e[0] == "alt":
            return set().union(*map(language, e[1]))
        if e[0] == "repeat":
            return set().union(*(language(("seq", parts)) for parts in copies(e)))
        result = {""}
        for part in e[1]:
            result = joined(result, language(part))
        return result

    def beginnings(e: Expression) -> set[str]:
        if not derives(e):
            return set()
        if e[0] == "letter":
            return {"", e[1]}
        if e[0] == "rule":
            return prefixes[e[1]] | {""}
        if e[0] == "alt":
            return set().union(*map(beginnings, e[1]))
        if e[0] == "repeat":
            return set().union(*(beginnings(("seq", parts)) for parts in copies(e)))
        result, before = {""}, {""}
        for part in e[1]:
            result |= joined(before, beginnings(part))
            before = joined(before, language(part))
        return result

    while True:
        found = {name for name, body in rules.items() if derives(body)}
        if found == productive:
            break
        productive |= found
    for table, compute in ((words, language), (prefixes, beginnings)):
        while True:
            new = {name: compute(body) for name, body in rules.items()}
            if all(new[name] <= table[name] for name in rules):
                break
            for name in rules:
                table[name] |= new[name]
    return words["start"], prefixes["start"]


def as_text(rules: Rules, definition: str, literal: Callable[[str], str], empty: str) -> str:
    def show(e: Expression) -> str:
        if e[0] == "letter":
            return literal(e[1])
        if e[0] == "rule":
            return str(e[1])
        if e[0] == "seq":
            return "(" + (" ".join(map(show, e[1])) or empty) + ")"
        if e[0] == "alt":
            return "(" + " | ".join(map(show, e[1])) + ")"
        _, part, low, high = e
        bounds = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high), f"{{{low},{high}}}")
        return f"({show(part)}){bounds}"

    return "\n".join(f"{name} {definition} {show(body)}" for name, body in rules.items()) + "\n"


def as_lark(rules: Rules) -> str:
    return as_text(rules, ":", lambda letter: f'"{letter}"', '""')


def as_gbnf(rules: Rules) -> str:
    text = as_text(rules, "::=", lambda letter: f'"{letter}"', '""')
    return text.replace("start ", "root ", 1).replace("start", "root")


def all_texts(length: int) -> list[str]:
    return ["".join(letters) for n in range(length + 1) for letters in itertools.product(ALPHABET, repeat=n)]


def random_tokens(generator: random.Random) -> list[str]:
    """Texts of one to four letters, some twice, some of letters that no grammar has."""
    tokens = [
        "".join(generator.choice(ALPHABET + ("c" if generator.random() < 0.05 else "")) for _ in range(length))
        for length in [generator.choice((1, 1, 2, 2, 3, 4)) for _ in range(generator.randint(2, 12))]
    ]
    return tokens + generator.choices(tokens, k=generator.randint(0, 1))
