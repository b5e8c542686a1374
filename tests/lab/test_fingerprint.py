"""``system_fingerprint``: equal where nothing changed, different for whatever can change logits."""

from __future__ import annotations

from typing import Any

import pytest

from grammask.models import Fingerprint, FunctionModel, system_fingerprint
from grammask.models.fingerprint import SAMPLED_VALUES, processor_of, weights_digest
from support.models import byte_vocabulary, indifferent_model


def test_of_a_function() -> None:
    first, again = system_fingerprint(indifferent_model()), system_fingerprint(indifferent_model())
    assert str(first) == str(again)
    assert str(first).startswith("fp_")
    assert len(str(first)) == 19
    other = FunctionModel(byte_vocabulary([b"more"]), lambda tokens: [0.0] * 259, name="indifferent")
    assert set(system_fingerprint(other).differences(first)) == {"vocabulary"}


def test_every_component_counts() -> None:
    base = {"weights": "a", "dtype": "float32", "threads": "1"}
    prints = {str(Fingerprint(base)), *(str(Fingerprint({**base, name: "x"})) for name in base)}
    assert len(prints) == 4
    assert Fingerprint(base).differences({**base, "threads": "2", "gpu": "y"}) == {
        "threads": ("1", "2"),
        "gpu": (None, "y"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\nprocessor\t: 1\n",
            "AuthenticAMD 25 17",
        ),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n", "0x41 0xd40"),
    ],
)
def test_processors_are_told_apart(text: str, expected: str) -> None:
    """Those of one capability as well: an Intel and an AMD with AVX-512 give SmolLM2's logits other bits."""
    assert processor_of(text) == expected


def test_the_processor_is_named() -> None:
    assert system_fingerprint(indifferent_model()).components["processor"]


@pytest.fixture
def network() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(100, 40), torch.nn.Linear(40, 100))


def test_weights(network: Any) -> None:
    import copy

    import torch

    digest, whole = weights_digest(network), weights_digest(network, all_weights=True)
    assert weights_digest(copy.deepcopy(network)) == digest != whole
    assert weights_digest(copy.deepcopy(network).to(torch.bfloat16)) != digest
    shifted = copy.deepcopy(network)
    with torch.no_grad():
        shifted[1].weight *= 1.01
    assert weights_digest(shifted) != digest
    single = copy.deepcopy(network)
    assert single[0].weight.numel() > SAMPLED_VALUES
    with torch.no_grad():
        single[0].weight.view(-1)[1] += 1
    assert weights_digest(single, all_weights=True) != whole


def test_of_a_network() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=260, hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=1
    )

    class Network(FunctionModel):
        module = transformers.LlamaForCausalLM(config)

    model = Network(byte_vocabulary(), lambda tokens: [0.0] * 258)
    threads = torch.get_num_threads()
    before = system_fingerprint(model)
    assert before.components["dtype"] == "float32"
    assert before.components["device"] == "cpu"
    try:
        torch.set_num_threads(threads + 1)
        assert system_fingerprint(model).differences(before) == {"threads": (str(threads + 1), str(threads))}
    finally:
        torch.set_num_threads(threads)
    Network.module = Network.module.to(torch.bfloat16)
    assert set(system_fingerprint(model).differences(before)) == {"dtype", "weights"}


def test_results_carry_it():
    from grammask import Choice, FunctionModel, Vocabulary

    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], eos_token_ids=[2])
    model = FunctionModel(vocabulary, lambda tokens: [0.0, 1.0, 0.0])
    other = FunctionModel(vocabulary, lambda tokens: [0.0, 1.0, 0.0], name="other")
    fingerprints = [each.generate("a", Choice(["a", "b"])).system_fingerprint for each in (model, model, other)]
    assert fingerprints[0] == str(system_fingerprint(model)) == fingerprints[1] != fingerprints[2]
    assert model.generate("a", Choice(["a", "b"]), strategy="beam").system_fingerprint == fingerprints[0]
