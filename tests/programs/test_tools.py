"""Loops of tool calls: local models under their constraint, hosted ones through their clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from grammask import Sampling, run_tools
from grammask.models.base import Prompt
from grammask.models.errors import ModelError
from support.models import WritingModel
from support.scripted_server import Answer, ScriptedServer, anthropic_stream, google_answer, openai_answer


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    if city != "Oslo":
        raise KeyError(f"there is no station in {city}")
    return {"sky": "clear", "degrees": -3}


async def wait(seconds: float) -> str:
    """Wait."""
    return f"waited {seconds}"


class Caller(WritingModel):
    """Writes one text after the other."""

    def __init__(self, *texts: str) -> None:
        super().__init__(texts[0])
        self.prompts: list[Any] = []
        self._texts = list(texts)

    def encode(self, prompt: Prompt) -> list[int]:
        self.prompts.append(prompt)
        self._goal = (self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]).encode()
        return super().encode(prompt)


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_a_local_model_calls_and_answers() -> None:
    model = Caller(call("add", a=17, b=25), "It is 42.")
    outcome = run_tools(model, "What is 17 + 25?", [add, weather], max_tokens=400)
    assert (outcome.text, outcome.rounds, outcome.finish_reason) == ("It is 42.", 2, "stop")
    (run,) = outcome.runs
    assert (run.name, run.arguments, run.value, run.error) == ("add", {"a": 17, "b": 25}, 42, None)
    assert "Add two numbers" in model.prompts[0][0]["content"]
    assert model.prompts[1][-1]["content"] == "<tool_response>\n42\n</tool_response>"
    assert [step.kind for step in outcome.trace.steps] == ["generation", "tool", "generation"]
    assert outcome.usage.model_calls > 10


def test_errors_are_fed_back() -> None:
    model = Caller(call("weather", city="Rome"), call("weather", city="Oslo"), "Clear.")
    outcome = run_tools(model, "?", [weather], max_tokens=400)
    assert [run.error for run in outcome.runs] == ["KeyError: 'there is no station in Rome'", None]
    assert "no station in Rome" in model.prompts[1][-1]["content"]
    assert outcome.runs[1].value == {"sky": "clear", "degrees": -3}


def test_the_number_of_rounds_is_bounded() -> None:
    model = Caller(call("add", a=1, b=1))
    outcome = run_tools(model, "?", [add], limit=2, max_tokens=200)
    assert len(outcome.runs) == 2
    assert outcome.rounds == 3
    assert outcome.finish_reason in ("limit", "length")


def test_an_output_that_was_cut_calls_nothing() -> None:
    class Cut(Caller):
        def generate(self, *args: Any, **options: Any) -> Any:
            return super().generate(*args, **{**options, "truncate": "allow"})

    outcome = run_tools(Cut(call("add", a=1, b=1)), "?", [add], max_tokens=12)
    assert (outcome.runs, outcome.finish_reason) == ((), "length")


def test_a_typed_answer() -> None:
    model = Caller(call("add", a=2, b=3), "Five", "5")
    outcome = run_tools(model, "?", [add], answer=int, max_tokens=200)
    assert outcome.value == 5
    assert outcome.messages[-1] == {"role": "assistant", "content": "5"}


def test_coroutines_are_awaited() -> None:
    outcome = run_tools(Caller(call("wait", seconds=0), "ok"), "?", [wait], max_tokens=200)
    assert outcome.runs[0].value == "waited 0.0"


def test_tools_need_functions() -> None:
    with pytest.raises(ModelError, match="no function"):
        run_tools(Caller(""), "?", [{"name": "x", "parameters": {"type": "object"}}])


# -- hosted


@pytest.fixture
def scripted() -> Any:
    with ScriptedServer() as server:
        yield server


def openai_model(server: ScriptedServer) -> Any:
    pytest.importorskip("openai")
    from grammask.hosted import openai_compatible

    return openai_compatible(f"{server.url}/v1", "m", provider="openai", api_key="k")


def test_calls_run_at_once_and_results_keep_their_order(scripted: ScriptedServer) -> None:
    barrier = threading.Barrier(3, timeout=20)

    def meet(number: int) -> int:
        """Meet the others."""
        barrier.wait()
        return number * 10

    calls = [(f"id{n}", "meet", json.dumps({"number": n})) for n in (1, 2, 3)]
    scripted.script(openai_answer(None, reason="tool_calls", calls=calls), openai_answer("done"))
    outcome = run_tools(openai_model(scripted), "?", [meet])
    assert [run.value for run in outcome.runs] == [10, 20, 30]
    sent = scripted.asked[1].body["messages"]
    assert [(m["tool_call_id"], m["content"]) for m in sent if m["role"] == "tool"] == [
        ("id1", "10"),
        ("id2", "20"),
        ("id3", "30"),
    ]
    assert outcome.usage.model_calls == 2


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("add", '{"a": 1, "b": "two"}', "does not satisfy"),
        ("add", '{"a": 1}', '\\"b\\" is missing'),
        ("add", "not json at all", "no JSON"),
        ("subtract", "{}", "no tool 'subtract'"),
    ],
)
def test_faulty_calls_are_fed_back(scripted: ScriptedServer, name: str, arguments: str, told: str) -> None:
    scripted.script(
        openai_answer(None, reason="tool_calls", calls=[("1", name, arguments)]),
        openai_answer(None, reason="tool_calls", calls=[("2", "add", '{"a": 1, "b": 2}')]),
        openai_answer("3"),
    )
    outcome = run_tools(openai_model(scripted), "?", [add], sampling=Sampling(temperature=0))
    assert [run.value for run in outcome.runs] == [None, 3]
    assert told in scripted.asked[1].body["messages"][-1]["content"]


def first_and_last(server: ScriptedServer, *answers: Answer) -> Sequence[Any]:
    server.script(*answers)
    return server.asked


def test_anthropic(scripted: ScriptedServer) -> None:
    pytest.importorskip("anthropic")
    from grammask.hosted import anthropic

    asked = first_and_last(
        scripted,
        anthropic_stream(
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "tu_1", "name": "add", "input": {"a": 1, "b": 2}},
            reason="tool_use",
        ),
        anthropic_stream({"type": "text", "text": "3"}),
    )
    outcome = run_tools(anthropic("claude", base_url=scripted.url, api_key="k"), "1+2?", [add], choice="required")
    assert (outcome.text, outcome.runs[0].value) == ("3", 3)
    assert asked[0].body["tools"][0]["input_schema"]["properties"]["a"] == {
        "type": "integer",
        "description": "the first.",
    }
    assert asked[0].body["tool_choice"] == {"type": "any"}
    assistant, user = asked[1].body["messages"][-2:]
    assert [block["type"] for block in assistant["content"]] == ["text", "tool_use"]
    assert user["content"] == [{"type": "tool_result", "tool_use_id": "tu_1", "content": "3"}]


def test_google(scripted: ScriptedServer) -> None:
    pytest.importorskip("google.genai")
    from grammask.hosted import google

    call_ = {"functionCall": {"name": "add", "args": {"a": 1, "b": 2}}, "thoughtSignature": "c2lnbg=="}
    asked = first_and_last(scripted, google_answer(call_), google_answer({"text": "3"}))
    outcome = run_tools(google("gemini", base_url=scripted.url, api_key="k"), "1+2?", [add])
    assert (outcome.text, outcome.runs[0].value) == ("3", 3)
    sent = json.dumps(asked[1].body)
    assert "functionResponse" in sent
    assert "c2lnbg==" in sent


def test_mistral(scripted: ScriptedServer) -> None:
    pytest.importorskip("mistralai")
    from grammask.hosted import mistral

    calls = [("abcdefghi", "add", '{"a": 1, "b": 2}')]
    asked = first_and_last(scripted, openai_answer("", reason="tool_calls", calls=calls), openai_answer("3"))
    outcome = run_tools(mistral("small", base_url=scripted.url, api_key="k"), "1+2?", [add])
    assert (outcome.text, outcome.runs[0].value) == ("3", 3)
    assert asked[1].body["messages"][-1]["tool_call_id"] == "abcdefghi"
