"""What penalties remember, against counting everything again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.sampling import Sampler, Sampling
from grammask.sampling.history import NgramIndex, RepetitionLengths, TokenCounts
from sampling import oracle

TOKENS = st.lists(st.integers(0, 4), max_size=60)


@given(TOKENS, st.none() | st.integers(1, 8))
def test_counts(tokens, window):
    counts = TokenCounts(window)
    for end, token in enumerate(tokens, start=1):
        counts.append(token)
        seen = tokens[:end] if window is None else tokens[max(0, end - window) : end]
        assert dict(zip(counts.ids.tolist(), counts.counts.tolist(), strict=True)) == Counter(seen)


def test_counts_grow():
    counts = TokenCounts()
    for token in range(1000):
        counts.append(token)
        counts.append(0)
    assert sorted(counts.ids.tolist()) == list(range(1000))
    assert counts.counts[counts.ids == 0].tolist() == [1001]


@given(TOKENS, st.integers(1, 4))
def test_ngrams(tokens, size):
    ngrams = NgramIndex(size)
    for token in tokens:
        ngrams.append(token)
    assert set(ngrams.completing().tolist()) == oracle.repeated(tokens, size)


@given(TOKENS, TOKENS, st.none() | st.integers(1, 12), st.integers(1, 3), st.sets(st.integers(0, 4), max_size=2))
def test_repetition_lengths(prompt, output, window, allowed, breakers):
    lengths = RepetitionLengths(window, breakers.__contains__)
    lengths.extend(prompt)
    for token in output:
        lengths.append(token)
    sampling = Sampling(
        dry_multiplier=1, dry_base=2, dry_allowed_length=allowed, dry_breakers=sorted(breakers), dry_window=window
    )
    ids, longest = lengths.continuing(allowed)
    found = {token: 2.0 ** (length - allowed) for token, length in zip(ids.tolist(), longest.tolist(), strict=True)}
    assert found == oracle.dry_penalties([*prompt, *output], sampling)


def test_long_repetition_stays_finite():
    """1.75^L overflows float32 at 159 tokens; the penalty is then merely very large."""
    sampler = Sampler(Sampling(dry_multiplier=1.0, dry_breakers=[]), 3)
    state = sampler.start([0, 1] * 4000)
    (edit,) = state.edits()["dry"]
    assert edit.ids.tolist() == [0]
    assert -1e38 < edit.operand[0] < -1e30


@given(TOKENS, TOKENS, st.integers(0, 10))
def test_rollback_and_copy(prompt, output, n_tokens):
    settings = {
        "presence_penalty": 1.0,
        "repetition_penalty": 1.5,
        "no_repeat_ngram_size": 2,
        "dry_multiplier": 1.0,
        "dry_breakers": [4],
        "penalty_window": 7,
    }
    sampler = Sampler(Sampling(**settings), 5)

    def changes(state):
        return {
            (stage, edit.kind): sorted(
                zip(edit.ids.tolist(), np.resize(edit.operand, len(edit.ids)).tolist(), strict=True)
            )
            for stage, edits in state.edits().items()
            for edit in edits
        }

    state = sampler.start(prompt, seed=3)
    for token in output:
        state.append(token)
    assert changes(state.copy()) == changes(state)
    if n_tokens > len(output):
        with pytest.raises(ValueError, match="cannot take back"):
            state.rollback(n_tokens)
        return
    shorter = sampler.start(prompt, seed=3)
    for token in output[: len(output) - n_tokens]:
        shorter.append(token)
    state.rollback(n_tokens)
    assert state.output_ids == shorter.output_ids
    assert changes(state) == changes(shorter)
    assert state.uniform() == shorter.uniform()
