"""Speculative decoding: drafts go through the structured-output backend; the logits processor refuses to be ignored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

from support.engine_cases import CASES, PERSON

LIST = {"type": "array", "items": PERSON, "minItems": 3, "maxItems": 3}


@pytest.fixture(scope="module")
def llm(model_folder: Path) -> LLM:
    return LLM(
        str(model_folder),
        max_model_len=1024,
        max_num_seqs=4,
        enforce_eager=True,
        dtype="bfloat16",
        distributed_executor_backend="uni",
        disable_log_stats=False,
        structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
        speculative_config={"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4},
    )


def test_drafts_are_judged_and_outputs_valid(llm: LLM) -> None:
    person = '{"name":"Ada Lovelace","age":36}'
    prompt = f"Write this list once more: [{person},{person},{person}]\n[{person},{person},{person}]\n"
    params = SamplingParams(structured_outputs=StructuredOutputsParams(json=LIST), max_tokens=150, temperature=0)
    output = llm.generate([prompt], params, use_tqdm=False)[0].outputs[0]
    assert output.finish_reason == "stop"
    assert len(json.loads(output.text)) == 3
    metrics = {metric.name: metric for metric in llm.get_metrics()}
    assert metrics["vllm:spec_decode_num_drafts"].value > 0
    assert metrics["vllm:spec_decode_num_accepted_tokens"].value > 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_all_cases(llm: LLM, temperature: float) -> None:
    cases = [case for case in CASES if case.vllm is not None]
    params = [
        SamplingParams(
            structured_outputs=StructuredOutputsParams(**{case.vllm[0]: case.vllm[1]}),
            max_tokens=120,
            temperature=temperature,
            seed=1,
        )
        for case in cases
        if case.vllm is not None
    ]
    for case, output in zip(cases, llm.generate([case.prompt for case in cases], params, use_tqdm=False), strict=True):
        assert output.outputs[0].finish_reason == "stop", output.outputs[0].text
        case.check(output.outputs[0].text)


def test_the_processor_is_not_ignored_silently(llm: LLM) -> None:
    params = SamplingParams(extra_args={"grammask": CASES[0].wire}, max_tokens=8)
    with pytest.raises(VLLMValidationError, match="would be ignored"):
        llm.generate(["x"], params, use_tqdm=False)
