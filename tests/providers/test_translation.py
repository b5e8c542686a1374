"""Requests from ``Sampling``: what is sent, what is lost, what changes its meaning."""

from __future__ import annotations

import datetime
import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask import providers
from grammask.providers import StaleCatalogueWarning, TranslationError, translate
from grammask.sampling import Sampling

TODAY = datetime.date(2026, 12, 1)
APIS = [
    provider.name if api is provider.api() else f"{provider.name}/{api.name}"
    for provider in providers.load_all()
    for api in provider.apis.values()
]
BAN = float("-inf")


def issues(settings: dict[str, Any], name: str, kind: str) -> dict[str, str]:
    translation = translate(Sampling(**settings), name, today=TODAY)
    return {issue.setting: issue.message for issue in translation.issues if issue.kind == kind}


# (settings, provider, request)
REQUESTS: list[tuple[dict[str, Any], str, Any]] = [
    ({}, "openai", {}),
    ({"temperature": 0.7, "top_p": 0.9}, "openai", {"temperature": 0.7, "top_p": 0.9}),
    ({"temperature": 0}, "openai", {"temperature": 0}),
    ({"temperature": -1}, "openai", {"temperature": 0}),
    ({"max_tokens": 9, "stop": "a"}, "openai", {"max_completion_tokens": 9, "stop": ["a"]}),
    ({"logprobs": True, "top_logprobs": 4}, "openai", {"logprobs": True, "top_logprobs": 4}),
    (
        {"logprobs": True, "top_logprobs": 4},
        "openai/responses",
        {"include": ["message.output_text.logprobs"], "top_logprobs": 4},
    ),
    ({"logit_bias": {7: 2.5, 8: BAN}}, "openai", {"logit_bias": {"7": 2.5, "8": -100}}),
    ({"max_tokens": 5, "stop": ["x"], "top_k": 3}, "anthropic", {"max_tokens": 5, "stop_sequences": ["x"], "top_k": 3}),
    ({"seed": 4}, "mistral", {"random_seed": 4, "temperature": 1.0}),
    ({"temperature": 0.5}, "google", {"generationConfig": {"temperature": 0.5, "topP": 1.0}}),
    # Off here, on there: sent with the value that switches it off.
    ({}, "ollama", {"options": {"temperature": 1.0, "top_p": 1.0}}),
    ({"temperature": 0}, "ollama", {"options": {"temperature": 0.0}}),
    (
        {"repetition_penalty": 1.2, "top_k": 9, "top_p": 0.5},
        "ollama",
        {"options": {"temperature": 1.0, "top_k": 9, "top_p": 0.5, "repeat_penalty": 1.2, "repeat_last_n": -1}},
    ),
    (
        {},
        "llama.cpp",
        {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0},
    ),
    (
        {"temperature": 0, "logit_bias": {5: BAN, 6: 1.0}, "repetition_penalty": 1.1, "order": "llama.cpp"},
        "llama.cpp",
        {"temperature": 0, "repeat_penalty": 1.1, "repeat_last_n": 64, "logit_bias": [[5, False], [6, 1.0]]},
    ),
    ({"temperature": 0, "logprobs": True}, "together", {"temperature": 0, "logprobs": 1}),
    ({"temperature": 0, "logprobs": True, "top_logprobs": 3}, "together", {"temperature": 0, "logprobs": 3}),
    # TGI's own endpoint draws only if told so, and takes no temperature of 0.
    ({"temperature": 0}, "tgi", {"parameters": {"do_sample": False}}),
    ({"temperature": 0.5}, "tgi", {"parameters": {"temperature": 0.5, "do_sample": True}}),
    ({"temperature": 0}, "tgi/chat", {"temperature": 0}),
    (
        {"min_tokens": 2, "max_tokens": 8, "stop_token_ids": [3]},
        "vllm",
        {"min_tokens": 2, "max_completion_tokens": 8, "stop_token_ids": [3]},
    ),
]


@pytest.mark.parametrize(("settings", "name", "request_fields"), REQUESTS)
def test_requests(settings: dict[str, Any], name: str, request_fields: Any) -> None:
    assert translate(Sampling(**settings), name, today=TODAY).request == request_fields


