"""The preset ``vllm`` against vLLM's own penalties and cuts, where it is installed, in the order its sampler states."""

from __future__ import annotations

import numpy as np
import pytest

from grammask.sampling import Sampler, Sampling
from sampling import oracle

torch = pytest.importorskip("torch")
pytest.importorskip("vllm")
cuts = pytest.importorskip("vllm.v1.sample.ops.topk_topp_sampler")
penalties = pytest.importorskip("vllm.v1.sample.ops.penalties")

VOCABULARY = 400


def theirs(sampling: Sampling, row, prompt, output, allowed):
    scores = torch.from_numpy(row.copy())[None]
    scores[:, torch.from_numpy(~allowed)] = -float("inf")
    for token, bias in sampling.logit_bias.items():
        scores[:, token] += bias
    scores = penalties.apply_all_penalties(
        scores,
        torch.tensor([prompt]),
        torch.tensor([sampling.presence_penalty]),
        torch.tensor([sampling.frequency_penalty]),
        torch.tensor([sampling.repetition_penalty]),
        [output],
    )
    scores = scores / sampling.temperature
    if sampling.min_p:
        shares = scores.softmax(dim=-1)
        scores[shares < sampling.min_p * shares.amax()] = -float("inf")
    k = None if sampling.top_k is None else torch.tensor([sampling.top_k])
    p = None if sampling.top_p is None else torch.tensor([sampling.top_p])
    scores = cuts.apply_top_k_top_p(scores, k, p)
    return scores.double().softmax(dim=-1)[0].numpy()


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.7},
        {"top_k": 20},
        {"top_p": 0.9},
        {"top_k": 50, "top_p": 0.8, "temperature": 1.4},
        {"min_p": 0.05, "top_p": 0.95, "temperature": 1.2},
        {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.25},
        {"repetition_penalty": 0.8, "top_p": 0.9, "logit_bias": {3: 2.0, 4: -2.0}},
    ],
)
def test_distribution(settings):
    sampling = Sampling(order="vllm", **settings)
    for seed in range(20):
        generator = np.random.default_rng(seed)
        row = (generator.standard_normal(VOCABULARY) * 3).astype(np.float32)
        tokens = generator.integers(0, 30, 60).tolist()
        allowed = generator.random(VOCABULARY) < 0.7
        expected = theirs(sampling, row, tokens[:40], tokens[40:], allowed)
        sampler = Sampler(sampling, VOCABULARY)
        state = sampler.start(tokens[:40], seed=seed)
        for token in tokens[40:]:
            state.append(token)
        ids, probabilities = sampler.distribution(row, state, oracle.pack(allowed))
        assert ids.tolist() == np.flatnonzero(expected).tolist()
        np.testing.assert_allclose(probabilities, expected[ids], atol=1e-6)
