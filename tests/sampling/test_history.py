"""What penalties remember, against counting everything again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.sampling import Sampler, Sampling
from grammask.sampling.history import BreakerScan, NgramIndex, RepetitionLengths, TokenCounts
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
    lengthened = zip(ids.tolist(), longest.tolist(), strict=True)
    found = {token: 2.0 ** (length - allowed) for token, length in lengthened if token not in breakers}
    assert found == oracle.dry_penalties([*prompt, *output], sampling)


PIECES = [b"a", b"b", b"ab", b"ba", b"\n", None]


@given(
    st.lists(st.integers(0, len(PIECES) - 1), max_size=12),
    st.lists(st.integers(0, len(PIECES) - 1), max_size=12),
    st.lists(st.sampled_from(["a", "bb", "aba", "\n", "b\na"]), max_size=3, unique=True),
)
def test_breakers_that_span_tokens(prompt, output, texts):
    """A token is a breaker when some string ends in it that began there or in the tokens before, special ones apart."""
    scan = BreakerScan(frozenset(), [text.encode() for text in texts], PIECES.__getitem__)
    text, ends_at = b"", []
    for place, token in enumerate([*prompt, *output]):
        piece = PIECES[token]
        ends = [
            (text + piece)[:end].endswith(breaker.encode())
            for breaker in texts
            if piece is not None
            for end in range(len(text) + 1, len(text) + len(piece) + 1)
        ]
        text = b"" if piece is None else text + piece
        assert scan(token) == any(ends)
        if any(ends):
            ends_at.append(place)

    settings = {"dry_multiplier": 1.0, "dry_base": 2.0, "dry_allowed_length": 1}
    sampler = Sampler(Sampling(dry_breakers=texts, **settings), len(PIECES), token_bytes=PIECES.__getitem__)
    state = sampler.start(prompt)
    for token in output:
        state.append(token)
    tokens = [*prompt, *output]
    reach = len(tokens) - 1 - ends_at[-1] if ends_at else len(tokens)
    expected = {}
    for end in range(len(tokens) - 1):
        agreeing = next((n for n in range(end + 1) if tokens[end - n] != tokens[-1 - n]), end + 1)
        following = tokens[end + 1]
        holds_breaker = any(text.encode() in (PIECES[following] or b"") for text in texts)
        if min(agreeing, reach) >= 1 and not holds_breaker:
            penalty = 2.0 ** (min(agreeing, reach) - 1)
            expected[following] = max(penalty, expected.get(following, 0.0))
    edits = state.edits().get("dry", [])
    found = {token: -float(by) for edit in edits for token, by in zip(edit.ids.tolist(), edit.operand, strict=True)}
    assert found == expected


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