# (settings, provider, kind, setting, part of the message)
ISSUES: list[tuple[dict[str, Any], str, str, str, str]] = [
    ({"top_k": 5}, "openai", "lost", "top_k", "has no such field"),
    ({"top_p": 0.5}, "azure", "lost", "top_p", "is not known"),
    ({"temperature": 1.2}, "anthropic", "lost", "temperature", "1.2 is out of the range of Anthropic: 0 to 1"),
    ({}, "anthropic", "lost", "max_tokens", "requires it"),
    ({"stop": list("abcde")}, "openai", "lost", "stop", "has 5 entries, and OpenAI takes at most 4"),
    ({"logit_bias": {1: 200.0}}, "openai", "lost", "logit_bias", "200 is out of the range"),
    ({"logit_bias": {1: BAN}}, "openai", "changed", "logit_bias", "-inf becomes -100"),
    ({"logit_bias": {1: BAN}}, "together", "lost", "logit_bias", "is not stated"),
    ({"logit_bias": {1: 1.0}}, "tgi/chat", "lost", "logit_bias", "ignores it"),
    ({"logprobs": True}, "groq", "lost", "logprobs", "refuses it (HTTP 400)"),
    ({"presence_penalty": 1}, "groq", "lost", "presence_penalty", "does not support it"),
    ({"presence_penalty": 1}, "tgi/chat", "changed", "presence_penalty", "repetition penalty of value + 2"),
    ({"n": 2}, "groq", "lost", "n", "2 is out of the range of Groq: 1"),
    ({"seed": 2**63}, "vllm", "lost", "seed", "out of the range"),
    ({"seed": 1}, "vllm", "note", "seed", "never to grammask's"),
    ({"temperature": 0.001}, "vllm", "changed", "temperature", "0.001 is raised to 0.01"),
    ({"temperature": 0}, "groq", "note", "temperature", "0 is turned into 1e-8"),
    ({}, "cohere", "changed", "top_p", "takes 0.75, and the range is 0.01 to 0.99"),
    ({}, "google", "changed", "top_k", "takes per model; how to switch it off is not stated"),
    ({}, "together", "note", "top_k", "is not stated"),
    ({}, "vllm", "changed", "max_tokens", "stops after 16 tokens"),
    (
        {"frequency_penalty": 0.5},
        "cohere",
        "changed",
        "frequency_penalty",
        "counts the output here, and prompt and output",
    ),
    ({"repetition_penalty": 1.1}, "llama.cpp", "changed", "penalty_window", "the latest 64"),
    ({"repetition_penalty": 1.1}, "vllm", "note", "repetition_penalty", "off under a structured constraint"),
    ({"top_p": 0.9, "temperature": 0.5}, "llama.cpp", "changed", "order", "applies top_p before temperature"),
    ({"top_p": 0.9, "temperature": 0.5}, "openai", "note", "order", "temperature and top_p is not known"),
    ({"top_k": 9, "top_p": 0.9, "temperature": 0.5}, "cohere", "note", "order", "where Cohere applies temperature"),
    ({"temperature": 0.5}, "deepseek", "note", "temperature", "ignored with thinking mode"),
    ({"stop": "a", "presence_penalty": 1}, "xai", "note", "presence_penalty, stop", "refused with reasoning models"),
    ({"dry_multiplier": 1, "dry_breakers": ["a", 3]}, "llama.cpp", "lost", "dry_breakers", "token ids cannot be sent"),
    ({"dry_multiplier": 1}, "llama.cpp", "changed", "dry_window", "the latest 64"),
    ({"stop": "a", "include_stop": True}, "vllm", "lost", "include_stop", "is not known"),
]


@pytest.mark.parametrize(("settings", "name", "kind", "setting", "message"), ISSUES)
def test_issues(settings: dict[str, Any], name: str, kind: str, setting: str, message: str) -> None:
    found = issues(settings, name, kind)
    assert any(message in text for key, text in found.items() if setting in key.split(", ") or setting == key), found


