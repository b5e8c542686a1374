"""Constraints that compile at once and whose states are too many to be made: a limit ends the mask, not the process."""

from __future__ import annotations

import numpy as np
import pytest

import grammask
from grammask import _core

# Its states are subsets of the last twenty characters, four times over; a long token leads through hundreds of them.
HOSTILE = r"x|(?!.*(a|b).{20}c)(?!.*d.{21}e)(?!.*f.{22}g)(?=.*x.{23}y)[a-z]{30,}"
LONG = b"abdf" * 100


def matcher_with(mask_seconds: float) -> _core.Matcher:
    texts = [bytes([byte]) for byte in range(256)]
    vocabulary = grammask.Vocabulary.from_tokens([*texts, LONG, None], eos_token_ids=[257])
    return grammask.compile(grammask.Regex(HOSTILE), vocabulary, grammask.Limits(mask_seconds=mask_seconds)).matcher()


def test_a_mask_that_takes_too_long_is_given_up() -> None:
    matcher = matcher_with(0.2)
    mask = np.zeros(9, dtype=np.int32)
    before = matcher.stack()
    for call in (
        lambda m: m.fill_mask(mask),
        lambda m: _core.fill_masks([m], mask[None, :]),
        lambda m: m.allowed_token_ids(),
        lambda m: m.accept(256),
        lambda m: m.accept_bytes(LONG),
        lambda m: m.matched_prefix(LONG),
    ):
        with pytest.raises(_core.ConstraintTooLargeError, match="mask_seconds"):
            call(matcher)
        assert matcher.stack() == before
        # States that were made are kept: start from none again.
        matcher = matcher_with(0.2)
    assert matcher.accept_bytes(b"x")
    assert matcher.is_complete
