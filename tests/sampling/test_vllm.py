"""The preset ``vllm`` against vLLM's own sampler, whole: its processors, penalties, temperature and cuts in its order.

``Sampler.forward`` returns what it draws from as ``processed_logprobs``, so nothing of the order is written down here a
second time. The mask of a grammar is applied to the logits before its sampler, as vLLM's model runner does.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from grammask.sampling import Sampler, Sampling
from sampling import oracle

torch = pytest.importorskip("torch")
vllm = pytest.importorskip("vllm", reason="vLLM is not installed: make test-vllm runs this where it is")
processing = pytest.importorskip("vllm.v1.sample.logits_processor")
metadata = pytest.importorskip("vllm.v1.sample.metadata")
sampler_module = pytest.importorskip("vllm.v1.sample.sampler")

VOCABULARY = 400
END = 7

NAMES = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")


def theirs(sampling: Sampling, row, prompt, output, allowed):
    """The probabilities that vLLM's sampler draws from, and the token that it drew."""
    chosen = {name: getattr(sampling, name) for name in NAMES if getattr(sampling, name) is not None}
    chosen |= {"min_tokens": sampling.min_tokens, "max_tokens": 99, "logit_bias": dict(sampling.logit_bias) or None}
    params = vllm.SamplingParams(**chosen)
    params._all_stop_token_ids = {END}
    config = SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=1), reasoning_config=None)
    device = torch.device("cpu")
    kinds = ("MinTokensLogitsProcessor", "LogitBiasLogitsProcessor", "MinPLogitsProcessor")
    processors = [getattr(processing.builtin, kind)(config, device, False) for kind in kinds]
    update = processing.BatchUpdate(batch_size=1, removed=[], added=[(0, params, prompt, output)], moved=[])
    for processor in processors:
        processor.update_state(update)
    greedy = sampling.is_greedy
    penalized = (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty) != (1.0, 0.0, 0.0)
    state = metadata.SamplingMetadata(
        temperature=None if greedy else torch.tensor([sampling.temperature]),
        all_greedy=greedy,
        all_random=not greedy,
        top_p=None if sampling.top_p is None else torch.tensor([sampling.top_p]),
        top_k=None if sampling.top_k is None else torch.tensor([sampling.top_k]),
        generators={0: torch.Generator().manual_seed(0)},
        max_num_logprobs=-1,
        no_penalties=not penalized,
        prompt_token_ids=torch.tensor([prompt]),
        frequency_penalties=torch.tensor([sampling.frequency_penalty]),
        presence_penalties=torch.tensor([sampling.presence_penalty]),
        repetition_penalties=torch.tensor([sampling.repetition_penalty]),
        output_token_ids=[output],
        allowed_token_ids_mask=None,
        bad_words_token_ids={},
        logitsprocs=processing.LogitsProcessors(processors),
    )
    logits = torch.from_numpy(row.copy())[None].masked_fill_(torch.from_numpy(~allowed), -float("inf"))
    drawn = sampler_module.Sampler(logprobs_mode="processed_logprobs")(logits, state)
    return drawn.logprobs_tensors.logprobs[0].double().exp().numpy(), int(drawn.sampled_token_ids[0, 0])


def situation(seed: int):
    generator = np.random.default_rng(seed)
    row = (generator.standard_normal(VOCABULARY) * generator.choice([1.0, 3.0, 6.0])).astype(np.float32)
    tokens = generator.integers(0, 30, 60).tolist()
    return row, tokens[:40], tokens[40:], generator.random(VOCABULARY) < 0.7


SETTINGS = [
    {"temperature": 0.7},
    {"top_k": 20},
    {"top_p": 0.9},
    {"min_p": 0.1},
    {"top_k": 50, "top_p": 0.8, "temperature": 1.4},
    {"min_p": 0.05, "top_p": 0.95, "temperature": 1.2},
    {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.25},
    {"repetition_penalty": 0.8, "top_p": 0.9, "logit_bias": {3: 2.0, 4: -2.0}},
    {"min_tokens": 40},
    {
        "temperature": 1.6,
        "top_k": 60,
        "top_p": 0.97,
        "min_p": 0.01,
        "repetition_penalty": 1.1,
        "presence_penalty": -0.3,
        "frequency_penalty": 0.1,
        "min_tokens": 40,
        "logit_bias": {5: 1.0, 6: -1.0},
    },
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings))
def test_distribution(settings):
    sampling = Sampling(order="vllm", **settings)
    for seed in range(20):
        row, prompt, output, allowed = situation(seed)
        expected, drawn = theirs(sampling, row, prompt, output, allowed)
        sampler = Sampler(sampling, VOCABULARY, eos_token_ids=[END])
        state = sampler.start(prompt, seed=seed)
        for token in output:
            state.append(token)
        ids, probabilities = sampler.distribution(row, state, oracle.pack(allowed))
        assert ids.tolist() == np.flatnonzero(expected).tolist()
        assert drawn in ids
        np.testing.assert_allclose(probabilities, expected[ids], atol=1e-6)


@pytest.mark.parametrize("temperature", [0.0, 9e-6])
def test_greedy(temperature):
    sampling = Sampling(order="vllm", temperature=temperature, repetition_penalty=1.2, logit_bias={3: 1.0})
    for seed in range(20):
        row, prompt, output, allowed = situation(seed)
        _, drawn = theirs(sampling.replace(temperature=0.0), row, prompt, output, allowed)
        sampler = Sampler(sampling, VOCABULARY, eos_token_ids=[END])
        state = sampler.start(prompt, seed=seed)
        for token in output:
            state.append(token)
        assert sampler.sample(row, state, oracle.pack(allowed)).token_id == drawn


def test_equal_logits_at_the_boundary_of_top_k():
    row = np.round(np.random.default_rng(0).standard_normal(VOCABULARY) * 2).astype(np.float32)
    allowed = np.ones(VOCABULARY, dtype=np.bool_)
    sampling = Sampling(order="vllm", top_k=10)
    expected, _ = theirs(sampling, row, [0], [], allowed)
    sampler = Sampler(sampling, VOCABULARY)
    ids, _ = sampler.distribution(row, sampler.start([0], seed=0))
    assert ids.tolist() == np.flatnonzero(expected).tolist()
    assert len(ids) > 10