def test_no_false_alarms() -> None:
    """Settings that a provider means as grammask does are exact."""
    same = Sampling(temperature=0.7, top_p=0.9, max_tokens=10, order="vllm")
    assert translate(same, "vllm", today=TODAY).issues == ()
    llama = Sampling(
        temperature=0.7,
        top_p=0.9,
        min_p=0.1,
        top_k=5,
        frequency_penalty=0.5,
        order="llama.cpp",
        penalize_structured=True,
    )
    assert translate(llama, "llama.cpp", today=TODAY).issues == ()
    # Greedy: no order of cuts and temperature moves the best token.
    greedy = translate(Sampling(temperature=0, top_p=0.9), "llama.cpp", today=TODAY)
    assert not [issue for issue in greedy.issues if issue.setting == "order"]
    # Additions commute.
    added = translate(
        Sampling(presence_penalty=1, logit_bias={1: 1.0}, max_tokens=3, order="openai"), "vllm", today=TODAY
    )
    assert not [issue for issue in added.issues if issue.setting == "order"]


def test_strict() -> None:
    assert translate(Sampling(temperature=0.5), "openai", strict=True, today=TODAY).exact
    with pytest.raises(TranslationError, match="OpenAI \\(Chat Completions\\) cannot do this as it is meant") as caught:
        translate(Sampling(top_k=4, min_p=0.1, seed=1), "openai", strict=True, today=TODAY)
    assert [issue.setting for issue in caught.value.issues] == ["top_k", "min_p"]


def test_old_facts_come_with_a_warning() -> None:
    with pytest.warns(StaleCatalogueWarning, match="compare them"):
        translate(Sampling(), "openai", today=datetime.date(2040, 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translate(Sampling(), "openai", today=TODAY)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 3),
        "top_k": st.integers(1, 500),
        "top_p": st.floats(0, 1),
        "min_p": st.floats(0, 1),
        "typical_p": st.floats(0.01, 1),
        "top_n_sigma": st.floats(0.1, 3),
        "xtc_probability": st.floats(0, 1),
        "presence_penalty": st.floats(-3, 3),
        "frequency_penalty": st.floats(-3, 3),
        "repetition_penalty": st.floats(0.5, 3),
        "no_repeat_ngram_size": st.integers(1, 5),
        "dry_multiplier": st.floats(0, 2),
        "logit_bias": st.dictionaries(st.integers(0, 99), st.floats(-200, 200) | st.just(BAN), max_size=3),
        "max_tokens": st.integers(10, 10**6),
        "min_tokens": st.integers(0, 10),
        "stop": st.lists(st.text(st.characters(codec="ascii"), min_size=1), max_size=6),
        "stop_token_ids": st.lists(st.integers(0, 99), max_size=3),
        "seed": st.integers(0, 2**64 - 1),
        "logprobs": st.just(True),
    },
)


def _fields(request: Any, path: str = "") -> dict[str, Any]:
    """Dotted paths of a request's fields; token ids are no levels."""
    found: dict[str, Any] = {}
    for key, value in request.items():
        if isinstance(value, dict) and not all(str(inner).isdigit() for inner in value):
            found |= _fields(value, f"{path}{key}.")
        else:
            found[path + key] = value
    return found


@given(SETTINGS, st.sampled_from(APIS))
def test_nothing_is_dropped_in_silence(settings: dict[str, Any], name: str) -> None:
    """Each setting that is on is either in the request, with its own value and in range, or listed as lost."""
    sampling = Sampling(**settings)
    translation = translate(sampling, name, today=TODAY)
    api = providers.find(name)[1]
    json.dumps(translation.request, allow_nan=False)
    fields = _fields(translation.request)
    lost = {issue.setting for issue in translation.of_kind("lost")}
    for setting in settings:
        value, default = getattr(sampling, setting), getattr(Sampling(), setting)
        if value == default or (setting in ("top_p", "typical_p") and value == 1) or (setting == "min_p" and not value):
            continue
        parameter = api.parameters[setting]
        if parameter.field in fields and parameter.status == "accepted":
            sent = fields[parameter.field]
            if parameter.form == "number":
                assert sent == (0 if setting == "temperature" and sampling.is_greedy else value)
                assert parameter.in_range(sent)
            elif parameter.form == "list":
                assert sent == list(value)
        else:
            assert setting in lost or (setting == "temperature" and sampling.is_greedy and api.greedy_fields)
    known = {parameter.field for parameter in api.parameters.values()} | {*api.greedy_fields, *api.drawing_fields}
    assert fields.keys() <= known
