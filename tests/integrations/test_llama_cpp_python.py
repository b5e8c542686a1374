"""The logits processor inside llama-cpp-python, with a real model: ``make test-llama-cpp-python`` builds it first."""

from __future__ import annotations

from typing import Any

import pytest

import grammask
from grammask.integrations.llama_cpp_python import ConstraintLogitsProcessor, vocabulary_of
from grammask.integrations.wire import constraint_from_wire
from grammask.models.gguf import smollm2_file
from support.engine_cases import CASES, Case

pytestmark = pytest.mark.model
llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: make test-llama-cpp-python")


@pytest.fixture(scope="module")
def llm() -> Any:
    return llama_cpp.Llama(str(smollm2_file()), n_ctx=512, n_threads=1, verbose=False)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_output_satisfies_its_constraint(llm: Any, case: Case, temperature: float) -> None:
    compiled = grammask.compile(constraint_from_wire(case.wire), vocabulary_of(llm))
    processors = llama_cpp.LogitsProcessorList([ConstraintLogitsProcessor(compiled)])
    answer = llm.create_completion(
        case.prompt, max_tokens=150, temperature=temperature, seed=1, logits_processor=processors
    )
    assert answer["choices"][0]["finish_reason"] == "stop"
    case.check(answer["choices"][0]["text"])
