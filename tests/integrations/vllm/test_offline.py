"""The offline engine: both ways into vLLM on the same requests, with everything a batch goes through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

from support.engine_cases import CASES, PERSON, Case


@pytest.fixture(scope="module")
def llm(model_folder: Path) -> LLM:
    return LLM(
        str(model_folder),
        max_model_len=512,
        max_num_seqs=8,
        # Room for four long prompts: when their outputs grow, some have to be preempted.
        num_gpu_blocks_override=40,
        block_size=32,
        enforce_eager=True,
        dtype="bfloat16",
        distributed_executor_backend="uni",
        disable_log_stats=False,
        enable_prefix_caching=True,
        structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
    )


def by_processor(case: Case, **options: Any) -> SamplingParams:
    return SamplingParams(extra_args={"grammask": case.wire}, **options)


def by_backend(case: Case, **options: Any) -> SamplingParams:
    assert case.vllm is not None
    kind, value = case.vllm
    return SamplingParams(structured_outputs=StructuredOutputsParams(**{kind: value}), **options)


def texts(outputs: list[Any]) -> list[str]:
    for output in outputs:
        assert output.outputs[0].finish_reason == "stop", (output.outputs[0].finish_reason, output.outputs[0].text)
    return [output.outputs[0].text for output in outputs]


def test_all_cases_through_the_processor_beside_free_requests(llm: LLM) -> None:
    free = SamplingParams(max_tokens=24, temperature=0, ignore_eos=True)
    prompts, params = [], []
    for case in CASES:
        prompts += [case.prompt, CASES[0].prompt]
        params += [by_processor(case, max_tokens=120, temperature=0), free]
    outputs = llm.generate(prompts, params, use_tqdm=False)
    for case, text in zip(CASES, texts(outputs[::2]), strict=True):
        case.check(text)
    for output in outputs[1::2]:
        assert not output.outputs[0].text.startswith("{")
        assert len(output.outputs[0].token_ids) == 24


def test_all_cases_through_the_backend_give_the_same_greedy_outputs(llm: LLM) -> None:
    cases = [case for case in CASES if case.vllm is not None]
    prompts = [case.prompt for case in cases]
    backend = llm.generate(prompts, [by_backend(case, max_tokens=120, temperature=0) for case in cases], use_tqdm=False)
    processor = llm.generate(
        prompts, [by_processor(case, max_tokens=120, temperature=0) for case in cases], use_tqdm=False
    )
    for case, ours, theirs in zip(cases, texts(backend), texts(processor), strict=True):
        case.check(ours)
        assert ours == theirs, case.name
    manager = llm.llm_engine.engine_core.engine_core.structured_output_manager
    assert type(manager.backend).__name__ == "GrammaskBackend"


def test_sampling_many_at_once_with_preemption_and_different_lengths(llm: LLM) -> None:
    """Rows come, go and move all the time; the cache is too small for all of them."""
    before = preemptions(llm)
    prompts, params, checks = [], [], []
    for number in range(3):
        prompts.append(long_prompt(f"{number}th", "Once upon a time"))
        params.append(SamplingParams(max_tokens=100, temperature=1.0, seed=number, ignore_eos=True))
        checks.append(None)
    for case in CASES:
        prompts.append(long_prompt(case.name, case.prompt))
        params.append(by_processor(case, max_tokens=120, temperature=1.0, seed=1))
        checks.append(case.check)
    for output, check in zip(llm.generate(prompts, params, use_tqdm=False), checks, strict=True):
        if check is not None:
            assert output.outputs[0].finish_reason == "stop", output
            check(output.outputs[0].text)
    assert preemptions(llm) > before


def long_prompt(name: str, text: str) -> str:
    """Without a beginning in common with the others, so that the cache cannot share it."""
    return f"The {name} story about the sea and the ships on it. " * 24 + text


def preemptions(llm: LLM) -> int:
    return sum(int(metric.value) for metric in llm.get_metrics() if metric.name == "vllm:num_preemptions")


def test_several_outputs_of_one_prompt(llm: LLM) -> None:
    params = by_processor(CASES[3], max_tokens=60, temperature=1.5, seed=3, n=3)
    for output in llm.generate([CASES[3].prompt], params, use_tqdm=False)[0].outputs:
        CASES[3].check(output.text)


def test_prefix_caching_changes_nothing(llm: LLM) -> None:
    case = CASES[0]
    prompt = "A long story about the sea and the ships on it. " * 20 + case.prompt
    first, second = (
        texts(llm.generate([prompt], by_processor(case, max_tokens=120, temperature=0), use_tqdm=False))[0]
        for _ in range(2)
    )
    assert first == second
    hits = sum(metric.value for metric in llm.get_metrics() if metric.name == "vllm:prefix_cache_hits")
    assert hits > 0


def test_aborted_requests_leave_the_others_alone(llm: LLM) -> None:
    engine = llm.llm_engine
    for number, case in enumerate(CASES[:6]):
        engine.add_request(str(number), case.prompt, by_processor(case, max_tokens=120, temperature=0))
    finished = {}
    for step in range(400):
        if step == 3:
            engine.abort_request(["0", "2", "4"], internal=False)
        for output in engine.step():
            if output.finished and output.outputs[0].finish_reason == "stop":
                finished[output.request_id] = output.outputs[0].text
        if not engine.has_unfinished_requests():
            break
    assert set(finished) == {"1", "3", "5"}
    for number, text in finished.items():
        CASES[int(number)].check(text)


def test_descriptions_may_be_json_text_and_stop_tokens_wait_for_a_complete_output(llm: LLM) -> None:
    params = SamplingParams(
        extra_args={"grammask": json.dumps({"json_schema": PERSON, "whitespace": "compact"})},
        max_tokens=120,
        temperature=1.0,
        stop_token_ids=[1],
    )
    for text in texts(llm.generate([CASES[0].prompt] * 4, params, use_tqdm=False)):
        CASES[0].check(text)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"grammask": {"regex": "("}}, "grammask"),
        ({"grammask": {"json_schema": {"type": "integer", "minimum": 2, "maximum": 1}}}, "satisf"),
        ({"grammask": {"json_schema": {}, "regex": "a"}}, "exactly one kind"),
        ({"grammask": {"jsonschema": {}}}, "exactly one kind"),
        ({"grammask": "no json"}, "no JSON"),
        ({"grammask": 7}, "object"),
        ({"grammask": {"gbnf": "root ::= other"}}, "other"),
        ({"grammask": {"gbnf": "root ::= <|no such token|>"}}, "no such token"),
    ],
)
def test_what_cannot_be_enforced_is_refused_at_admission(llm: LLM, extra: Any, message: str) -> None:
    with pytest.raises((VLLMValidationError, ValueError), match=message):
        llm.generate(["x"], SamplingParams(max_tokens=4, extra_args=extra), use_tqdm=False)


def test_contradicting_parameters_are_refused(llm: LLM) -> None:
    with pytest.raises((VLLMValidationError, ValueError), match="min_tokens"):
        llm.generate(["x"], by_processor(CASES[0], max_tokens=9, min_tokens=3), use_tqdm=False)
    both = by_backend(CASES[0], max_tokens=9, extra_args={"grammask": CASES[0].wire})
    with pytest.raises((VLLMValidationError, ValueError), match="one constraint"):
        llm.generate(["x"], both, use_tqdm=False)


def test_batches_of_records(llm: LLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``grammask batch --backend vllm``, on the engine that is there."""
    import vllm

    from grammask.batch import Job, run_local
    from grammask.batch.shards import read_shard

    source = tmp_path / "in.jsonl"
    texts = [CASES[0].prompt, "long " * 600, "Grace Hopper, 40 years old."]
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    monkeypatch.setattr(vllm, "LLM", lambda model, **options: llm)
    job = Job(constraint={"json_schema": PERSON, "whitespace": "compact"}, backend="vllm", model="x", max_tokens=60)
    summary = run_local(job, [source], tmp_path / "out")
    assert (summary.records, summary.succeeded) == (3, 2)
    outcomes = read_shard(tmp_path / "out" / "part-000000.jsonl")
    assert set(outcomes[0]["value"]) == {"name", "age"}
    assert "512" in outcomes[1]["error"]["message"]


def test_backend_refuses_with_a_place_and_takes_structural_tags(llm: LLM) -> None:
    wrong = SamplingParams(structured_outputs=StructuredOutputsParams(json={"properties": {"a": {"type": "strin"}}}))
    with pytest.raises(VLLMValidationError, match="/properties/a"):
        llm.generate(["x"], wrong, use_tqdm=False)
    tag = json.dumps(
        {
            "structures": [{"begin": "<person>", "schema": PERSON, "end": "</person>"}],
            "triggers": ["<person>"],
        }
    )
    params = SamplingParams(
        structured_outputs=StructuredOutputsParams(structural_tag=tag), max_tokens=60, temperature=0, stop=["</person>"]
    )
    text = llm.generate(['Write {"name": ..., "age": ...} in tags.\n<pers'], params, use_tqdm=False)[0].outputs[0].text
    if "<person>" in text:
        CASES[0].check(text.split("<person>")[1].split("</person>")[0])
