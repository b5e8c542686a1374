"""Text completions over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grammask.models import FunctionModel
from support.models import WritingModel
from support.server import Served, random_model, served


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(random_model()) as running:
        yield running


def complete(server: Served, **fields: Any) -> Any:
    return server.post("/v1/completions", {"model": server.service.name, "max_tokens": 8, "seed": 1, **fields})


def test_prompts_of_every_kind(server: Served) -> None:
    text = complete(server, prompt="ab").json()
    assert text["object"] == "text_completion"
    assert text["choices"][0]["text"] == complete(server, prompt=[97, 98]).json()["choices"][0]["text"]
    several = complete(server, prompt=["ab", "cd"], n=2).json()
    assert [choice["index"] for choice in several["choices"]] == [0, 1, 2, 3]
    assert several["choices"][0]["text"] == text["choices"][0]["text"]
    assert several["usage"]["prompt_tokens"] == 4
    ids = complete(server, prompt=[[97, 98], [99, 100]], n=2).json()
    assert [choice["text"] for choice in ids["choices"]] == [choice["text"] for choice in several["choices"]]


def test_a_stream_is_the_same(server: Served) -> None:
    import json

    fields = {"prompt": "ab", "n": 2, "logprobs": 2}
    whole = complete(server, **fields).json()["choices"]
    lines = complete(server, stream=True, **fields).text.strip().split("\n\n")
    assert lines[-1] == "data: [DONE]"
    steps = [json.loads(line[6:])["choices"][0] for line in lines[:-1]]
    for choice in whole:
        own = [step for step in steps if step["index"] == choice["index"]]
        assert "".join(step["text"] for step in own) == choice["text"]
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            assert [x for step in own if step["logprobs"] for x in step["logprobs"][name]] == choice["logprobs"][name]


def test_echo_and_stop() -> None:
    with served(WritingModel("one two three")) as server:
        answer = complete(server, prompt="> ", echo=True, temperature=0, max_tokens=50, stop=" three").json()
        assert answer["choices"][0] == {"index": 0, "text": "> one two", "logprobs": None, "finish_reason": "stop"}


def test_a_model_without_a_chat_template() -> None:
    model = random_model()
    plain = FunctionModel(model.vocabulary, model._logits, name="plain")
    with served(plain) as server:
        assert complete(server, prompt="x").status_code == 200
        refused = server.chat()
        assert refused.status_code == 400
        assert "/v1/completions" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": [999]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": ["x"] * 65}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({}, "prompt"),
        ({"prompt": ["a", "b"], "stream": True}, "stream"),
        ({"prompt": "a", "suffix": "b"}, "suffix"),
        ({"prompt": "a", "echo": True, "logprobs": 1}, "echo"),
        ({"prompt": "a", "logprobs": 30}, "logprobs"),
        ({"prompt": "a", "best_of": 2}, "best_of"),
    ],
)
def test_refusals(server: Served, fields: dict[str, Any], param: str) -> None:
    answer = complete(server, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith(param)
    assert server.service.open_generations == 0
