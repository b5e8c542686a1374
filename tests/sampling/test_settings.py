"""Which settings are accepted, which are refused, and what the refusal says."""

from __future__ import annotations

import math
import pickle

import pytest

from grammask.sampling import PRESETS, STAGES, Order, Sampler, Sampling

REFUSED = [
    ({"temperature": math.nan}, "temperature is nan: use a finite number"),
    ({"temperature": math.inf}, "temperature is inf"),
    ({"top_k": 0}, "None switches it off"),
    ({"top_k": -1}, "of at least 1"),
    ({"top_p": 1.5}, "from 0 to 1"),
    ({"top_p": -0.1}, "top_p is -0.1"),
    ({"min_p": 2}, "min_p is 2"),
    ({"typical_p": 0}, "above 0 and up to 1"),
    ({"top_n_sigma": 0}, "top_n_sigma is 0"),
    ({"xtc_probability": 1.1}, "xtc_probability"),
    ({"xtc_threshold": 0.6}, "above 0.5 no two tokens"),
    ({"presence_penalty": math.nan}, "presence_penalty"),
    ({"repetition_penalty": 0}, "repetition_penalty is 0"),
    ({"no_repeat_ngram_size": 0}, "no_repeat_ngram_size"),
    ({"dry_multiplier": -1}, "dry_multiplier"),
    ({"dry_base": 0.5}, "dry_base"),
    ({"dry_breakers": [""]}, "dry_breakers"),
    ({"dry_breakers": [-1]}, "dry_breakers"),
    ({"penalty_scope": "both", "presence_penalty": 1}, "'output', 'all', 'prompt' or None"),
    ({"logit_bias": {-1: 1.0}}, "logit_bias has key -1"),
    ({"logit_bias": {"5": 1.0}}, "logit_bias has key '5'"),
    ({"logit_bias": {5: math.inf}}, "use a finite number, or -inf"),
    ({"logit_bias": {5: math.nan}}, "logit_bias[5] is nan"),
    ({"max_tokens": 0}, "max_tokens is 0"),
    ({"min_tokens": -1}, "min_tokens is -1"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": 2**64}, "seed is"),
    ({"n": 0}, "n is 0"),
    ({"stop": [""]}, "empty string"),
    ({"stop": ["\ud83d"]}, "surrogate"),
    ({"stop_token_ids": [-5]}, "stop_token_ids has -5"),
    # together
    ({"min_tokens": 5, "max_tokens": 4}, "min_tokens 5 exceeds max_tokens 4"),
    ({"top_logprobs": 3}, "set logprobs=True"),
    ({"n": 2, "temperature": 0}, "all outputs would be equal"),
    ({"penalty_window": 10}, "no penalty is"),
    ({"penalty_scope": "all"}, "penalty_scope is set"),
    ({"repetition_scope": "all"}, "repetition_scope is set"),
    ({"include_stop": True}, "no stop strings"),
    # the order has no such stage
    ({"order": "openai", "top_k": 5}, "top_k has no effect: the order 'openai' has no stage 'top_k'"),
    ({"order": "transformers", "presence_penalty": 1}, "presence_penalty has no effect"),
    ({"order": "vllm", "typical_p": 0.5}, "typical_p has no effect"),
    ({"order": "llama.cpp", "min_tokens": 3}, "min_tokens has no effect"),
    ({"order": ["mask", "top_k"], "temperature": 0.5}, "temperature has no effect"),
    # orders
    ({"order": "vLLM"}, "unknown order 'vLLM'"),
    ({"order": ["temperature"]}, "no stage 'mask'"),
    ({"order": ["mask", "mask"]}, "appears twice"),
    ({"order": ["penalties", "dry", "mask"]}, "'dry' appears twice"),
    ({"order": ["mask", "topk"]}, "unknown stage 'topk'"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_refused(settings, message):
    with pytest.raises(ValueError, match=r".") as caught:
        Sampling(**settings)
    assert message in str(caught.value)


WRONG_TYPES = [
    {"temperature": "1"},
    {"temperature": True},
    {"top_k": 5.0},
    {"top_k": True},
    {"top_p": "0.9"},
    {"seed": 1.5},
    {"stop": [b"x"]},
    {"logit_bias": [1, 2]},
]


@pytest.mark.parametrize("settings", WRONG_TYPES)
def test_wrong_types(settings):
    with pytest.raises(TypeError, match=next(iter(settings))):
        Sampling(**settings)


ACCEPTED = [
    {},
    {"temperature": -1},
    {"temperature": 0, "top_p": 0.9, "top_k": 1},
    {"top_p": 0},
    {"top_p": 1, "order": "llama.cpp"},
    {"min_p": 0, "order": "openai"},
    {"seed": 2**64 - 1},
    {"repetition_penalty": 0.9},
    {"presence_penalty": -2, "frequency_penalty": 2, "order": "openai"},
    {"presence_penalty": 1, "penalty_window": 64, "penalty_scope": "all"},
    {"logit_bias": {0: -math.inf, 7: 100}},
    {"stop": "\n\n", "include_stop": True},
    {"min_tokens": 4, "max_tokens": 4},
    {"n": 3, "temperature": 0.1},
    {"order": ["penalties", "mask", "temperature", "min_p"], "min_p": 0.1},
]


@pytest.mark.parametrize("settings", ACCEPTED)
def test_accepted(settings):
    sampling = Sampling(**settings)
    assert sampling.replace() == sampling
    assert pickle.loads(pickle.dumps(sampling)) == sampling
    assert hash(sampling) == hash(sampling.replace())


def test_values_are_copied():
    bias = {1: 2.0}
    sampling = Sampling(logit_bias=bias, stop="x")
    bias[2] = 3.0
    assert sampling.logit_bias == {1: 2.0}
    assert sampling.stop == ("x",)


def test_active_stages_follow_the_order():
    sampling = Sampling(top_p=0.9, temperature=0.7, repetition_penalty=1.1)
    assert sampling.active_stages() == ("repetition", "mask", "temperature", "top_p")
    llama = sampling.replace(order="llama.cpp")
    assert llama.active_stages() == ("mask", "repetition", "top_p", "temperature")
    assert Sampling().active_stages() == ("mask",)


def test_default_order_is_the_documented_one():
    stages = PRESETS["default"].stages
    named = [stage for stage in stages if stage in ("mask", "temperature", "top_k", "top_p", "min_p")]
    assert named == ["mask", "temperature", "top_k", "top_p", "min_p"]
    assert stages.index("presence_frequency") < stages.index("mask")
    assert set(stages) == set(STAGES)
    assert str(Order(("mask", "top_k"))) == "mask → top_k → draw"


def test_conventions_of_the_presets():
    """Changing one of these changes what users of a preset get: they are data, and this is their copy."""
    conventions = {
        name: (order.count_scope, order.repetition_scope, order.window, order.top_k_ties)
        for name, order in PRESETS.items()
    }
    assert conventions == {
        "default": ("output", "all", None, "lowest-id"),
        "transformers": ("output", "all", None, "keep"),
        "vllm": ("output", "all", None, "keep"),
        "llama.cpp": ("all", "all", 64, "lowest-id"),
        "openai": ("output", "all", None, "lowest-id"),
    }
    assert str(PRESETS["vllm"]) == (
        "mask → min_tokens → logit_bias → repetition → presence_frequency → temperature → min_p → top_k → top_p → draw"
    )
    assert str(PRESETS["llama.cpp"]) == (
        "logit_bias → mask → repetition → presence_frequency → dry → top_n_sigma → top_k → typical_p → top_p → min_p → "
        "xtc → temperature → draw"
    )
    assert str(PRESETS["openai"]) == "logit_bias → presence_frequency → mask → temperature → top_p → draw"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"logit_bias": {10: 1.0}}, "logit_bias has token 10"),
        ({"stop_token_ids": [12]}, "stop_token_ids"),
        ({"logprobs": True, "top_logprobs": 11}, "top_logprobs is 11"),
        ({"min_tokens": 2}, "pass eos_token_ids"),
        ({"dry_multiplier": 1.0}, "pass token_bytes"),
    ],
)
def test_sampler_refuses_what_does_not_fit_the_vocabulary(settings, message):
    with pytest.raises(ValueError, match=message):
        Sampler(Sampling(**settings), 10)
