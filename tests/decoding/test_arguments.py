"""Slips in arguments: the error names the function that was called, what was wrong, and what was probably meant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from grammask import State, gen, openai_compatible, select
from grammask.models import LanguageModel, ModelError
from support.models import WritingModel

MODEL: Any = WritingModel("text")
PROMPT = [{"role": "user", "content": "Go."}]

CALLS: dict[str, Callable[..., Any]] = {
    "generate": lambda **options: MODEL.generate("p", **options),
    "stream": lambda **options: MODEL.stream("p", **options),
    "agenerate": lambda **options: asyncio.run(MODEL.agenerate("p", **options)),
    "astream": lambda **options: MODEL.astream("p", **options),
    "generate_many": lambda **options: MODEL.generate_many(["p"], **options),
    "gen": lambda **options: gen("name", **options),
    "select": lambda **options: select("name", ["a"], **options),
    "State": lambda **options: State(MODEL, **options),
}
SLIPS = [
    ("temperature", r"a setting of how tokens are drawn: pass sampling=grammask.Sampling\(temperature=...\)"),
    ("top_k", r"pass sampling=grammask.Sampling\(top_k=...\)"),
    ("temprature", r"did you mean sampling=grammask.Sampling\(temperature=...\)\?"),
    ("max_token", "did you mean 'max_tokens'?"),
    ("max_new_tokens", "did you mean 'max_tokens'?"),
    ("strateg", "did you mean 'strategy'?"),
    ("zzz", "it has .*cancelled, .*timeout"),
]


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize(("name", "advice"), SLIPS, ids=[slip[0] for slip in SLIPS])
def test_options(function: str, name: str, advice: str) -> None:
    with pytest.raises(TypeError, match=rf"^{function}\(\) has no option '{name}'.*{advice}"):
        CALLS[function](**{name: 5})


def test_options_of_one_function() -> None:
    with pytest.raises(TypeError, match="did you mean 'batch_size'"):
        CALLS["generate_many"](batchsize=5)
    with pytest.raises(TypeError, match="did you mean 'where'"):
        gen("name", were=5)


MESSAGES: list[tuple[Any, type[Exception], str]] = [
    (5, TypeError, "the prompt is of type int: pass a text, or a list of messages"),
    (None, TypeError, "the prompt is of type NoneType"),
    (b"Go.", TypeError, "the prompt is of type bytes"),
    (PROMPT[0], TypeError, "the prompt is one message: pass a list"),
    (["Go."], TypeError, "message 0 is of type str"),
    ([{"content": "Go."}], ModelError, r"message 0 must have the keys 'role' and 'content', got \['content'\]"),
    ([*PROMPT, {"role": "user"}], ModelError, "message 1 must have the keys"),
    (
        [{"role": "usr", "content": "Go."}],
        ModelError,
        "message 0 has the role 'usr'.*did you mean 'user'.*the roles are system, developer, user, assistant, tool",
    ),
    ([{"role": "xyz", "content": "Go."}], ModelError, "'xyz'\n  hint: the roles are"),
    ([{"role": "user", "content": 5}], ModelError, "the content of message 0 is of type int"),
    ([{"role": "user", "content": None}], ModelError, "the content of message 0 is of type NoneType"),
]


@pytest.mark.parametrize("prompt", [row[0] for row in MESSAGES], ids=[str(row[0])[:40] for row in MESSAGES])
@pytest.mark.parametrize("strategy", [None, "beam"])
@pytest.mark.parametrize("hosted", [False, True])
def test_prompts(prompt: Any, strategy: str | None, hosted: bool) -> None:
    _, error, message = next(row for row in MESSAGES if row[0] is prompt)
    model: LanguageModel = (
        openai_compatible("http://127.0.0.1:9/v1", "absent", api_key="none", max_retries=0) if hosted else MODEL
    )
    with pytest.raises(error, match=f"(?s){message}"):
        model.generate(prompt, strategy=strategy)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [("Go.", "of type str"), (PROMPT[0], "of type dict"), (PROMPT, "one list of messages: .* even of one")],
)
def test_one_prompt_where_several_are_expected(prompts: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        MODEL.generate_many(prompts)


def test_messages_that_are_fine() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "4", "tool_call_id": "1"},
    ]
    assert MODEL.generate(messages).text == "text"


def test_roles_of_a_chat_template() -> None:
    class Observing(WritingModel):
        def knows_role(self, role: str) -> bool:
            return role == "observation"

    assert Observing("text").generate([{"role": "observation", "content": "4"}]).text == "text"
    with pytest.raises(ModelError, match="'observatory'"):
        Observing("text").generate([{"role": "observatory", "content": "4"}])
