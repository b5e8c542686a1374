"""Each provider's own client against a scripted server: the requests that arrive, and answers as documented."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from grammask import Choice, JsonSchema, Sampling
from grammask.hosted import HostedError, HostedModel, HostedWarning, InvalidOutput, image, openai_compatible
from grammask.hosted import anthropic as anthropic_model
from grammask.hosted import google as google_model
from grammask.hosted import mistral as mistral_model
from support.scripted_server import (
    Answer,
    ScriptedServer,
    anthropic_stream,
    google_answer,
    google_stream,
    openai_answer,
    openai_stream,
)

for module in ("openai", "anthropic", "google.genai", "mistralai"):
    pytest.importorskip(module)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
RECORD = {
    "type": "object",
    "properties": {"id": {"type": "string", "minLength": 3}, "count": {"type": "integer"}},
    "required": ["id"],
}


def openai_for(server: ScriptedServer, **options: Any) -> HostedModel:
    return openai_compatible(f"{server.url}/v1", "m", provider="openai", api_key="k", **options)


def anthropic_for(server: ScriptedServer, **options: Any) -> HostedModel:
    return anthropic_model("claude", base_url=server.url, api_key="k", **options)


def google_for(server: ScriptedServer, **options: Any) -> HostedModel:
    return google_model("gemini", base_url=server.url, api_key="k", **options)


def mistral_for(server: ScriptedServer, **options: Any) -> HostedModel:
    return mistral_model("mistral-small", base_url=server.url, api_key="k", **options)


def anthropic_text(text: str) -> Answer:
    return anthropic_stream({"type": "text", "text": text})


def google_text(text: str) -> Answer:
    return google_answer({"text": text})


PROVIDERS: list[Any] = [
    pytest.param(openai_for, openai_answer, id="openai"),
    pytest.param(anthropic_for, anthropic_text, id="anthropic"),
    pytest.param(google_for, google_text, id="google"),
    pytest.param(mistral_for, openai_answer, id="mistral"),
]
Make = Callable[..., HostedModel]
Say = Callable[[str], Answer]


@pytest.mark.parametrize(("make", "say"), PROVIDERS)
def test_text(scripted: ScriptedServer, make: Make, say: Say) -> None:
    scripted.script(say("Good day."))
    result = make(scripted).generate("Hello")
    assert (result.text, result.value, result.finish_reason) == ("Good day.", "Good day.", "stop")
    assert result.complete
    assert result.usage.prompt_tokens > 0
    assert result.usage.completion_tokens > 0


@pytest.mark.parametrize(("make", "say"), PROVIDERS)
def test_a_schema_is_sent_and_the_difference_checked(scripted: ScriptedServer, make: Make, say: Say) -> None:
    """minLength is outside of every provider's subset: it is not sent, and an answer that breaks it is asked again."""
    scripted.script(say('{"id": "ab", "count": 1}'), say('{"id": "abc", "count": 1}'))
    result = make(scripted).generate("One.", JsonSchema(RECORD))
    assert result.value == {"id": "abc", "count": 1}
    assert [len(attempt.problems) for attempt in result.history] == [1, 0]
    assert result.usage.model_calls == 2
    first, second = (json.dumps(asked.body) for asked in scripted.asked)
    assert "minLength" not in first
    assert '"count"' in first
    assert "/id" in second
    assert "minLength" in second  # in the words of the error


@pytest.mark.parametrize(("make", "say"), PROVIDERS)
def test_an_answer_in_a_fence_is_read(scripted: ScriptedServer, make: Make, say: Say) -> None:
    scripted.script(say('Here you are:\n```json\n{"id": "abcd"}\n```\nAnything else?'))
    result = make(scripted).generate("One.", JsonSchema(RECORD))
    assert result.value == {"id": "abcd"}
    assert json.loads(result.text) == result.value


@pytest.mark.parametrize(("make", "say"), PROVIDERS)
def test_it_gives_up(scripted: ScriptedServer, make: Make, say: Say) -> None:
    scripted.script(say("I would rather not."))
    with pytest.raises(InvalidOutput, match="none of 2 answers") as found:
        make(scripted, attempts=2).generate("One.", JsonSchema(RECORD))
    assert len(found.value.attempts) == len(scripted.asked) == 2


