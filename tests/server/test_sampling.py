"""Parameters of sampling over HTTP: each has its effect or is refused in OpenAI's shape, none is passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from grammask.models import FunctionModel
from grammask.server.protocol.completions import CompletionRequest
from grammask.server.protocol.sampling import SamplingParameters
from support.models import byte_vocabulary
from support.server import Served, served

A, B, C = map(ord, "abc")
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 6}
HOT: dict[str, Any] = {"temperature": 2, "max_tokens": 40, "seed": 1}


def model() -> FunctionModel:
    """Likes a best, then b, c, and its end of text, and nothing else; whatever was written before."""
    vocabulary = byte_vocabulary()
    logits = np.zeros(258)
    logits[[A, B, C]] = 10.0, 9.0, 8.5
    logits[vocabulary.eos_token_ids[0]] = 3.0
    return FunctionModel(vocabulary, lambda tokens: logits, chat=lambda m: str(m[-1]["content"]), name="abc")


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(model()) as running:
        yield running


def ask(server: Served, endpoint: str, fields: dict[str, Any]) -> Any:
    if endpoint == "chat":
        return server.chat("?", **fields)
    return server.post("/v1/completions", {"model": "abc", "prompt": "?", **fields})


def text_of(choice: dict[str, Any]) -> str:
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


def only(letters: str) -> Callable[[str], bool]:
    return lambda text: len(text) > 1 and set(text) == set(letters)


def is_(expected: str) -> Callable[[str], bool]:
    return lambda text: text == expected


EFFECTS: list[tuple[dict[str, Any], Callable[[str], bool], str]] = [
    (GREEDY, is_("aaaaaa"), "length"),
    ({**GREEDY, "max_tokens": 2}, is_("aa"), "length"),
    ({**GREEDY, "logit_bias": {str(A): -100}}, is_("bbbbbb"), "length"),
    ({**GREEDY, "logit_bias": {str(C): 2}}, is_("cccccc"), "length"),
    ({**GREEDY, "presence_penalty": 2}, is_("abcaaa"), "length"),
    ({**GREEDY, "presence_penalty": -2}, is_("aaaaaa"), "length"),
    ({**GREEDY, "frequency_penalty": 2}, is_("abcabc"), "length"),
    ({**GREEDY, "repetition_penalty": 1.5}, is_("abcaaa"), "length"),
    # Penalties and biases act inside of structured outputs, too.
    ({**GREEDY, "frequency_penalty": 2, "guided_regex": "[abc]{6}"}, is_("abcabc"), "stop"),
    ({**GREEDY, "logit_bias": {str(A): -100}, "guided_regex": "[abc]{6}"}, is_("bbbbbb"), "stop"),
    ({**GREEDY, "frequency_penalty": 2, "stop": "bc"}, is_("a"), "stop"),
    ({**GREEDY, "frequency_penalty": 2, "stop": ["x", "ca"]}, is_("ab"), "stop"),
    ({**GREEDY, "frequency_penalty": 2, "stop": "bc", "include_stop_str_in_output": True}, is_("abc"), "stop"),
    ({**GREEDY, "frequency_penalty": 2, "stop_token_ids": [B]}, is_("ab"), "stop"),
    ({"temperature": 1, "max_tokens": 40, "seed": 1}, only("abc"), "length"),
    (HOT, lambda text: len(set(text)) > 3, "length"),
    ({**HOT, "top_k": 1}, only("a"), "length"),
    ({**HOT, "top_k": 2}, only("ab"), "length"),
    ({**HOT, "top_p": 0.01}, only("a"), "length"),
    ({**HOT, "min_p": 0.9}, only("a"), "length"),
    ({**HOT, "min_p": 0.55}, only("ab"), "length"),
    ({**HOT, "typical_p": 0.01}, lambda text: len(set(text)) == 1, "length"),
    ({**HOT, "top_n_sigma": 0.5}, only("a"), "length"),
    ({"temperature": 0, "max_tokens": 9, "logit_bias": {"256": 100, "257": 100}}, is_(""), "stop"),
    ({"temperature": 0, "max_tokens": 9, "logit_bias": {"256": 100, "257": 100}, "min_tokens": 3}, is_("aaa"), "stop"),
]


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize(("fields", "holds", "reason"), EFFECTS, ids=[str(fields) for fields, _, _ in EFFECTS])
def test_effects(
    server: Served, endpoint: str, fields: dict[str, Any], holds: Callable[[str], bool], reason: str
) -> None:
    answer = ask(server, endpoint, fields)
    assert answer.status_code == 200, answer.text
    [choice] = answer.json()["choices"]
    assert holds(text_of(choice)), text_of(choice)
    assert choice["finish_reason"] == reason


def test_seeds_and_numbers_of_outputs(server: Served) -> None:
    for endpoint in ("chat", "completions"):
        answers = [ask(server, endpoint, {**HOT, "seed": seed, "n": 3}).json() for seed in (1, 1, 2)]
        texts = [[text_of(choice) for choice in answer["choices"]] for answer in answers]
        assert texts[0] == texts[1] != texts[2]
        assert len(set(texts[0])) == 3


REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"temperature": 2.1}, "temperature", "invalid_value"),
    ({"temperature": "1"}, "temperature", "invalid_value"),
    ({"top_p": 0}, "top_p", "invalid_value"),
    ({"top_p": 1.5}, "top_p", "invalid_value"),
    ({"presence_penalty": 2.5}, "presence_penalty", "invalid_value"),
    ({"frequency_penalty": -2.5}, "frequency_penalty", "invalid_value"),
    ({"repetition_penalty": 0}, "repetition_penalty", "invalid_value"),
    ({"logit_bias": {"a": 1}}, "logit_bias", "invalid_value"),
    ({"logit_bias": {"97": 101}}, "logit_bias", "invalid_value"),
    ({"logit_bias": {"97": "1"}}, "logit_bias", "invalid_value"),
    ({"logit_bias": [1]}, "logit_bias", "invalid_value"),
    ({"seed": 1.5}, "seed", "invalid_value"),
    ({"stop": ""}, "stop", "invalid_value"),
    ({"stop": ["a"] * 17}, "stop", "invalid_value"),
    ({"stop_token_ids": [999]}, None, "invalid_value"),
    ({"stop_token_ids": ["a"]}, "stop_token_ids[0]", "invalid_value"),
    ({"max_tokens": 0}, "max_tokens", "invalid_value"),
    ({"n": 0}, "n", "invalid_value"),
    ({"stream": "yes"}, "stream", "invalid_value"),
    ({"top_k": -2}, "top_k", "invalid_value"),
    ({"min_p": 1.1}, "min_p", "invalid_value"),
    ({"typical_p": 0}, "typical_p", "invalid_value"),
    ({"top_n_sigma": 0}, "top_n_sigma", "invalid_value"),
    ({"min_tokens": -1}, "min_tokens", "invalid_value"),
    ({"min_tokens": 5, "max_tokens": 3}, "min_tokens", "invalid_value"),
    ({"include_stop_str_in_output": 1}, "include_stop_str_in_output", "invalid_value"),
    ({"best_of": 2}, "best_of", "unsupported_parameter"),
    ({"use_beam_search": True}, "use_beam_search", "unsupported_parameter"),
    ({"ignore_eos": True}, "ignore_eos", "unsupported_parameter"),
    ({"bad_words": ["a"]}, "bad_words", "unsupported_parameter"),
    ({"skip_special_tokens": False}, "skip_special_tokens", "unsupported_parameter"),
    ({"prompt_logprobs": 1}, "prompt_logprobs", "unsupported_parameter"),
    ({"logits_processors": ["a.b"]}, "logits_processors", "unsupported_parameter"),
    ({"repeat_penalty": 1.1}, "repeat_penalty", "unknown_parameter"),
    ({"mirostat": 2}, "mirostat", "unknown_parameter"),
    ({"top_a": 0.1}, "top_a", "unknown_parameter"),
    ({"frequency_penality": 1}, "frequency_penality", "unknown_parameter"),
]


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize(("fields", "param", "code"), REFUSED, ids=[str(fields) for fields, _, _ in REFUSED])
def test_refusals(server: Served, endpoint: str, fields: dict[str, Any], param: str | None, code: str) -> None:
    answer = ask(server, endpoint, fields)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code), error
    assert error["message"]


def test_the_tables_have_every_parameter() -> None:
    shared = set(SamplingParameters.model_fields)
    assert shared <= {name for fields, _, _ in REFUSED for name in fields}
    effects = {name for fields, _, _ in EFFECTS for name in fields} | {"n", "seed"}
    assert shared - effects == {"stream"}
    neutral = {name for name, rule in CompletionRequest.neutral.items() if not rule.accepts("something")}
    assert neutral >= {name for fields, _, code in REFUSED for name in fields if code == "unsupported_parameter"}


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({"temperature": 0}, only("a")),
        ({"temperature": 2, "seed": 1}, lambda text: len(set(text)) > 3),
        ({"temperature": 2, "seed": 1, "top_p": 0.01}, only("a")),
        ({"temperature": 0, "stop": ["a"]}, None),
        ({"temperature": 0, "logit_bias": {"97": -100}}, None),
        ({"temperature": 0, "presence_penalty": 1}, None),
        ({"temperature": 0, "n": 2}, None),
    ],
)
def test_responses(server: Served, fields: dict[str, Any], holds: Callable[[str], bool] | None) -> None:
    """OpenAI's responses have fewer parameters; the others are refused there as well."""
    body = {"model": "abc", "input": "?", "max_output_tokens": 40, **fields}
    answer = server.post("/v1/responses", body)
    if holds is None:
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "unknown_parameter"
        assert answer.json()["error"]["param"] == list(fields)[-1]
    else:
        assert holds(answer.json()["output"][0]["content"][0]["text"])
