"""vLLM's server as ``grammask serve --backend vllm`` starts it: what clients send reaches grammask, in both ways."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest

import grammask
from support.engine_cases import CASES, PERSON, WEATHER, Case

KEY = "sk-test"


@dataclass
class Person:
    name: str
    age: int


@pytest.fixture(scope="module")
def client(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "grammask.cli", "serve", "--backend", "vllm", "--model", str(model_folder)]
    command += ["--served-name", "smollm2", "--port", str(port), "--dtype", "bfloat16", "--max-sequences", "8"]
    command += ["--tool-format", "hermes", "--", "--enforce-eager", "--max-model-len", "1024"]
    environment = {**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "GRAMMASK_WHITESPACE": "compact"}
    environment["GRAMMASK_API_KEYS"] = json.dumps([KEY])
    del environment["GRAMMASK_VLLM_BACKEND"]  # the command sets it
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        wait_until_ready(process, port, log)
        yield openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0, timeout=300)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")


def ask(client: openai.OpenAI, case: Case, **options: Any) -> str:
    answer = client.chat.completions.create(
        model="smollm2", messages=[{"role": "user", "content": case.prompt}], max_tokens=150, temperature=0, **options
    )
    assert answer.choices[0].finish_reason == "stop", answer
    return answer.choices[0].message.content or ""


def test_ten_constraints_at_once_in_extra_arguments(client: openai.OpenAI) -> None:
    def one(case: Case) -> str:
        return ask(client, case, extra_body={"vllm_xargs": {"grammask": json.dumps(case.wire)}})

    with ThreadPoolExecutor(len(CASES)) as pool:
        for case, text in zip(CASES, pool.map(one, CASES), strict=True):
            case.check(text)


def test_response_format(client: openai.OpenAI) -> None:
    case = CASES[0]
    schema = {"name": "person", "schema": PERSON, "strict": True}
    case.check(ask(client, case, response_format={"type": "json_schema", "json_schema": schema}))
    text = ask(client, case, response_format={"type": "json_object"}, extra_body={"structured_outputs": None})
    assert isinstance(json.loads(text), dict)


def test_what_vllm_itself_would_not_enforce(client: openai.OpenAI) -> None:
    """vLLM's own backends refuse or pass over these keywords."""
    sizes = {"type": "integer", "minimum": 3, "maximum": 40, "multipleOf": 7}
    schema = {"type": "object", "properties": {"size": sizes}, "required": ["size"], "additionalProperties": False}
    case = Case("size", schema, "Give a size as JSON.", json.loads, None)
    text = ask(client, case, response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}})
    assert json.loads(text)["size"] in (7, 14, 21, 28, 35)


def test_the_key_is_asked_for(client: openai.OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="another").models.list()


def test_a_named_tool_is_called_with_valid_arguments(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="smollm2",
        messages=[{"role": "user", "content": CASES[-1].prompt}],
        # Without strict, vLLM leaves the arguments to the model.
        tools=[{"type": "function", "function": {**WEATHER["function"], "strict": True}}],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        max_tokens=100,
        temperature=0,
    )
    calls = answer.choices[0].message.tool_calls
    assert calls, answer
    arguments = json.loads(calls[0].function.arguments)
    assert set(arguments) == {"city", "days"}
    assert 1 <= arguments["days"] <= 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra_body": {"vllm_xargs": {"grammask": '{"regex": "("}'}}}, "grammask"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"properties": {"a": {"type": "strin"}}}},
                }
            },
            "/properties/a",
        ),
    ],
)
def test_what_cannot_be_enforced_is_a_bad_request(client: openai.OpenAI, options: Any, message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message):
        ask(client, CASES[0], **options)
    CASES[4].check(ask(client, CASES[4], extra_body={"vllm_xargs": {"grammask": json.dumps(CASES[4].wire)}}))


class TestFrameworks:
    """Frameworks that speak to OpenAI's interface need no adapter: the server constrains their typed outputs."""

    def test_langchain(self, client: openai.OpenAI) -> None:
        langchain_openai = pytest.importorskip("langchain_openai")
        chat = langchain_openai.ChatOpenAI(
            model="smollm2", base_url=str(client.base_url), api_key=KEY, temperature=0, max_tokens=80
        )
        structured = chat.with_structured_output(
            {"title": "Person", **PERSON}, method="json_schema", strict=True, include_raw=False
        )
        CASES[0].check(json.dumps(structured.invoke(CASES[0].prompt)))

    def test_pydantic_ai(self, client: openai.OpenAI) -> None:
        pytest.importorskip("pydantic_ai")
        import pydantic
        import pydantic_ai
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        class Person(pydantic.BaseModel):
            name: str = pydantic.Field(min_length=1, max_length=20)
            age: int = pydantic.Field(ge=0, le=120)

        model = OpenAIChatModel("smollm2", provider=OpenAIProvider(base_url=str(client.base_url), api_key=KEY))
        agent = pydantic_ai.Agent(
            model,
            output_type=pydantic_ai.NativeOutput(Person),
            model_settings={"temperature": 0, "max_tokens": 80},
        )
        assert isinstance(agent.run_sync(CASES[0].prompt).output, Person)


def test_through_the_hosted_client(client: openai.OpenAI) -> None:
    """A typed value by the server's own structured outputs: the first answer is right."""
    model = grammask.openai_compatible(str(client.base_url), "smollm2", api_key=KEY)
    message = "Extract the name and the age: Ada Lovelace is 36 years old and lives in London."
    result: Any = model.generate([{"role": "user", "content": message}], Person, max_tokens=80)
    assert isinstance(result.value, Person)
    assert isinstance(result.value.age, int)
    assert result.format.kind == "json_schema"
    assert len(result.history) == 1, result.history
