"""Masks of random patterns are exact in both directions, token by token.

The definition: a token is allowed if and only if some text of the language starts with what was accepted and the
token's bytes; the end is allowed if and only if what was accepted is in the language. The reference decides both.
"""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import grammask
from grammask.engine.errors import UnsatisfiableConstraint, UnsupportedConstraint
from support.reference_builder import ReferenceBuilder
from support.regex_patterns import patterns

TOKENS = [b"a", b"b", b"-", b"ab", b"ba-", b"a-b", b"bbb", b"\xc3", b"\xa9", b"a\xc3", b"\xc3\xa9", b"\xff", b"\n"]
EOS = len(TOKENS)
VOCABULARY = grammask.Vocabulary.from_tokens([*TOKENS, None], eos_token_ids=[EOS])


def after(reference: ReferenceBuilder, expr: int, data: bytes) -> int:
    for byte in data:
        expr = reference.derivative(expr, byte)
    return expr


@settings(max_examples=80)
@given(pattern=patterns, search=st.booleans(), seed=st.integers(0, 2**32))
def test_masks_are_exact(pattern: str, search: bool, seed: int) -> None:
    regex = grammask.Regex(pattern, search=search)
    reference = ReferenceBuilder()
    try:
        expr = regex.lower(reference)  # type: ignore[arg-type]
        compiled = grammask.compile(regex, VOCABULARY)
    except UnsupportedConstraint:
        return
    except UnsatisfiableConstraint:
        assert reference.is_empty(expr)
        return
    matcher = compiled.matcher()
    chooser = random.Random(seed)
    words = np.zeros((VOCABULARY.size + 31) // 32, np.int32)
    for _ in range(6):
        expected = [t for t, data in enumerate(TOKENS) if not reference.is_empty(after(reference, expr, data))]
        at_end = reference.is_nullable(expr)
        assert matcher.is_complete == at_end
        assert matcher.allowed_token_ids().tolist() == expected + [EOS] * at_end
        matcher.fill_mask(words)
        assert [t for t in range(EOS) if words[t // 32] >> (t % 32) & 1] == expected
        for token in range(EOS):
            if token not in expected:
                assert not matcher.accept(token)
        if not expected:
            break
        token = chooser.choice(expected)
        assert matcher.accept(token)
        expr = after(reference, expr, TOKENS[token])
