"""The proxy in front of an upstream that answers what the test says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from grammask.server.proxy.app import create_proxy
from grammask.server.settings import ProxySettings
from support.server import running

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
TOOLS = [{"type": "function", "function": {"name": "save", "parameters": PERSON}}]
GOOD = '{"age": 36, "name": "Ada"}'


class Upstream(httpx.AsyncBaseTransport):
    """Gives its answers one after the other; the last one again and again.

    Attributes:
        asked: the requests.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/models"):
            return httpx.Response(200, json={"object": "list", "data": []})
        body = json.loads(await request.aread())
        self.asked.append(body)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, httpx.Response):
            return answer
        message = {"role": "assistant", **(answer if isinstance(answer, dict) else {"content": answer})}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return httpx.Response(200, json={"id": "x", "model": "up", "choices": [choice], "usage": usage})


@contextmanager
def proxied(upstream: Upstream, **settings: Any) -> Iterator[Any]:
    configured = ProxySettings(upstream="http://upstream/v1", **settings)
    with running(create_proxy(configured, upstream), configured) as url:

        def chat(**fields: Any) -> httpx.Response:
            body = {"model": "up", "messages": [{"role": "user", "content": "Who?"}], **fields}
            return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)

        chat.url = url  # type: ignore[attr-defined]
        yield chat


@pytest.mark.parametrize(
    "text", [GOOD, f"```json\n{GOOD}\n```", f"Sure! Here it is: {GOOD} Anything else?", f" {GOOD}\n"]
)
def test_valid_at_once(text: str) -> None:
    upstream = Upstream(text)
    with proxied(upstream) as chat:
        answer = chat(response_format=FORMAT, temperature=0.5)
    assert answer.status_code == 200
    assert answer.headers["Grammask-Attempts"] == "1"
    assert answer.json()["choices"][0]["message"]["content"] == GOOD
    [asked] = upstream.asked
    assert asked["temperature"] == 0.5
    assert "response_format" not in asked
    assert json.dumps(PERSON) in asked["messages"][0]["content"]


def test_asked_again_until_valid() -> None:
    upstream = Upstream("I do not know.", '{"name": "Ada", "age": "36"}', GOOD)
    with proxied(upstream) as chat:
        answer = chat(response_format=FORMAT)
        metrics = httpx.get(chat.url + "/metrics").text
    assert answer.headers["Grammask-Attempts"] == "3"
    assert answer.json()["usage"] == {"prompt_tokens": 30, "completion_tokens": 6, "total_tokens": 36}
    correction = upstream.asked[2]["messages"][-1]
    assert correction["role"] == "user"
    assert """after '{"name": "Ada", "age": ' stands '"36"}'""" in correction["content"]
    assert upstream.asked[2]["messages"][-2]["content"] == '{"name": "Ada", "age": "36"}'
    assert "grammask_proxy_asked_again_total 2.0" in metrics


def test_never_valid() -> None:
    with proxied(Upstream("no"), attempts=2) as chat:
        answer = chat(response_format=FORMAT)
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert error["code"] == "upstream_invalid_output"
    assert "2 attempts" in error["message"]


@pytest.mark.parametrize(
    ("fields", "bad", "good"),
    [
        ({"guided_choice": ["yes", "no"]}, "maybe", "no"),
        ({"guided_regex": "[0-9]{3}"}, "12", "123"),
        ({"grammar": 'root ::= "a" "b"'}, "a", "ab"),
        ({"structured_outputs": {"json": PERSON}}, "{}", GOOD),
        ({"response_format": {"type": "json_object"}}, "[1]", '{"any": []}'),
    ],
)
def test_every_kind(fields: dict[str, Any], bad: str, good: str) -> None:
    upstream = Upstream(bad, good)
    with proxied(upstream) as chat:
        answer = chat(**fields)
    assert answer.json()["choices"][0]["message"]["content"] == good
    assert len(upstream.asked) == 2
    assert not set(fields) & set(upstream.asked[0])


def test_a_checked_answer_as_a_stream() -> None:
    with proxied(Upstream("?", GOOD)) as chat:
        answer = chat(response_format=FORMAT, stream=True, stream_options={"include_usage": True})
    lines = answer.text.strip().split("\n\n")
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line[6:]) for line in lines[:-1]]
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]) == GOOD
    assert chunks[-1]["usage"]["total_tokens"] == 24


def test_free_chats_pass_through() -> None:
    stream = httpx.Response(200, content=b"data: 1\n\ndata: [DONE]\n\n", headers={"content-type": "text/event-stream"})
    upstream = Upstream("hello", stream)
    with proxied(upstream) as chat:
        assert chat(new_parameter=1).json()["choices"][0]["message"]["content"] == "hello"
        assert chat(stream=True).text == "data: 1\n\ndata: [DONE]\n\n"
        assert httpx.get(chat.url + "/v1/models").json()["object"] == "list"
    assert upstream.asked[0]["new_parameter"] == 1


def call(arguments: str, name: str = "save") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def test_calls_of_an_upstream_that_takes_tools() -> None:
    upstream = Upstream(call('{"name": "Ada"}'), call("{", "save"), call(GOOD, "delete"), call(GOOD))
    with proxied(upstream, attempts=4) as chat:
        answer = chat(tools=TOOLS, tool_choice="required").json()
    [made] = answer["choices"][0]["message"]["tool_calls"]
    assert made["function"] == {"name": "save", "arguments": GOOD}
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert upstream.asked[0]["tools"] == TOOLS
    assert upstream.asked[0]["tool_choice"] == "required"
    last = upstream.asked[3]["messages"][-1]["content"]
    assert "there is no tool 'delete'" in last


def test_calls_of_an_upstream_that_takes_none() -> None:
    good = f'I will. <tool_call>\n{{"name": "save", "arguments": {GOOD}}}\n</tool_call>'
    upstream = Upstream('<tool_call>{"name": "save", "arguments": {}}</tool_call>', good)
    with proxied(upstream, upstream_tools=False) as chat:
        answer = chat(tools=TOOLS).json()
    message = answer["choices"][0]["message"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == json.loads(GOOD)
    assert message["content"] == "I will."
    assert "tools" not in upstream.asked[0]
    assert '"name": "save"' in upstream.asked[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no"}}}},
         "constraint_syntax_error"),
        ({"guided_regex": "["}, "constraint_syntax_error"),
        ({"guided_regex": "a", "grammar": 'root ::= "a"'}, "invalid_value"),
        ({"response_format": FORMAT, "n": 2}, "invalid_value"),
        ({"messages": "x"}, "invalid_value"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, "invalid_value"),
    ],
)  # fmt: skip
def test_refusals_without_asking(fields: dict[str, Any], code: str) -> None:
    upstream = Upstream("x")
    with proxied(upstream) as chat:
        answer = chat(**fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == code
    assert upstream.asked == []


def test_an_upstream_that_refuses() -> None:
    busy = httpx.Response(429, json={"error": "busy"}, headers={"Retry-After": "7"})
    with proxied(Upstream(busy)) as chat:
        for fields in ({}, {"response_format": FORMAT}, {"stream": True}):
            answer = chat(**fields)
            assert answer.status_code == 429
            assert answer.headers["Retry-After"] == "7"
            assert answer.json()["error"]["code"] == "upstream_refused"
    with proxied(Upstream(httpx.Response(200, content=b"<html>"))) as chat:
        assert chat(response_format=FORMAT).status_code == 502
