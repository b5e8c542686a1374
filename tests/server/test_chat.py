"""Chat completions over HTTP: shapes, streams, constraints, tools, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
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
TOOLS = [
    {"type": "function", "function": {"name": "find", "parameters": PERSON, "strict": True}},
    {"type": "function", "function": {"name": "stop", "description": "Ends it."}},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(random_model(), whitespace="compact") as running:
        yield running


def events(text: str) -> list[Any]:
    """The data of server-sent events; the last must be [DONE]."""
    lines = [line for line in text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line[len("data: ") :]) for line in lines[:-1]]


def content(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


# -- shapes


def test_the_shape_of_an_answer(server: Served) -> None:
    answer = server.chat(max_tokens=5, seed=1).json()
    assert set(answer) == {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"}
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["system_fingerprint"].startswith("fp_")
    [choice] = answer["choices"]
    assert choice["finish_reason"] in ("length", "stop")
    assert choice["message"]["role"] == "assistant"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 1 <= usage["completion_tokens"] <= 5


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 20},
        {"max_tokens": 20, "n": 3},
        {"max_tokens": 12, "logprobs": True, "top_logprobs": 2},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}, "max_tokens": 60},
        {"tools": TOOLS, "tool_choice": "required", "max_tokens": 300, "parallel_tool_calls": False},
        {"stop": ["e", "a"], "max_tokens": 50},
    ],
    ids=["text", "n", "logprobs", "schema", "tools", "stop"],
)
def test_a_stream_is_the_same_answer(server: Served, fields: dict[str, Any]) -> None:
    whole = server.chat(seed=7, **fields).json()
    chunks = events(server.chat(seed=7, stream=True, stream_options={"include_usage": True}, **fields).text)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    *steps, last = chunks
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]
    assert all(step["usage"] is None for step in steps)
    for choice in whole["choices"]:
        own = [step["choices"][0] for step in steps if step["choices"][0]["index"] == choice["index"]]
        assert own[0]["delta"]["role"] == "assistant"
        assert [step["finish_reason"] for step in own if step["finish_reason"]] == [choice["finish_reason"]]
        text = "".join(step["delta"].get("content") or "" for step in own)
        assert text == (choice["message"]["content"] or "")
        calls: list[dict[str, str]] = []
        for step in own:
            for call in step["delta"].get("tool_calls", []):
                if "id" in call:
                    assert call["index"] == len(calls)
                    assert call["type"] == "function"
                    calls.append({"name": call["function"]["name"], "arguments": ""})
                calls[call["index"]]["arguments"] += call["function"]["arguments"]
        assert calls == [
            {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
            for call in choice["message"]["tool_calls"] or []
        ]
        if choice["logprobs"]:
            listed = [entry for step in own if step["logprobs"] for entry in step["logprobs"]["content"]]
            assert listed == choice["logprobs"]["content"]


def test_n_answers_differ_and_repeat(server: Served) -> None:
    first = server.chat(seed=3, n=4, max_tokens=16).json()
    texts = [choice["message"]["content"] for choice in first["choices"]]
    assert len(set(texts)) > 1
    assert [choice["index"] for choice in first["choices"]] == [0, 1, 2, 3]
    assert texts == [
        choice["message"]["content"] for choice in server.chat(seed=3, n=4, max_tokens=16).json()["choices"]
    ]
    assert texts[0] == content(server.chat(seed=3, max_tokens=16).json())
    assert content(server.chat(seed=-1, max_tokens=16).json()) == content(
        server.chat(seed=2**64 - 1, max_tokens=16).json()
    )


def test_logprobs(server: Served) -> None:
    answer = server.chat(seed=5, max_tokens=8, logprobs=True, top_logprobs=3, temperature=0).json()
    entries = answer["choices"][0]["logprobs"]["content"]
    assert entries
    for entry in entries:
        assert entry["logprob"] <= 0
        assert len(entry["top_logprobs"]) == 3
        tops = [top["logprob"] for top in entry["top_logprobs"]]
        assert tops == sorted(tops, reverse=True)
        assert bytes(entry["bytes"]).decode(errors="replace") == entry["token"]
    forced = server.chat(guided_choice=["certain"], logprobs=True, seed=1).json()["choices"][0]
    assert forced["message"]["content"] == "certain"
    # The model's own opinion of what it had no choice about: far from certain.
    assert all(entry["logprob"] < 0 for entry in forced["logprobs"]["content"])


def test_stop_and_length() -> None:
    with served(WritingModel("one two three")) as server:
        assert content(server.chat(temperature=0).json()) == "one two three"
        stopped = server.chat(temperature=0, stop=" tw").json()
        assert content(stopped) == "one"
        assert stopped["choices"][0]["finish_reason"] == "stop"
        shown = server.chat(temperature=0, stop=["two"], include_stop_str_in_output=True).json()
        assert content(shown) == "one two"
        cut = server.chat(temperature=0, max_completion_tokens=4).json()
        assert content(cut) == "one "
        assert cut["choices"][0]["finish_reason"] == "length"
        biased = server.chat(temperature=0, logit_bias={str(ord("o")): -100, str(ord("O")): 60}, max_tokens=1).json()
        assert content(biased) == "O"


# -- constraints


def wanted(kind: str, **fields: Any) -> dict[str, Any]:
    return {"response_format": {"type": kind, **fields}}


CONSTRAINED: dict[str, tuple[dict[str, Any], Any]] = {
    "json_object": (wanted("json_object"), lambda text: isinstance(json.loads(text), dict)),
    "json_object with schema": (wanted("json_object", schema=PERSON), lambda t: is_person(t)),
    "json_schema": (wanted("json_schema", json_schema={"name": "p", "schema": PERSON}), lambda t: is_person(t)),
    "strict": (
        wanted("json_schema", json_schema={"name": "p", "schema": PERSON, "strict": True}),
        lambda t: is_person(t),
    ),
    "regex": (wanted("regex", pattern="[ab]{3}"), lambda t: len(t) == 3 and set(t) <= set("ab")),
    "grammar": (wanted("grammar", grammar='root ::= "x" [0-9] "y"'), lambda t: t[0] + t[2] == "xy"),
    "lark": (wanted("grammar", grammar='start: "x" DIGIT\nDIGIT: /[0-9]/'), lambda t: t[0] == "x" and t[1].isdigit()),
    "guided_json": ({"guided_json": PERSON}, lambda t: is_person(t)),
    "guided_json text": ({"guided_json": json.dumps(PERSON)}, lambda t: is_person(t)),
    "guided_regex": ({"guided_regex": "[0-9]{2}"}, lambda t: len(t) == 2 and t.isdigit()),
    "guided_choice": ({"guided_choice": ["yes", "no"]}, lambda t: t in ("yes", "no")),
    "guided_grammar": ({"guided_grammar": 'root ::= "a" | "b"'}, lambda t: t in ("a", "b")),
    "llama.cpp grammar": ({"grammar": 'root ::= "a" | "b"'}, lambda t: t in ("a", "b")),
    "llama.cpp schema": ({"json_schema": PERSON}, lambda t: is_person(t)),
    "structured_outputs json": ({"structured_outputs": {"json": PERSON}}, lambda t: is_person(t)),
    "structured_outputs regex": ({"structured_outputs": {"regex": "x+"}}, lambda t: set(t) == {"x"}),
    "structured_outputs choice": ({"structured_outputs": {"choice": ["u", "v"]}}, lambda t: t in ("u", "v")),
    "structured_outputs json_object": ({"structured_outputs": {"json_object": True}}, lambda t: t[0] == "{"),
    "structured_outputs grammar": ({"structured_outputs": {"grammar": 'root ::= "g"'}}, lambda t: t == "g"),
    "structural tag": (
        {
            "structured_outputs": {
                "structural_tag": json.dumps(
                    {
                        "type": "structural_tag",
                        "format": {
                            "type": "sequence",
                            "elements": [
                                {"type": "const_string", "value": "<p>"},
                                {"type": "json_schema", "json_schema": PERSON},
                                {"type": "or", "elements": [
                                    {"type": "regex", "pattern": "[!?]"},
                                    {"type": "tag", "begin": "(", "end": ")",
                                     "content": {"type": "grammar", "grammar": 'root ::= "i"'}},
                                ]},
                            ],
                        },
                    }
                )
            }
        },
        lambda t: t.startswith("<p>") and is_person(t[3:].rstrip("!?(i)")),
    ),
}  # fmt: skip


def is_person(text: str) -> bool:
    jsonschema.validate(json.loads(text), PERSON)
    return True


@pytest.mark.parametrize("name", CONSTRAINED)
def test_constraints_hold(server: Served, name: str) -> None:
    fields, check = CONSTRAINED[name]
    for seed in range(3):
        answer = server.chat(seed=seed, max_tokens=400, **fields).json()
        choice = answer["choices"][0]
        assert choice["finish_reason"] == "stop", answer
        assert check(choice["message"]["content"]), choice


def test_structural_tags_with_triggers(server: Served) -> None:
    tag = {
        "type": "structural_tag",
        "structures": [{"begin": "<f=a>", "schema": {"enum": [1, 2]}, "end": "</f>"}],
        "triggers": ["<f="],
    }
    with served(WritingModel("I call <f=a>2</f> then")) as writer:
        assert content(writer.chat(temperature=0, response_format=tag).json()) == "I call <f=a>2</f> then"
    with served(WritingModel("I call <f=b>7</f> then")) as writer:
        text = content(writer.chat(temperature=0, seed=1, response_format=tag, max_tokens=40).json())
        assert text.startswith("I call <f=a>")


# -- tools


def test_tool_choices(server: Served) -> None:
    for choice, names in [
        ("required", {"find", "stop"}),
        ({"type": "function", "function": {"name": "stop"}}, {"stop"}),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "find"}}]},
            },
            {"find"},
        ),
    ]:
        for seed in range(3):
            answer = server.chat(tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, seed=seed, max_tokens=300)
            [found] = answer.json()["choices"]
            [call] = found["message"]["tool_calls"]
            assert found["message"]["content"] is None
            assert call["function"]["name"] in names
            assert call["id"].startswith("call_")
            arguments = json.loads(call["function"]["arguments"])
            jsonschema.validate(arguments, PERSON if call["function"]["name"] == "find" else {"maxProperties": 0})
            # The finish reason of OpenAI's own interface.
            assert found["finish_reason"] == ("stop" if "function" in choice else "tool_calls")


def test_parallel_calls_after_text() -> None:
    calls = [{"name": "find", "arguments": {"name": "Bo", "age": 7}}, {"name": "stop", "arguments": {}}]
    text = "On it. " + "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)
    with served(WritingModel(text), whitespace="flexible") as writer:
        choice = writer.chat(temperature=0, tools=TOOLS).json()["choices"][0]
        assert choice["message"]["content"] == "On it. "
        assert [
            {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
            for call in choice["message"]["tool_calls"]
        ] == calls
        assert choice["finish_reason"] == "tool_calls"
        # The same text is just text when no tool may be called.
        assert content(writer.chat(temperature=0, tools=TOOLS, tool_choice="none").json()) == text


def test_tools_within_a_limit() -> None:
    """Text is cut and says so; a call that was begun is whole at every limit, the second one too."""
    calls = [{"name": "find", "arguments": {"name": name, "age": 7}} for name in ("Bo", "Cy")]
    text = "On it. " + "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)
    counts = set()
    with served(WritingModel(text), whitespace="flexible") as writer:
        for limit in (1, 3, 7, 40, 69, 70, 80, 100, 110, 160, 200):
            for stream in (False, True):
                answer = writer.chat(temperature=0, tools=TOOLS, max_tokens=limit, stream=stream)
                if stream:
                    steps = [step["choices"][0] for step in events(answer.text)]
                    reason = steps[-1]["finish_reason"]
                    shown = "".join(step["delta"].get("content") or "" for step in steps)
                    parts: dict[int, list[str]] = {}
                    for step in steps:
                        for call in step["delta"].get("tool_calls", []):
                            part = parts.setdefault(call["index"], [call["function"].get("name"), ""])
                            part[1] += call["function"]["arguments"]
                    written = list(parts.values())
                else:
                    [choice] = answer.json()["choices"]
                    reason, shown = choice["finish_reason"], choice["message"]["content"]
                    functions = [call["function"] for call in choice["message"]["tool_calls"] or []]
                    written = [[function["name"], function["arguments"]] for function in functions]
                for name, arguments in written:
                    jsonschema.validate(json.loads(arguments), PERSON if name == "find" else {"maxProperties": 0})
                assert reason == ("tool_calls" if written else "length"), (limit, answer.text)
                assert shown.startswith("On it. "[:limit])
                counts.add(len(written))
    assert counts == {0, 1, 2}


@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}, {"guided_regex": "[a-z ]+"}], ids=["text", "tools", "regex"])
def test_text_that_is_cut_says_so(fields: dict[str, Any]) -> None:
    """Also where the constraint would let the answer end there."""
    with served(WritingModel("some words")) as writer:
        for limit, text, reason in ((6, "some w", "length"), (20, "some words", "stop")):
            [choice] = writer.chat(temperature=0, max_tokens=limit, **fields).json()["choices"]
            assert (choice["message"]["content"], choice["finish_reason"]) == (text, reason)


def test_an_answer_in_the_format_asked_for_or_calls() -> None:
    """With tools and a format, an output is one or the other; even where the answer spells the beginning of a call."""
    schema = {"type": "json_schema", "json_schema": {"name": "p", "schema": {"type": "string", "maxLength": 20}}}
    for text in ('"<tool_call>"', '"plain"'):
        with served(WritingModel(text)) as server:
            for stream in (False, True):
                answer = server.chat(tools=TOOLS, response_format=schema, temperature=0, stream=stream)
                if stream:
                    deltas = [step["choices"][0]["delta"] for step in events(answer.text)]
                    assert "".join(delta.get("content") or "" for delta in deltas) == text
                else:
                    assert content(answer.json()) == text
    with served(WritingModel('<tool_call>{"name": "stop", "arguments": {}}</tool_call>')) as server:
        message = server.chat(tools=TOOLS, response_format=schema, temperature=0).json()["choices"][0]["message"]
        assert message["content"] is None
        assert message["tool_calls"][0]["function"] == {"name": "stop", "arguments": "{}"}


def test_a_conversation_with_tools(server: Served) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [],
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "stop", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    answer = server.post(
        "/v1/chat/completions", {"model": "random", "messages": messages, "tools": TOOLS, "max_tokens": 3}
    )
    assert answer.status_code == 200


# -- refusals

REFUSED: list[tuple[dict[str, Any], str | None, str, str]] = [
    ({"foo": 1}, "foo", "unknown_parameter", "Unknown parameter: 'foo'"),
    ({"temprature": 1}, "temprature", "unknown_parameter", "Did you mean 'temperature'?"),
    ({"temperature": "1"}, "temperature", "invalid_value", "valid number"),
    ({"temperature": 3}, "temperature", "invalid_value", "less than or equal to 2"),
    ({"messages": []}, "messages", "invalid_value", "at least 1"),
    ({"messages": [{"role": "king", "content": "x"}]}, "messages[0]", "invalid_value", "role"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
     "messages[0].content[0].type", "invalid_value", "text"),
    ({"audio": {"voice": "a"}}, "audio", "unsupported_parameter", "text alone"),
    ({"store": True}, "store", "unsupported_parameter", "nothing is stored"),
    ({"functions": [{"name": "f"}]}, "functions", "unsupported_parameter", "use tools"),
    ({"top_logprobs": 2}, "top_logprobs", "invalid_value", "needs logprobs"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value", "needs stream"),
    ({"max_tokens": 1, "max_completion_tokens": 1}, "max_tokens", "invalid_value", "one of them"),
    ({"max_tokens": 10**9}, "max_tokens", "invalid_value", "at most"),
    ({"logit_bias": {"x": 1}}, "logit_bias", "invalid_value", "token ids"),
    ({"logit_bias": {"5": 200}}, "logit_bias", "invalid_value", "-100 to 100"),
    ({"logit_bias": {"99999": 1}}, None, "invalid_value", "vocabulary"),
    ({"stop": [""]}, "stop[0]", "invalid_value", "at least 1"),
    ({"n": 0}, "n", "invalid_value", "greater than or equal to 1"),
    ({"guided_regex": "["}, "guided_regex", "constraint_syntax_error", "never closed"),
    ({"guided_regex": "(a)\\1"}, "guided_regex", "unsupported_constraint", "back"),
    ({"guided_choice": []}, "guided_choice", "invalid_value", "at least 1"),
    ({"guided_choice": ["a"], "grammar": 'root ::= "a"'}, "grammar", "invalid_value", "both say"),
    ({"structured_outputs": {}}, "structured_outputs", "invalid_value", "says nothing"),
    ({"structured_outputs": {"json": "{"}}, "structured_outputs.json", "invalid_value", "not JSON"),
    ({"structured_outputs": {"regexp": "a"}}, "structured_outputs.regexp", "unknown_parameter", "'regex'"),
    (wanted("json_schema", json_schema={"name": "p", "strict": True, "schema": {**PERSON, "required": []}}),
     "response_format.json_schema.schema", "invalid_json_schema", "missing: 'name', 'age'"),
    (wanted("json_schema", json_schema={"name": "p", "schema": {"type": "integer", "minimum": 3, "maximum": 2}}),
     "response_format.json_schema.schema", "unsatisfiable_constraint", ""),
    (wanted("json_schema", json_schema={"name": "p", "schema": {"type": "nothing"}}),
     "response_format.json_schema.schema", "constraint_syntax_error", "/type"),
    (wanted("json_schema", json_schema={"name": "a b", "schema": PERSON}), "response_format.json_schema.name",
     "invalid_value", "pattern"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "zap"}}}, "tool_choice.function.name",
     "invalid_value", "no tool named 'zap'"),
    ({"tool_choice": "required"}, "tool_choice", "invalid_value", "no tools"),
    ({"tools": [TOOLS[1], TOOLS[1]]}, "tools", "invalid_value", "two tools"),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type", "invalid_value", "function"),
    ({"model": "gpt-9"}, "model", "model_not_found", "does not exist"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param", "code", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals(server: Served, fields: dict[str, Any], param: str | None, code: str, message: str) -> None:
    body = {"model": "random", "messages": [{"role": "user", "content": "x"}], **fields}
    answer = server.post("/v1/chat/completions", body)
    error = answer.json()["error"]
    assert answer.status_code == (404 if code == "model_not_found" else 400), error
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert (error["param"], error["code"]) == (param, code), error
    assert message in error["message"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b"null", b"\xff", b"[" * 100_000, b'{"seed": ' + b"9" * 5000 + b"}"]
)
def test_bodies_that_are_no_requests(server: Served, body: bytes) -> None:

    answer = httpx.post(server.url + "/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_structured_answer_is_never_cut(server: Served) -> None:
    """Completed within the limit, or refused if no answer fits."""
    shortest = len('{"name":"","age":0}')
    for limit in (shortest, shortest + 1, shortest + 5):
        for seed in range(4):
            choice = server.chat(seed=seed, guided_json=PERSON, max_tokens=limit).json()["choices"][0]
            assert choice["finish_reason"] == "stop"
            assert is_person(choice["message"]["content"])
    refused = server.chat(guided_json=PERSON, max_tokens=shortest - 1)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "max_tokens"
    assert f"takes {shortest} tokens" in refused.json()["error"]["message"]


def test_a_server_that_cuts() -> None:
    with served(random_model(), whitespace="compact", never_cut=False) as server:
        choice = server.chat(guided_json=PERSON, max_tokens=3).json()["choices"][0]
        assert choice["finish_reason"] == "length"
        assert '{"name":"'.startswith(choice["message"]["content"][:9])


def test_too_long_for_the_model() -> None:
    with served(WritingModel("some text", context_length=64)) as server:
        answer = server.chat("x" * 100)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
        assert server.chat("x" * 10, max_tokens=60).json()["error"]["code"] == "context_length_exceeded"
        assert server.chat("x" * 10).status_code == 200
