"""Hosted models against a real server: llama.cpp with SmolLM2, through the official openai client."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest

from grammask import Choice, JsonSchema, Regex, Sampling
from grammask.hosted import HostedError, HostedModel, InvalidOutput, openai_compatible
from grammask.models.errors import ModelError

pytestmark = pytest.mark.model
pydantic = pytest.importorskip("pydantic")


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=2, max_length=12)
    age: int = pydantic.Field(ge=0, le=120)
    mood: Literal["happy", "sad"]


@pytest.fixture(scope="module")
def model(llama_url: str) -> HostedModel:
    return openai_compatible(llama_url)


GREEDY = Sampling(temperature=0, max_tokens=120)


def test_the_server_is_recognized(model: HostedModel) -> None:
    assert model.client.provider == "llama.cpp"
    assert model.client.model.endswith(".gguf")


def test_a_type_is_enforced_by_the_server(model: HostedModel) -> None:
    result = model.generate("Invent a person.", Person, sampling=GREEDY)
    assert isinstance(result.value, Person)
    assert result.complete
    assert result.format.kind == "json_schema"
    assert result.usage.prompt_tokens > 5
    assert result.usage.completion_tokens > 10
    assert result.usage.model_calls == len(result.history) == 1


def test_what_the_server_lets_through_is_found_and_asked_again(model: HostedModel) -> None:
    """llama.cpp accepts any string for a pattern that is not anchored, and says so in its log only."""
    wanted = JsonSchema({"type": "string", "pattern": "zq[0-9]{2}qz", "maxLength": 40})
    with pytest.raises(InvalidOutput, match="does not satisfy") as found:
        model.generate("Say something about the sea.", wanted, sampling=GREEDY)
    assert len(found.value.attempts) == 3
    assert all(attempt.problems for attempt in found.value.attempts)


@pytest.mark.parametrize(
    ("wanted", "check"),
    [
        (Choice(["positive", "negative"]), lambda value: value in ("positive", "negative")),
        (Regex("[0-9]{4}-(0[1-9]|1[0-2])"), lambda value: re.fullmatch("[0-9]{4}-(0[1-9]|1[0-2])", value)),
        (list[Annotated[int, {"minimum": 3, "maximum": 5}]], lambda value: all(3 <= item <= 5 for item in value)),
        (None, lambda value: isinstance(value, str) and value),
    ],
    ids=["choice", "regex", "list", "text"],
)
def test_other_outputs(model: HostedModel, wanted: Any, check: Any) -> None:
    result = model.generate("How was it? It was good.", wanted, sampling=GREEDY.replace(max_tokens=60))
    assert result.finish_reason == "length" or check(result.value)


def test_stream(model: HostedModel) -> None:
    stream = model.stream("Invent a person.", Person, sampling=GREEDY)
    partial = []
    text = ""
    for piece in stream:
        text += piece
        partial.append(stream.partial)
    assert text == stream.result.text
    assert stream.result.value == Person.model_validate_json(text)
    assert [hasattr(value, "name") for value in partial if value is not None][-1]
    assert len(partial) > 5


def test_cancel(model: HostedModel) -> None:
    stream = model.stream("Count from one to a hundred.", sampling=GREEDY.replace(max_tokens=400))
    next(stream)
    stream.cancel()
    list(stream)
    assert stream.result.finish_reason == "cancelled"
    # The server is free again.
    assert model.generate("Hi", max_tokens=3).text


def test_timeout(model: HostedModel) -> None:
    result = model.generate("Count from one to a hundred.", sampling=GREEDY.replace(max_tokens=4000), timeout=0.05)
    assert result.finish_reason in ("timeout", "stop")


def test_an_output_that_was_cut_has_no_value(model: HostedModel) -> None:
    result = model.generate("Invent a person.", Person, max_tokens=4)
    assert (result.value, result.complete, result.finish_reason) == (None, False, "length")
    assert model.generate("Tell a story.", max_tokens=4).complete


def test_stop_texts(model: HostedModel) -> None:
    result = model.generate("Write: one, two, three", sampling=GREEDY.replace(max_tokens=30), stop=[","])
    assert "," not in result.text


def test_a_seed_repeats(model: HostedModel) -> None:
    first = [model.generate("A word.", max_tokens=8, seed=5, sampling=Sampling()).text for _ in range(2)]
    assert first[0] == first[1]


def test_asynchronously(model: HostedModel) -> None:
    import asyncio

    result = asyncio.run(model.agenerate("Invent a person.", Person, sampling=GREEDY))
    assert isinstance(result.value, Person)


def test_options_of_local_models_are_refused(model: HostedModel) -> None:
    with pytest.raises(ModelError, match="in this process"):
        model.generate("Hi", heal=True)


def test_errors_say_where(llama_url: str) -> None:
    lost = openai_compatible("http://127.0.0.1:9/v1", "m", provider="vllm", max_retries=0)
    with pytest.raises(HostedError, match="cannot be reached"):
        lost.generate("Hi")
    with pytest.raises(HostedError, match="HTTP 404") as found:
        openai_compatible(llama_url.removesuffix("/v1") + "/nothing", "m", provider="vllm").generate("Hi")
    assert found.value.status == 404
    assert "/v1" in str(found.value)
