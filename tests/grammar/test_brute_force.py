"""Random small grammars against the definition.

The oracle knows nothing of automata or parsing: it computes, as least fixpoints over sets of strings, the words and the
prefixes of words up to a length. Lark's Earley parser confirms the words, so that oracle and notation are checked too.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest

import grammask

ALPHABET = "ab"
LENGTH = 5

# An expression is ("letter", "a"), ("rule", name), ("seq", parts), ("alt", parts), ("repeat", part, low, high).
Expression = tuple  # type: ignore[type-arg]
Rules = dict[str, Expression]


def random_grammar(seed: int) -> Rules:
    generator = random.Random(seed)
    names = ["start", *["p", "q", "r"][: generator.randint(0, 3)]]

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


def all_texts(length: int) -> list[str]:
    return ["".join(letters) for n in range(length + 1) for letters in itertools.product(ALPHABET, repeat=n)]


@pytest.fixture(scope="module")
def vocabulary() -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b"</s>"], eos_token_ids=[256])


@pytest.mark.parametrize("notation", ["gbnf", "lark"])
@pytest.mark.parametrize(
    "seeds", [range(start, start + 50) for start in range(0, 300, 50)], ids=lambda seeds: f"from{seeds[0]}"
)
def test_words_and_live_prefixes(seeds: range, notation: str, vocabulary: grammask.Vocabulary) -> None:
    for seed in seeds:
        rules = random_grammar(seed)
        words, prefixes = words_and_prefixes(rules, LENGTH)
        if notation == "gbnf":
            text = (
                as_text(rules, "::=", lambda letter: f'"{letter}"', '""')
                .replace("start ", "root ", 1)
                .replace("start", "root")
            )
            read = grammask.Grammar.gbnf
        else:
            text = as_text(rules, ":", lambda letter: f'"{letter}"', '""')
            read = grammask.Grammar.lark
        if not prefixes:
            with pytest.raises(grammask.UnsatisfiableConstraint):
                read(text)
            continue
        matcher_for = grammask.compile(read(text), vocabulary)
        for candidate in all_texts(LENGTH):
            data = candidate.encode()
            matcher = matcher_for.matcher()
            alive = matcher.matched_prefix(data)
            expected = max(n for n in range(len(candidate) + 1) if candidate[:n] in prefixes)
            assert alive == expected, f"seed {seed}: {candidate!r} in\n{text}"
            if alive == len(data):
                assert matcher.accept_bytes(data)
                assert matcher.is_complete == (candidate in words), f"seed {seed}: {candidate!r} in\n{text}"
                allowed = {bytes([byte]) for byte in matcher.next_bytes()}
                if len(candidate) < LENGTH:
                    expected_next = {c.encode() for c in ALPHABET if candidate + c in prefixes}
                    assert allowed == expected_next, f"seed {seed}: after {candidate!r} in\n{text}"


def test_masks_over_tokens_of_several_bytes() -> None:
    """Token t is allowed after p if and only if p t begins a word; the end of text if and only if p is a word."""
    tokens = ["a", "b", "ab", "ba", "aab", "bbb", "abab", "c"]
    vocabulary = grammask.Vocabulary.from_tokens([*(token.encode() for token in tokens), b"</s>"], eos_token_ids=[8])
    compared = 0
    for seed in range(1_000, 1_300):
        rules = random_grammar(seed)
        words, prefixes = words_and_prefixes(rules, 6)
        if not prefixes:
            continue
        compared += 1
        text = as_text(rules, ":", lambda letter: f'"{letter}"', '""')
        compiled = grammask.compile(grammask.Grammar.lark(text), vocabulary)
        for candidate in all_texts(2):
            matcher = compiled.matcher()
            if candidate not in prefixes:
                assert not matcher.accept_bytes(candidate.encode())
                continue
            assert matcher.accept_bytes(candidate.encode())
            expected = [index for index, token in enumerate(tokens) if candidate + token in prefixes]
            expected += [8] if candidate in words else []
            assert list(matcher.allowed_token_ids()) == expected, f"seed {seed}: after {candidate!r} in\n{text}"
    assert compared > 80


def test_the_oracle_agrees_with_an_earley_parser() -> None:
    lark = pytest.importorskip("lark")
    for seed in range(30):
        rules = random_grammar(seed)
        words, prefixes = words_and_prefixes(rules, 4)
        if not prefixes:
            continue
        text = (
            as_text(rules, ":", lambda letter: letter.upper(), "").replace("{", "~").replace(",", "..").replace("}", "")
        )
        text += "\n".join(f'{letter.upper()}: "{letter}"' for letter in ALPHABET)
        parser = lark.Lark(text, parser="earley", ambiguity="forest")
        for candidate in all_texts(4):
            try:
                parser.parse(candidate)
                accepted = True
            except lark.exceptions.LarkError:
                accepted = False
            assert accepted == (candidate in words), f"seed {seed}: {candidate!r} in\n{text}"
