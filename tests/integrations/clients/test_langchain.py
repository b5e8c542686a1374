"""LangChain over ``grammask serve``: structured outputs in both of its ways, streams of them, and tools."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from support.engine_cases import CASES, Case

pytest.importorskip("langchain_openai", reason="LangChain is not installed: make test-clients")

import openai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


class Person(BaseModel):
    """A person."""

    name: str = Field(min_length=1, max_length=20)
    age: int = Field(ge=0, le=120)


@tool
def weather(city: str, days: int) -> str:
    """Looks the weather of a city up for some days."""
    return f"sunny in {city} for {days} days"


def model(server: Any, **options: Any) -> Any:
    return ChatOpenAI(
        model="smollm2", base_url=server.url, api_key="none", temperature=0, max_tokens=120, max_retries=0, **options
    )


@pytest.mark.parametrize(
    ("method", "strict", "kind"),
    [("json_schema", True, "json_schema"), ("json_schema", False, "json_schema"), ("function_calling", True, "tools")],
)
def test_structured_output(server: Any, method: str, strict: bool, kind: str) -> None:
    chat = model(server).with_structured_output(Person, method=method, strict=strict)
    person = chat.invoke(CASES[0].prompt)
    assert isinstance(person, Person)
    assert person.name == "Ada Lovelace"
    assert server.kinds(1) == [kind]


def test_json_mode(server: Any) -> None:
    found = model(server).with_structured_output(None, method="json_mode").invoke("Write Ada's age, 36, as JSON.")
    assert isinstance(found, dict)
    assert server.kinds(1) == ["json_object"]


def test_structured_output_as_it_grows(server: Any) -> None:
    chat = model(server).with_structured_output(Person.model_json_schema(), method="json_schema")
    *earlier, last = chat.stream(CASES[0].prompt)
    assert Person.model_validate(last) == Person(**chat.invoke(CASES[0].prompt))
    assert earlier
    assert server.kinds(2) == ["json_schema"] * 2


@pytest.mark.parametrize("strict", [True, False])
def test_tools_and_their_answers(server: Any, strict: bool) -> None:
    chat = model(server).bind_tools([weather], tool_choice="any", strict=strict, parallel_tool_calls=False)
    question = HumanMessage("What will the weather be in Oslo for 3 days?")
    answer = chat.invoke([question])
    assert isinstance(answer, AIMessage)
    [call] = answer.tool_calls
    assert not answer.invalid_tool_calls
    assert call["name"] == "weather"
    result = weather.invoke(call)
    assert isinstance(result, ToolMessage)
    assert model(server).invoke([question, answer, result]).content
    gathered = None
    for chunk in chat.stream([question]):
        gathered = chunk if gathered is None else gathered + chunk
    assert [(found["name"], found["args"]) for found in gathered.tool_calls] == [("weather", call["args"])]
    assert server.kinds(3) == ["tools", "text", "tools"]


@pytest.mark.parametrize("case", [case for case in CASES if case.vllm], ids=lambda case: case.name)
def test_constraints_in_the_body(server: Any, case: Case) -> None:
    assert case.vllm is not None
    kind, value = case.vllm
    answer = model(server, extra_body={"structured_outputs": {kind: value}}).invoke(case.prompt)
    case.check(answer.content)
    assert server.kinds(1) != ["text"]


def test_errors_say_what_is_wrong(server: Any) -> None:
    schema = {"title": "x", "type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    with pytest.raises(openai.BadRequestError, match="/properties/a/pattern"):
        model(server).with_structured_output(schema, method="json_schema").invoke("?")
