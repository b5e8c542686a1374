"""lm-evaluation-harness over ``grammask serve``: what a task's generation_kwargs say reaches the server as it is.

The harness joins requests whose generation_kwargs have the same keys on their first two levels, whatever stands below,
and sends those of the first with all. So each task here says its name in ``user``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.engine_cases import CASES, PERSON

pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: make test-clients")

import lm_eval
from lm_eval.tasks import TaskManager


def evaluate(server: Any, folder: Path, names: list[str]) -> Any:
    return lm_eval.simple_evaluate(
        model="local-chat-completions",
        model_args=f"base_url={server.url}/chat/completions,model=smollm2,num_concurrent=4,max_retries=1",
        tasks=names,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        apply_chat_template=True,
        bootstrap_iters=0,
        log_samples=True,
    )


def write_task(folder: Path, name: str, rows: list[dict[str, str]], generation: dict[str, Any], **more: Any) -> None:
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "output_type": "generate_until",
        "test_split": "test",
        "doc_to_text": "{{text}}",
        "doc_to_target": "label",
        "generation_kwargs": {"max_gen_toks": 120, "until": ["<|im_end|>"], "user": name, **generation},
        "metric_list": [{"metric": "exact_match"}],
        **more,
    }
    (folder / f"{name}.yaml").write_text(json.dumps(task))  # JSON is YAML


def test_every_answer_of_every_task_satisfies_its_constraint(server: Any, tmp_path: Path) -> None:
    cases = {f"case_{number}": case for number, case in enumerate(CASES) if case.vllm is not None}
    for name, case in cases.items():
        assert case.vllm is not None
        kind, value = case.vllm
        write_task(tmp_path, name, [{"text": case.prompt, "label": ""}], {"structured_outputs": {kind: value}})
    samples = evaluate(server, tmp_path, list(cases))["samples"]
    for name, case in cases.items():
        case.check(samples[name][0]["resps"][0][0])
    assert "text" not in server.kinds(len(cases))


def test_scores_of_constrained_answers(server: Any, tmp_path: Path) -> None:
    rows = [
        {"text": "Ada Lovelace was 36 years old. Write the person as JSON.", "label": "36"},
        {"text": "Grace Hopper, 40 years old. Write the person as JSON.", "label": "40"},
        {"text": "Nobody is here. Write a person as JSON.", "label": "none"},
    ]
    schema = {"name": "person", "strict": True, "schema": PERSON}
    age = [{"function": "regex", "regex_pattern": r'"age":\s*(\d+)'}, {"function": "take_first"}]
    write_task(
        tmp_path,
        "ages",
        rows,
        {"response_format": {"type": "json_schema", "json_schema": schema}},
        filter_list=[{"name": "age", "filter": age}],
    )
    result = evaluate(server, tmp_path, ["ages"])
    right = 0
    for sample in result["samples"]["ages"]:
        text = sample["resps"][0][0]
        CASES[0].check(text)
        right += str(json.loads(text)["age"]) == sample["target"]
    assert result["results"]["ages"]["exact_match,age"] == pytest.approx(right / 3)
    assert server.kinds(3) == ["json_schema"] * 3
