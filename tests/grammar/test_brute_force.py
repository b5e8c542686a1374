"""Random small grammars against the definition (``support.random_grammars``).

Lark's Earley parser confirms the words of the oracle, so that oracle and notation are checked too.
``make fuzz-grammars`` runs the check of masks on fresh seeds for as long as asked.
"""

from __future__ import annotations

import pytest

import grammask
from support.grammar_checks import check_masks
from support.random_grammars import ALPHABET, all_texts, as_gbnf, as_lark, as_text, random_grammar, words_and_prefixes

LENGTH = 5

pytestmark = pytest.mark.filterwarnings("ignore::grammask.constraints.grammar.GrammarWarning")


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
        text, read = (
            (as_gbnf(rules), grammask.Grammar.gbnf) if notation == "gbnf" else (as_lark(rules), grammask.Grammar.lark)
        )
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
    """Random tokens over random grammars, along random outputs that are taken back and written again."""
    compared = sum(check_masks(seed) for seed in range(1_000, 1_150))
    assert compared > 1_000


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
