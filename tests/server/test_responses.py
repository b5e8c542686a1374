"""Responses over HTTP: items, events, tools, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from support.models import WritingModel
from support.server import Served, random_model, served

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT = {"format": {"type": "json_schema", "name": "person", "strict": True, "schema": PERSON}}
TOOLS = [
    {"type": "function", "name": "find", "parameters": PERSON, "strict": True},
    {"type": "function", "name": "stop"},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(random_model(), whitespace="compact") as running:
        yield running


def respond(server: Served, **fields: Any) -> Any:
    return server.post("/v1/responses", {"model": server.service.name, "input": "Go.", "seed": 1, **fields})


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_ids(part) for key, part in value.items() if key not in ("id", "call_id", "created_at")}
    return [without_ids(part) for part in value] if isinstance(value, list) else value


def test_text(server: Served) -> None:
    answer = respond(server, max_output_tokens=4, instructions="Be brief.", metadata={"a": "b"}).json()
    assert answer["object"] == "response"
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer["instructions"] == "Be brief."
    assert answer["metadata"] == {"a": "b"}
    assert answer["store"] is False
    [item] = answer["output"]
    assert item["type"] == "message"
    assert item["content"][0]["type"] == "output_text"
    assert answer["usage"]["output_tokens"] == 4


def test_structured(server: Served) -> None:
    answer = respond(server, text=FORMAT).json()
    assert answer["status"] == "completed"
    jsonschema.validate(json.loads(answer["output"][0]["content"][0]["text"]), PERSON)
    assert answer["text"]["format"]["schema"] == PERSON


def test_tools_and_their_results(server: Served) -> None:
    answer = respond(server, tools=TOOLS, tool_choice={"type": "function", "name": "find"}).json()
    [call] = answer["output"]
    assert call["type"] == "function_call"
    assert call["name"] == "find"
    jsonschema.validate(json.loads(call["arguments"]), PERSON)
    conversation = [
        {"role": "user", "content": "Go."},
        call,
        {"type": "function_call_output", "call_id": call["call_id"], "output": "nobody"},
        {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
    ]
    assert respond(server, input=conversation, tools=TOOLS, max_output_tokens=3).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"max_output_tokens": 10},
        {"text": FORMAT},
        {"tools": TOOLS, "tool_choice": "required", "max_output_tokens": 400},
        {"max_output_tokens": 6, "include": ["message.output_text.logprobs"], "top_logprobs": 2},
    ],
    ids=["text", "format", "tools", "logprobs"],
)
def test_events(server: Served, fields: dict[str, Any]) -> None:
    whole = respond(server, **fields).json()
    events = []
    for block in respond(server, stream=True, **fields).text.strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data[len("data: ") :])
        assert name == f"event: {event['type']}"
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-2:] == ["response.output_item.done", f"response.{whole['status']}"]
    assert without_ids(events[-1]["response"]) == without_ids(whole)
    assert events[0]["response"]["status"] == "in_progress"
    assert events[0]["response"]["id"] == events[-1]["response"]["id"]
    for position, item in enumerate(events[-1]["response"]["output"]):
        own = [event for event in events if event.get("item_id") == item["id"]]
        if item["type"] == "message":
            deltas = [event["delta"] for event in own if event["type"] == "response.output_text.delta"]
            assert "".join(deltas) == item["content"][0]["text"]
            assert own[0]["type"] == "response.content_part.added"
            assert own[0]["part"]["text"] == ""
        else:
            deltas = [event["delta"] for event in own if event["type"] == "response.function_call_arguments.delta"]
            assert "".join(deltas) == item["arguments"]
        done = [event for event in events if event["type"] == "response.output_item.done"][position]
        assert done["item"] == item


def test_text_before_calls() -> None:
    text = 'Look: <tool_call>{"name": "stop", "arguments": {}}</tool_call>'
    with served(WritingModel(text)) as server:
        output = respond(server, tools=TOOLS, temperature=0).json()["output"]
        assert [item["type"] for item in output] == ["message", "function_call"]
        assert output[0]["content"][0]["text"] == "Look: "
        assert all(item["status"] == "completed" for item in output)


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", "whole conversation"),
        ({"store": True}, "store", "nothing is stored"),
        ({"background": True}, "background", "while the client waits"),
        ({"input": []}, "input", "at least 1"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]", "item_reference"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "function"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "strict": True, "schema": {"type": "object"}}}},
         "text.format.schema", "additionalProperties"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "wrong"}}}},
         "text.format.schema", "/type"),
        ({"max_output_tokens": 10**9}, "max_output_tokens", "at most"),
        ({"max_tokens": 3}, "max_tokens", "Unknown parameter"),
    ],
)  # fmt: skip
def test_refusals(server: Served, fields: dict[str, Any], param: str, message: str) -> None:
    answer = respond(server, **fields)
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert error["param"] == param, error
    assert message in error["message"]