STREAMS: list[Any] = [
    pytest.param(openai_for, openai_stream("Go", "od", " day"), id="openai"),
    pytest.param(
        anthropic_for,
        anthropic_stream({"type": "text", "text": "Go"}, {"type": "text", "text": "od day"}),
        id="anthropic",
    ),
    pytest.param(google_for, google_stream("Go", "od", " day"), id="google"),
    pytest.param(mistral_for, openai_stream("Go", "od", " day"), id="mistral"),
]


@pytest.mark.parametrize(("make", "answer"), STREAMS)
def test_streams(scripted: ScriptedServer, make: Make, answer: Answer) -> None:
    scripted.script(answer)
    stream = make(scripted).stream("Hello")
    pieces = list(stream)
    assert len(pieces) >= 2
    assert "".join(pieces) == stream.result.text == "Good day"
    assert stream.result.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("make", "say", "expected"),
    [
        (openai_for, openai_answer, {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}),
        (
            anthropic_for,
            anthropic_text,
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
        ),
        (google_for, google_text, {"inlineData": {"mimeType": "image/png", "data": ""}}),
        (mistral_for, openai_answer, {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}),
    ],
    ids=["openai", "anthropic", "google", "mistral"],
)
def test_images(scripted: ScriptedServer, make: Make, say: Say, expected: Any) -> None:
    scripted.script(say("a picture"))
    content = [{"type": "text", "text": "What is this?"}, image(PNG)]
    make(scripted).generate([{"role": "user", "content": content}])
    # Google takes both spellings of a name, and its client writes this one the other way.
    sent = json.dumps(scripted.asked[0].body).replace("mime_type", "mimeType")
    data = base64.b64encode(PNG).decode()
    wanted = json.dumps(expected).replace('base64,"', f'base64,{data}"').replace('"data": ""', f'"data": "{data}"')
    assert _same(json.loads(wanted), json.loads(sent))


def _same(wanted: Any, content: Any) -> bool:
    """Whether a value occurs somewhere in JSON."""
    if content == wanted:
        return True
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return any(_same(wanted, item) for item in inner)


