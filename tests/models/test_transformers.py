"""The transformers backend on tiny models with random weights: caches, truncation, padding rows, end of text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import Choice, Regex, Sampling
from grammask.models import Model, ModelError, ModelNotFound, load_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

CHAT = (
    "{% for message in messages %}{% if message['role'] == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "<turn>{{ message['role'] }}: {{ message['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant: {% endif %}"
)
SMALL = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def tokenizer() -> Any:
    """Byte-level, 256 bytes and three special tokens: 256 <eos>, 257 <turn>, 258 <end>."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    core = tokenizers.Tokenizer(tokenizers.models.BPE({char: index for index, char in enumerate(alphabet)}, []))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens(["<eos>", "<turn>", "<end>"])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>", chat_template=CHAT)


def llama() -> Any:
    config = transformers.LlamaConfig(num_hidden_layers=2, max_position_embeddings=128, **SMALL)
    return transformers.LlamaForCausalLM(config)


def sliding() -> Any:
    config = transformers.MistralConfig(num_hidden_layers=2, sliding_window=8, max_position_embeddings=128, **SMALL)
    return transformers.MistralForCausalLM(config)


def recurrent() -> Any:
    config = transformers.MambaConfig(vocab_size=300, hidden_size=16, state_size=4, num_hidden_layers=2)
    return transformers.MambaForCausalLM(config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[], Any]], Path]:
    """The folder of a model, made once."""
    made: dict[str, Path] = {}

    def folder(make: Callable[[], Any]) -> Path:
        if make.__name__ not in made:
            torch.manual_seed(1)
            path = tmp_path_factory.mktemp(make.__name__)
            model = make()
            model.generation_config.eos_token_id = [256, 258]
            model.save_pretrained(path)
            tokenizer().save_pretrained(path)
            made[make.__name__] = path
        return made[make.__name__]

    return folder


@pytest.fixture(scope="module")
def model(folder: Callable[[Callable[[], Any]], Path]) -> Model:
    return load_model(folder(llama))


def test_vocabulary(model: Model) -> None:
    assert model.vocabulary.size == 300  # rows of the logits: 259 tokens and padding
    assert model.vocabulary.eos_token_ids == [256, 258]
    assert model.vocabulary.padding_rows == list(range(259, 300))
    assert model.context_length == 128


def test_encode(model: Model) -> None:
    assert model.vocabulary.decode(model.encode("héllo")) == "héllo".encode()
    assert model.encode("") == [256]
    messages = [{"role": "user", "content": "hi"}]
    ids = model.encode(messages)
    assert ids[0] == 257
    assert ids.count(258) == 1
    assert model.vocabulary.decode(ids) == b"user: hiassistant: "


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([{"role": "tool", "content": "x"}], "refuses these messages: no tools"),
        ([{"role": "user"}], "message 0 must have the keys"),
    ],
)
def test_messages_that_are_refused(model: Model, messages: list[dict[str, str]], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model.encode(messages)


@pytest.mark.parametrize("make", [llama, sliding, recurrent])
def test_sessions_agree_with_reading_from_scratch(folder: Callable[..., Path], make: Callable[[], Any]) -> None:
    """Random forward passes and truncations against the logits of a fresh session that reads everything at once."""
    model = load_model(folder(make))
    random = np.random.default_rng(5)
    session = model.session()
    tokens: list[int] = []
    for _ in range(12):
        new = random.integers(0, 256, size=int(random.integers(1, 6))).tolist()
        tokens += new
        logits = session.forward(new)
        assert logits.dtype == np.float32
        assert logits.shape == (300,)
        np.testing.assert_allclose(logits, model.session().forward(tokens), atol=1e-5)
        if random.random() < 0.5:
            del tokens[int(random.integers(0, len(tokens) + 1)) :]
            session.truncate(len(tokens))
        assert session.length == len(tokens)


def test_sessions_refuse_nonsense(model: Model) -> None:
    session = model.session()
    with pytest.raises(ValueError, match="at least one token"):
        session.forward([])
    session.forward([1, 2])
    with pytest.raises(ValueError, match="cannot truncate"):
        session.truncate(3)


@pytest.mark.parametrize("make", [llama, sliding, recurrent])
def test_generation(folder: Callable[..., Path], make: Callable[[], Any]) -> None:
    model = load_model(folder(make))
    constraint = Regex("(yes|no), [a-z]{3,6}; (maybe )?é+!")
    for seed in range(3):
        result = model.generate("Question?", constraint, sampling=Sampling(temperature=2), seed=seed, max_tokens=100)
        if result.complete:
            assert grammask.compile(constraint, model.vocabulary).matcher().accept_bytes(result.text.encode())
        greedy = model.generate("Question?", Choice(["alpha", "beta", "betamax"]))
        assert greedy.value in ("alpha", "beta", "betamax")


def test_padding_rows_are_never_drawn(model: Model) -> None:
    result = model.generate("x", sampling=Sampling(temperature=100, logit_bias={299: 1000.0}), seed=0, max_tokens=30)
    assert all(token < 259 for token in result.token_ids)


def test_dtype(folder: Callable[..., Path]) -> None:
    half = load_model(folder(llama), dtype="bfloat16")
    logits = half.session().forward([1, 2, 3])
    assert logits.dtype == np.float32
    with pytest.raises(ModelError, match="not a torch dtype"):
        load_model(folder(llama), dtype="float33")


def test_folders_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "no such type"}')
    with pytest.raises(ModelError):
        load_model(tmp_path)


def test_hub_ids_that_are_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelNotFound, match="no model at 'no-such-owner/no-such-model'"):
        load_model("no-such-owner/no-such-model", local_files_only=True)
