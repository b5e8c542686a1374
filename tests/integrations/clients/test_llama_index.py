"""LlamaIndex over ``grammask serve``: typed outputs in both of its ways, and constraints that only the server knows."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from support.engine_cases import CASES, Case

pytest.importorskip("llama_index.llms.openai_like", reason="LlamaIndex is not installed: make test-clients")

from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike


class Person(BaseModel):
    """A person."""

    name: str = Field(min_length=1, max_length=20)
    age: int = Field(ge=0, le=120)


def model(server: Any, **how: Any) -> Any:
    return OpenAILike(
        model="smollm2",
        api_base=server.url,
        api_key="none",
        is_chat_model=True,
        context_window=2048,
        max_tokens=120,
        temperature=0,
        **how,
    )


@pytest.mark.parametrize(
    ("how", "kind"),
    [({"should_use_structured_outputs": True}, "json_schema"), ({"is_function_calling_model": True}, "tools")],
)
def test_typed_outputs(server: Any, how: dict[str, bool], kind: str) -> None:
    llm = model(server, **how)
    answer = llm.as_structured_llm(Person).chat([ChatMessage(role="user", content=CASES[0].prompt)])
    assert isinstance(answer.raw, Person)
    assert answer.raw.name == "Ada Lovelace"
    assert server.kinds(1) == [kind]


def test_typed_outputs_of_prompts_also_as_they_grow(server: Any) -> None:
    llm = model(server, should_use_structured_outputs=True)
    prompt = PromptTemplate("{text} Write the person as JSON.")
    person = llm.structured_predict(Person, prompt, text="Ada Lovelace was 36 years old.")
    *_, last = llm.stream_structured_predict(Person, prompt, text="Ada Lovelace was 36 years old.")
    assert isinstance(person, Person)
    assert last == person
    assert server.kinds(2) == ["json_schema"] * 2


@pytest.mark.parametrize("case", [case for case in CASES if case.vllm], ids=lambda case: case.name)
def test_constraints_in_the_body(server: Any, case: Case) -> None:
    assert case.vllm is not None
    kind, value = case.vllm
    answer = model(server).complete(case.prompt, extra_body={"structured_outputs": {kind: value}})
    case.check(answer.text)
    assert server.kinds(1) != ["text"]
