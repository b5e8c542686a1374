"""Many outputs: order, failures, progress, and files that survive interruptions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import JsonSchema, Regex, Sampling
from grammask.models import FunctionModel
from support.models import END, byte_vocabulary, indifferent_model


class EchoModel(FunctionModel):
    """Repeats its prompt, a digit in brackets. ``fail_at`` counts down outputs to an interruption."""

    def __init__(self, fail_at: int = -1) -> None:
        self.outputs = 0
        self.fail_at = fail_at
        super().__init__(byte_vocabulary(), self._next)

    def encode(self, prompt: Any) -> list[int]:
        self.outputs += 1
        if self.outputs == self.fail_at:
            raise KeyboardInterrupt
        self._start = len(prompt)
        self._goal = prompt.encode()
        return super().encode(prompt)

    def _next(self, tokens: Sequence[int]) -> Any:
        logits = np.zeros(self.vocabulary.size)
        written = len(tokens) - self._start
        logits[self._goal[written] if written < len(self._goal) else END] = 30
        return logits


@dataclass
class Box:
    n: int


PROMPTS = [f'{{"n":{number}}}' for number in range(10)]


def test_results_are_in_order() -> None:
    results = EchoModel().generate_many(PROMPTS, Box)
    assert [result.value for result in results] == [Box(number) for number in range(10)]
    assert all(result.tokens for result in results)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    EchoModel().generate_many(PROMPTS[:3], Box, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert EchoModel().generate_many(PROMPTS[:1], Box, progress=True)[0].value == Box(0)


def test_one_failure_does_not_stop_the_others() -> None:
    class Fussy(EchoModel):
        def encode(self, prompt: Any) -> list[int]:
            if prompt == PROMPTS[1]:
                raise grammask.ModelError("this prompt is refused")
            return super().encode(prompt)

    results = Fussy().generate_many(PROMPTS[:3], Box)
    assert [result.finish_reason for result in results] == ["stop", "error", "stop"]
    assert results[1].error == "ModelError: this prompt is refused"
    assert (results[1].value, results[1].complete) == (None, False)


def test_each_prompt_draws_its_own_random_numbers() -> None:
    model = indifferent_model()
    sampling = Sampling(temperature=1, seed=4)
    results = model.generate_many(["p"] * 4, Regex("[a-z]{10}"), sampling=sampling)
    assert len({result.text for result in results}) == 4
    assert results[2].text == model.generate("p", Regex("[a-z]{10}"), sampling=sampling, request=2).text


@pytest.mark.parametrize("cut", [0, 3])
@pytest.mark.parametrize("interrupted_at", [1, 4, 10])
def test_an_interrupted_run_goes_on(tmp_path: Path, interrupted_at: int, cut: int) -> None:
    """Nothing twice, nothing missing, also when the last line was torn."""
    file = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        EchoModel(fail_at=interrupted_at).generate_many(PROMPTS, Box, output=file)
    lines = file.read_bytes().splitlines()
    assert len(lines) == interrupted_at - 1
    if cut and lines:
        file.write_bytes(file.read_bytes()[:-cut])
    model = EchoModel()
    results = model.generate_many(PROMPTS, Box, output=file)
    assert model.outputs == 10 - (len(lines) - (1 if cut and lines else 0))
    assert [result.value for result in results] == [Box(number) for number in range(10)]
    read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert sorted(line["index"] for line in read) == list(range(10))
    assert {line["index"]: line["value"] for line in read} == {number: {"n": number} for number in range(10)}
    again = EchoModel(fail_at=1)
    assert [result.value for result in again.generate_many(PROMPTS, Box, output=file)] == [Box(n) for n in range(10)]
    assert again.outputs == 0


def test_what_was_read_back_is_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    schema = JsonSchema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    for wanted in (Box, schema, None):
        file.unlink(missing_ok=True)
        first = EchoModel().generate_many(PROMPTS[:2], wanted, output=file, max_tokens=50)
        second = EchoModel(fail_at=1).generate_many(PROMPTS[:2], wanted, output=file, max_tokens=50)
        for one, two in zip(first, second, strict=True):
            assert (one.value, one.text, one.usage, one.seed) == (two.value, two.text, two.usage, two.seed)
            assert (one.finish_reason, one.complete) == (two.finish_reason, two.complete)


@pytest.mark.parametrize(
    "change",
    [
        {"prompts": ["[1]", *PROMPTS[1:]]},
        {"constraint": list[int]},
        {"max_tokens": 7},
        {"sampling": Sampling(temperature=0.5)},
        {"prompts": PROMPTS[:1]},
    ],
)
def test_a_file_of_other_prompts_or_settings_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "out.jsonl"
    EchoModel().generate_many(PROMPTS[:2], Box, output=file)
    arguments: dict[str, Any] = {"prompts": PROMPTS[:2], "constraint": Box, **change}
    with pytest.raises(ValueError, match="belongs to another run"):
        EchoModel().generate_many(arguments.pop("prompts"), arguments.pop("constraint"), output=file, **arguments)


@pytest.mark.parametrize("content", ["not json\n", '{"index": 0}\n', "[]\n"])
def test_a_file_of_another_kind_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"line 1 of .* is not a result"):
        EchoModel().generate_many(PROMPTS[:2], Box, output=file)
    assert file.read_text() == content


def test_cancelled_outputs_are_made_again(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    results = EchoModel().generate_many(PROMPTS[:2], Box, output=file, cancelled=lambda: True)
    assert [result.finish_reason for result in results] == ["cancelled", "cancelled"]
    assert [result.value for result in EchoModel().generate_many(PROMPTS[:2], Box, output=file)] == [Box(0), Box(1)]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="batch_size is 0"):
        EchoModel().generate_many(PROMPTS, Box, batch_size=0)
    model = EchoModel()
    with pytest.raises(ValueError, match="cannot share one session"):
        model.generate_many(PROMPTS, Box, session=model.session())
    assert model.generate_many([], Box) == []
