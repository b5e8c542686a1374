"""Masks of random grammars over random tokens, compared with the definition; as a program, for as long as asked.

    python -m support.grammar_checks --seconds 600 --seed 1

prints each seed at which a mask differs, and exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings

import grammask
from support.random_grammars import as_gbnf, as_lark, random_grammar, random_tokens, words_and_prefixes

LENGTH = 6


def check_masks(seed: int) -> int:
    """Token t is allowed after p if and only if p t begins a word; the end of text if and only if p is a word.

    Returns:
        how many masks were compared: 0 for a grammar without words.

    Raises:
        AssertionError: a mask differs; the message holds the grammar and the place.
    """
    generator = random.Random(seed)
    rules = random_grammar(seed)
    words, prefixes = words_and_prefixes(rules, LENGTH)
    if not prefixes:
        return 0
    tokens = random_tokens(generator)
    longest = max(map(len, tokens))
    vocabulary = grammask.Vocabulary.from_tokens(
        [*(token.encode() for token in tokens), b"</s>"], eos_token_ids=[len(tokens)]
    )
    text, grammar = (as_gbnf(rules), grammask.Grammar.gbnf) if seed % 2 else (as_lark(rules), grammask.Grammar.lark)
    compiled = grammask.compile(grammar(text), vocabulary)
    compared = 0
    for _ in range(3):
        matcher = compiled.matcher()
        written: list[str] = []
        for _ in range(12):
            output = "".join(written)
            if len(output) + longest > LENGTH:
                break
            expected = [index for index, token in enumerate(tokens) if output + token in prefixes]
            following = expected + ([len(tokens)] if output in words else [])
            where = f"seed {seed}: after {written} of tokens {tokens} in\n{text}"
            assert list(matcher.allowed_token_ids()) == following, where
            assert matcher.is_complete == (output in words), where
            compared += 1
            for index in range(len(tokens)):
                if index not in expected:
                    assert not matcher.accept(index), where
            if written and (not expected or generator.random() < 0.3):
                back = generator.randint(1, len(written))
                matcher.rollback(back)
                del written[-back:]
            elif expected:
                chosen = generator.choice(expected)
                assert matcher.accept(chosen), where
                written.append(tokens[chosen])
            else:
                break
    return compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; by default it depends on the time")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    seed = first = int(time.time()) if arguments.seed is None else arguments.seed
    end = time.monotonic() + arguments.seconds
    compared = faults = 0
    while time.monotonic() < end:
        try:
            compared += check_masks(seed)
        except AssertionError as error:
            faults += 1
            print(error, flush=True)
        seed += 1
    print(f"{compared:,} masks of {seed - first:,} grammars from seed {first} on, {faults} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