@pytest.mark.parametrize(
    ("make", "say", "fields"),
    [
        (openai_for, openai_answer, {"temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 50, "stop": ["END"]}),
        (anthropic_for, anthropic_text, {"temperature": 0.5, "max_tokens": 50, "stop_sequences": ["END"]}),
        (google_for, google_text, {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 50, "stopSequences": ["END"]}),
        (mistral_for, openai_answer, {"temperature": 0.5, "top_p": 0.9, "max_tokens": 50, "stop": ["END"]}),
    ],
    ids=["openai", "anthropic", "google", "mistral"],
)
@pytest.mark.filterwarnings("ignore::grammask.hosted.HostedWarning")
def test_settings(scripted: ScriptedServer, make: Make, say: Say, fields: dict[str, Any]) -> None:
    scripted.script(say("one END two"))
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=50, stop=["END"])
    result = make(scripted).generate("Hi", sampling=sampling)
    body = scripted.asked[0].body
    sent = {**body, **body.get("generationConfig", {})}
    assert {name: sent[name] for name in fields} == fields
    # Stop texts are also looked for here.
    assert (result.text, result.finish_reason) == ("one ", "stop_sequence")


def test_settings_that_are_lost_are_told(scripted: ScriptedServer) -> None:
    scripted.script(openai_answer("x"))
    with pytest.warns(HostedWarning, match="top_k"):
        result = openai_for(scripted).generate("Hi", sampling=Sampling(top_k=5))
    assert any("top_k" in note for note in result.notes)
    with pytest.raises(ValueError, match="top_k"):
        openai_for(scripted, strict_settings=True).generate("Hi", sampling=Sampling(top_k=5))


def test_without_sampling_nothing_is_said_about_it(scripted: ScriptedServer) -> None:
    scripted.script(openai_answer("x"))
    openai_for(scripted).generate("Hi", max_tokens=7)
    body = scripted.asked[0].body
    assert body["max_completion_tokens"] == 7
    assert not {"temperature", "top_p", "n", "presence_penalty"} & body.keys()


def test_openai_request(scripted: ScriptedServer) -> None:
    scripted.script(openai_answer('{"id": "abc", "count": null}'))
    result = openai_for(scripted).generate("One.", JsonSchema(RECORD))
    wanted = scripted.asked[0].body["response_format"]["json_schema"]
    assert wanted["strict"] is True
    assert wanted["schema"]["required"] == ["id", "count"]
    assert wanted["schema"]["additionalProperties"] is False
    # What the strict subset wanted as null was meant to be absent.
    assert result.value == {"id": "abc"}
    assert scripted.asked[0].headers["authorization"] == "Bearer k"


def test_a_choice_is_an_enum_inside_an_object(scripted: ScriptedServer) -> None:
    scripted.script(openai_answer('{"value": "no"}'))
    result = openai_for(scripted).generate("Is it?", Choice(["yes", "no"]))
    assert result.value == "no"
    schema = scripted.asked[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["value"]["enum"] == ["yes", "no"]


def test_a_server_that_refuses_schemas_is_asked_in_words(scripted: ScriptedServer) -> None:
    def answer(asked: Any) -> Answer:
        if "response_format" in asked.body:
            return Answer({"error": {"message": "response_format is not supported"}}, status=400)
        return openai_answer('{"id": "abc"}')

    scripted.script(answer)
    model = openai_for(scripted)
    result = model.generate("One.", JsonSchema(RECORD))
    assert result.value == {"id": "abc"}
    assert [asked.body.get("response_format", {}).get("type") for asked in scripted.asked] == [
        "json_schema",
        "json_object",
        None,
    ]
    assert "JSON Schema" in scripted.asked[-1].body["messages"][0]["content"]
    model.generate("Another.", JsonSchema(RECORD))
    assert len(scripted.asked) == 4  # it is remembered


def test_a_refusal_is_no_answer(scripted: ScriptedServer) -> None:
    body = openai_answer(None).body
    body["choices"][0]["message"]["refusal"] = "I cannot help with that."
    scripted.script(Answer(body))
    with pytest.raises(InvalidOutput, match="declined: I cannot help"):
        openai_for(scripted, attempts=1).generate("One.", JsonSchema(RECORD))


ERRORS: list[Any] = [
    pytest.param(openai_for, {"error": {"message": "bad key", "code": "invalid_api_key"}}, id="openai"),
    pytest.param(anthropic_for, {"type": "error", "error": {"message": "bad key"}}, id="anthropic"),
    pytest.param(google_for, {"error": {"code": 401, "message": "bad key", "status": "UNAUTHENTICATED"}}, id="google"),
    pytest.param(mistral_for, {"message": "bad key", "detail": "bad key"}, id="mistral"),
]


@pytest.mark.parametrize(("make", "body"), ERRORS)
def test_errors(scripted: ScriptedServer, make: Make, body: Any) -> None:
    scripted.script(Answer(body, status=401))
    with pytest.raises(HostedError, match=r"HTTP 401: .*bad key") as found:
        make(scripted).generate("Hi")
    assert found.value.status == 401
    assert "api_key" in str(found.value)


@pytest.mark.parametrize(("make", "say"), PROVIDERS)
def test_the_client_retries(scripted: ScriptedServer, make: Make, say: Say) -> None:
    scripted.script(Answer({"error": {"message": "busy", "code": 503}}, status=503), say("there"))
    assert make(scripted, max_retries=2).generate("Hi").text == "there"
    assert len(scripted.asked) == 2


def test_strategies_are_those_of_local_models(scripted: ScriptedServer) -> None:
    """Many outputs, votes, samples and drafts are built on single outputs."""

    def answer(asked: Any) -> Answer:
        text = '{"value": 7}' if "response_format" in asked.body else "Three and four are seven."
        return openai_stream(text[:5], text[5:]) if asked.body.get("stream") else openai_answer(text)

    scripted.script(answer)
    model = openai_for(scripted)
    random = Sampling(temperature=0.7, top_p=0.9)
    assert [result.value for result in model.generate_many(["a", "b", "c"], int)] == [7, 7, 7]
    vote = model.generate("a", int, strategy="vote", n=3, sampling=random)
    assert (vote.value, len(vote.samples)) == (7, 3)
    assert len(model.generate("a", int, n=2, sampling=random).samples) == 2
    draft = model.generate("What is 3 + 4?", int, strategy="draft")
    assert (draft.value, draft.reasoning) == (7, "Three and four are seven.")
    assert "Three and four are seven." in str(scripted.asked[-1].body["messages"])
    assert asyncio.run(model.agenerate("a", int)).value == 7


def test_an_answer_that_is_nested_too_deeply_is_refused(scripted: ScriptedServer) -> None:
    depth = 900
    scripted.script(openai_answer('{"id": ' + "[" * depth + "]" * depth + "}"))
    with pytest.raises(InvalidOutput):
        openai_for(scripted, attempts=1).generate("One.", JsonSchema(RECORD))
