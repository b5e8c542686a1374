"""Adapters and tokenizers with other tokens than the model: the engine's own count, what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from safetensors.torch import save_file
from vllm import LLM, SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.lora.request import LoRARequest
from vllm.tokenizers import cached_tokenizer_from_config

import grammask
from grammask.integrations.vllm.admission import Admission
from grammask.integrations.vllm.parameters import vocabulary_of_engine
from support.engine_cases import CASES

LAYERS, WIDTH, RANK = 30, 576, 8


@pytest.fixture(scope="module")
def grown_tokenizer(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's tokenizer with one more token, for which its logits have no column."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(model_folder: Path, grown_tokenizer: Path) -> LoRARequest:
    """Noise on the queries, in a folder with a tokenizer of its own."""
    generator = torch.Generator().manual_seed(0)
    weights = {}
    for layer in range(LAYERS):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        weights[f"{name}.lora_A.weight"] = torch.randn(RANK, WIDTH, generator=generator) * 0.12
        weights[f"{name}.lora_B.weight"] = torch.randn(WIDTH, RANK, generator=generator) * 0.12
    save_file(weights, grown_tokenizer / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": str(model_folder)}
    config |= {"r": RANK, "lora_alpha": 16, "lora_dropout": 0.0, "bias": "none", "target_modules": ["q_proj"]}
    (grown_tokenizer / "adapter_config.json").write_text(json.dumps(config))
    return LoRARequest("noise", 1, str(grown_tokenizer))


@pytest.fixture(scope="module")
def llm(model_folder: Path) -> LLM:
    return LLM(
        str(model_folder),
        max_model_len=256,
        max_num_seqs=8,
        enforce_eager=True,
        dtype="bfloat16",
        distributed_executor_backend="uni",
        enable_lora=True,
        max_lora_rank=RANK,
        max_loras=1,
    )


def test_constraints_hold_with_and_without_an_adapter_in_one_batch(llm: LLM, adapter: LoRARequest) -> None:
    params = [SamplingParams(max_tokens=150, temperature=0, extra_args={"grammask": case.wire}) for case in CASES]
    outputs = llm.generate(
        [case.prompt for case in CASES] * 2,
        params * 2,
        use_tqdm=False,
        lora_request=[adapter] * len(CASES) + [None] * len(CASES),
    )
    texts = [output.outputs[0].text for output in outputs]
    for case, text in zip(CASES * 2, texts, strict=True):
        case.check(text)
    assert texts[: len(CASES)] != texts[len(CASES) :]


def test_a_token_that_only_an_adapter_names_is_unknown(llm: LLM, adapter: LoRARequest) -> None:
    params = SamplingParams(max_tokens=8, extra_args={"grammask": {"gbnf": "root ::= <new>"}})
    with pytest.raises((VLLMValidationError, ValueError), match="<new>"):
        llm.generate(["x"], params, use_tqdm=False, lora_request=adapter)


def test_a_tokenizer_with_more_tokens_than_the_logits_have_columns(model_folder: Path, grown_tokenizer: Path) -> None:
    config = EngineArgs(str(model_folder), tokenizer=str(grown_tokenizer), dtype="bfloat16").create_engine_config()
    admission = Admission(config, lambda: cached_tokenizer_from_config(config.model_config), lambda params: None)
    params = SamplingParams(extra_args={"grammask": CASES[0].wire})
    with pytest.raises(VLLMValidationError, match="49153 tokens, the model's logits only 49152 columns"):
        admission(params)


def test_tokens_that_are_added_while_the_engine_runs(model_folder: Path) -> None:
    """A vocabulary is made anew for the next request, and no mask allows columns that had no token before."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = SimpleNamespace(get_vocab_size=lambda: 49160, try_get_generation_config=dict)
    config = SimpleNamespace(model_config=model)
    before = vocabulary_of_engine(config, tokenizer)
    tokenizer.add_tokens(["<new>"])
    after = vocabulary_of_engine(config, tokenizer)
    text = grammask.Regex("[a-z<>]+")
    assert 49152 not in grammask.compile(text, before).matcher().allowed_token_ids()
    assert 49152 in grammask.compile(text, after).matcher().allowed_token_ids()
