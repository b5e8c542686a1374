"""vLLM's second model runner with a real model: the logits processor and the backend, both with drafted tokens.

The runner is vLLM's own, with its Triton kernels interpreted (``support.interpreted_triton``): exact and slow.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from support import interpreted_triton
from support.engine_cases import CASES, Case

if "vllm.triton_utils" in sys.modules:
    pytest.skip("needs a process of its own: make test-vllm", allow_module_level=True)
interpreted_triton.install()

from vllm import LLM, SamplingParams  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402


@pytest.fixture(scope="module")
def llm(model_folder: Path) -> LLM:
    return LLM(
        str(model_folder),
        max_model_len=256,
        max_num_seqs=8,
        # Room for eight prompts: when their outputs grow, some have to be preempted.
        num_gpu_blocks_override=10,
        block_size=32,
        enforce_eager=True,
        dtype="bfloat16",
        distributed_executor_backend="uni",
        disable_log_stats=False,
        structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
        # The model drafts for itself, without the constraint: drafts are right until the constraint objects.
        speculative_config={"model": str(model_folder), "num_speculative_tokens": 2},
    )


def runner_of(llm: LLM) -> Any:
    return llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner


def counted(llm: LLM, name: str) -> float:
    return sum(metric.value for metric in llm.get_metrics() if metric.name == f"vllm:{name}")


def by_processor(case: Case, **options: Any) -> SamplingParams:
    return SamplingParams(max_tokens=100, extra_args={"grammask": case.wire}, **options)


def by_backend(case: Case) -> SamplingParams:
    assert case.vllm is not None
    kind, value = case.vllm
    return SamplingParams(max_tokens=100, temperature=0, structured_outputs=StructuredOutputsParams(**{kind: value}))


def checked(cases: list[Case], outputs: list[Any]) -> list[str]:
    for case, output in zip(cases, outputs, strict=True):
        assert output.outputs[0].finish_reason == "stop", (case.name, output.outputs[0].text)
        case.check(output.outputs[0].text)
    return [output.outputs[0].text for output in outputs]


def test_ten_constraints_in_both_ways_with_drafts_and_preemption_beside_a_free_request(llm: LLM) -> None:
    assert type(runner_of(llm)).__module__ == "vllm.v1.worker.cpu.model_runner"
    assert type(runner_of(llm).sampler.logits_processors[-1]).__name__ == "SlotProcessor"
    free = SamplingParams(max_tokens=30, temperature=0, ignore_eos=True)
    for_backend = [case for case in CASES if case.name in ("person", "date", "choice", "select")]
    sampled = CASES[:2]
    outputs = llm.generate(
        [case.prompt for case in [*CASES, *for_backend, *sampled]] + ["Once upon a time"],
        [by_processor(case, temperature=0) for case in CASES]
        + [by_backend(case) for case in for_backend]
        + [by_processor(case, temperature=1.0, seed=1) for case in sampled]
        + [free],
        use_tqdm=False,
    )
    texts = checked([*CASES, *for_backend, *sampled], outputs[:-1])
    for case, through_backend in zip(for_backend, texts[len(CASES) :], strict=False):
        assert through_backend == texts[CASES.index(case)], case.name
    assert len(outputs[-1].outputs[0].token_ids) == 30
    drafted, accepted = counted(llm, "spec_decode_num_draft_tokens"), counted(llm, "spec_decode_num_accepted_tokens")
    assert 0 < accepted < drafted
    assert counted(llm, "num_preemptions") > 0
