"""The preset ``transformers`` against the library's own processors, stage by stage and as a chain, on random logits."""

from __future__ import annotations

import numpy as np
import pytest

from grammask.sampling import Sampler, Sampling
from sampling import oracle

torch = pytest.importorskip("torch")
logits_process = pytest.importorskip("transformers.generation.logits_process")

VOCABULARY = 500


def theirs(sampling: Sampling, row, tokens, prompt_length, allowed, end_id):
    """Their processors in their order, as ``generate`` puts them together."""
    chain = logits_process.LogitsProcessorList()
    if sampling.logit_bias:
        bias = {(token,): value for token, value in sampling.logit_bias.items()}
        chain.append(logits_process.SequenceBiasLogitsProcessor(bias))
    if sampling.repetition_penalty != 1:
        chain.append(logits_process.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if sampling.no_repeat_ngram_size:
        chain.append(logits_process.NoRepeatNGramLogitsProcessor(sampling.no_repeat_ngram_size))
    if sampling.min_tokens:
        chain.append(
            logits_process.MinNewTokensLengthLogitsProcessor(prompt_length, sampling.min_tokens, torch.tensor([end_id]))
        )
    if allowed is not None:
        ids = np.flatnonzero(allowed).tolist()
        chain.append(logits_process.PrefixConstrainedLogitsProcessor(lambda batch, sent: ids, num_beams=1))
    if sampling.temperature != 1:
        chain.append(logits_process.TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        chain.append(logits_process.TopKLogitsWarper(sampling.top_k))
    if sampling.top_p:
        chain.append(logits_process.TopPLogitsWarper(sampling.top_p))
    if sampling.min_p:
        chain.append(logits_process.MinPLogitsWarper(sampling.min_p))
    if sampling.typical_p:
        chain.append(logits_process.TypicalLogitsWarper(sampling.typical_p))
    scores = chain(torch.tensor([tokens]), torch.from_numpy(row.copy())[None])
    return torch.softmax(scores.double(), dim=-1)[0].numpy()


SETTINGS = [
    {"temperature": 0.7},
    {"temperature": 1.9},
    {"top_k": 40},
    {"top_k": 1},
    {"top_p": 0.9},
    {"top_p": 0.05},
    {"min_p": 0.1},
    {"typical_p": 0.9},
    {"typical_p": 0.2},
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.7},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 1},
    {"min_tokens": 40},
    {"logit_bias": {3: 2.5, 17: -4.0, 99: -20.0}},
    {"temperature": 0.8, "top_k": 50, "top_p": 0.9},
    {"temperature": 1.5, "top_k": 100, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 1.2, "top_p": 0.97, "typical_p": 0.8, "repetition_penalty": 1.1},
    {
        "temperature": 0.9,
        "top_k": 80,
        "top_p": 0.98,
        "min_p": 0.01,
        "typical_p": 0.95,
        "repetition_penalty": 1.2,
        "no_repeat_ngram_size": 3,
        "min_tokens": 40,
        "logit_bias": {5: 1.0, 6: -1.0},
    },
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings))
@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
def test_distribution(settings, masked):
    sampling = Sampling(order="transformers", **settings)
    for seed in range(25):
        generator = np.random.default_rng(seed)
        row = (generator.standard_normal(VOCABULARY) * generator.choice([1.0, 3.0, 6.0])).astype(np.float32)
        tokens = generator.integers(0, 30, 60).tolist()
        allowed = generator.random(VOCABULARY) < 0.5 if masked else None
        expected = theirs(sampling, row, tokens, 40, allowed, 4)
        sampler = Sampler(sampling, VOCABULARY, eos_token_ids=[4])
        state = sampler.start(tokens[:40], seed=seed)
        for token in tokens[40:]:
            state.append(token)
        ids, probabilities = sampler.distribution(row, state, None if allowed is None else oracle.pack(allowed))
        assert ids.tolist() == np.flatnonzero(expected).tolist()
        np.testing.assert_allclose(probabilities, expected[ids], atol=1e-6)


def test_equal_logits_at_the_boundary_of_top_k():
    row = np.round(np.random.default_rng(0).standard_normal(VOCABULARY) * 2).astype(np.float32)
    sampling = Sampling(order="transformers", top_k=10)
    expected = theirs(sampling, row, [0], 1, None, 4)
    sampler = Sampler(sampling, VOCABULARY)
    ids, _ = sampler.distribution(row, sampler.start(seed=0))
    assert ids.tolist() == np.flatnonzero(expected).tolist()
    assert len(ids) > 10


def test_greedy_is_their_argmax():
    rows = np.random.default_rng(1).standard_normal((50, VOCABULARY)).astype(np.float32)
    sampler = Sampler(Sampling(order="transformers", temperature=0), VOCABULARY)
    ours = [sampler.sample(row, sampler.start(seed=0)).token_id for row in rows]
    assert ours == torch.from_numpy(rows).argmax(dim=1).tolist()
