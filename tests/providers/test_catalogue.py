"""The catalogue: every provider's file is sound, malformed ones are refused with the place, age is told."""

from __future__ import annotations

import copy
import datetime
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from grammask import providers
from grammask.providers import CatalogueError, facts, markdown, reading
from grammask.sampling import Sampling

WANTED = [
    "anthropic",
    "azure",
    "bedrock",
    "cerebras",
    "cohere",
    "deepseek",
    "fireworks",
    "google",
    "groq",
    "llama.cpp",
    "lmstudio",
    "meta",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "sglang",
    "tgi",
    "together",
    "vllm",
    "xai",
]


def data(name: str) -> Any:
    return json.loads(resources.files("grammask.providers").joinpath("data", f"{name}.json").read_text("utf-8"))


def test_all_providers_are_there() -> None:
    assert list(providers.names()) == WANTED
    assert [provider.name for provider in providers.load_all()] == WANTED


def test_parameters_are_settings_of_the_sampler() -> None:
    assert set(providers.PARAMETERS) <= Sampling.__dataclass_fields__.keys()


@pytest.mark.parametrize("name", WANTED)
def test_every_fact_has_a_source(name: str) -> None:
    provider = providers.load(name)
    assert provider.apis
    for api in provider.apis.values():
        assert list(api.parameters) == list(providers.PARAMETERS)
        assert list(api.features) == list(providers.FEATURES)
        for fact in (*api.parameters.values(), *api.features.values()):
            assert (fact.source is None) == (fact.status == "unknown"), fact
            assert fact.source is None or fact.source in provider.sources
        for parameter in api.parameters.values():
            assert not (parameter.status == "absent" and parameter.field)


@pytest.mark.parametrize("name", WANTED)
def test_every_source_is_cited(name: str) -> None:
    """A source that nothing cites is a leftover."""
    text = json.dumps(data(name)["apis"])
    assert all(f'"{key}"' in text for key in data(name)["sources"])


# Spot checks against what the sources say, one per provider.
FACTS: list[tuple[str, str, str | None, str, Any]] = [
    ("openai", "max_tokens", "max_completion_tokens", "status", "accepted"),
    ("openai/responses", "seed", None, "status", "absent"),
    ("anthropic", "max_tokens", "max_tokens", "required", True),
    ("google", "top_p", "generationConfig.topP", "default", "per model"),
    ("mistral", "seed", "random_seed", "status", "accepted"),
    ("deepseek", "stop", "stop", "max_items", 16),
    ("xai", "top_logprobs", "top_logprobs", "maximum", 8),
    ("cohere", "top_p", "p", "default", 0.75),
    ("groq", "logprobs", None, "status", "refused"),
    ("together", "logprobs", "logprobs", "form", "count"),
    ("fireworks", "typical_p", "typical_p", "status", "accepted"),
    ("meta", "stop", None, "status", "absent"),
    ("cerebras", "temperature", "temperature", "maximum", 1.5),
    ("openrouter", "top_k", "top_k", "off", 0),
    ("azure", "top_p", None, "status", "unknown"),
    ("bedrock", "temperature", "inferenceConfig.temperature", "maximum", 1),
    ("ollama", "top_k", "options.top_k", "default", 40),
    ("ollama/openai", "temperature", "temperature", "default", 1),
    ("llama.cpp", "logit_bias", "logit_bias", "form", "token-pairs"),
    ("vllm", "temperature", "temperature", "raised_to", 0.01),
    ("sglang/native", "seed", "sampling_params.sampling_seed", "status", "accepted"),
    ("tgi/chat", "n", "n", "status", "ignored"),
    ("lmstudio/native", "temperature", "temperature", "maximum", 1),
]


@pytest.mark.parametrize(("name", "setting", "field", "attribute", "value"), FACTS)
def test_facts(name: str, setting: str, field: str | None, attribute: str, value: Any) -> None:
    parameter = providers.find(name)[1].parameters[setting]
    assert parameter.field == field
    assert getattr(parameter, attribute) == value


def broken(**changes: Any) -> Any:
    """vLLM's file with some paths changed: ``broken(**{"apis.chat.title": 1})``; ``...`` removes."""
    value = copy.deepcopy(data("vllm"))
    for path, new in changes.items():
        *levels, last = path.split(".")
        place = value
        for level in levels:
            place = place[level]
        if new is ...:
            del place[last]
        else:
            place[last] = new
    return value


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        ("title", ..., "vllm.json lacks 'title'"),
        ("compiled", "2026-13-01", "compiled is '2026-13-01'"),
        ("compiled", "30 November", "write dates as YYYY-MM-DD"),
        ("apis", {}, "apis has no API"),
        ("apis.chat.surprise", 1, "apis.chat has unknown keys 'surprise'"),
        ("apis.chat.source", "nobody", "apis.chat cites 'nobody'"),
        ("apis.chat.parameters.top_q", {"field": "x"}, "names 'top_q'"),
        ("apis.chat.parameters.top_k.status", "maybe", "apis.chat.parameters.top_k has status 'maybe'"),
        ("apis.chat.parameters.top_k.status", "refused", "needs a field exactly if"),
        ("apis.chat.parameters.top_k.field", ..., "needs a field exactly if"),
        ("apis.chat.parameters.top_k.form", "words", "has form 'words'"),
        ("apis.chat.parameters.top_k.counts", "some", "counts 'some'"),
        ("apis.chat.parameters.temperature.default", 7, "default 7, which is out of its own range"),
        ("apis.chat.parameters.seed", 3, "apis.chat.parameters.seed is no object"),
        ("apis.chat.absent", ["temperature"], "both as a parameter and as absent"),
        ("apis.chat.features.magic", {}, "names 'magic'"),
        ("apis.chat.features.regex.status", "maybe", "apis.chat.features.regex has status"),
        ("apis.chat.order.stages", ["guess"], "names 'guess'"),
        ("sources.docs.kind", "rumour", "sources.docs has kind 'rumour'"),
        ("apis.chat.conditions", [{"when": "x", "effect": "odd", "parameters": [], "source": "docs"}], "effect 'odd'"),
    ],
)
def test_malformed_files_are_refused_with_the_place(path: str, new: Any, message: str) -> None:
    with pytest.raises(CatalogueError, match=message.replace("[", r"\[")):
        reading.read("vllm", broken(**{path: new}))


def test_unknown_names() -> None:
    with pytest.raises(CatalogueError, match="no provider 'opnai'"):
        providers.load("opnai")
    with pytest.raises(CatalogueError, match="openai has no API 'chats': use 'chat', 'responses'"):
        providers.find("openai/chats")


def test_staleness_is_told_by_date() -> None:
    provider = providers.load("openai")
    day = datetime.timedelta(days=1)
    assert provider.staleness(provider.compiled - day) is None
    assert provider.staleness(provider.compiled + facts.STALE_AFTER) is None
    stale = provider.staleness(provider.compiled + facts.STALE_AFTER + day)
    assert stale is not None
    assert "181 days ago" in stale


@pytest.mark.parametrize(
    ("bounds", "inside", "outside", "text"),
    [
        ({}, [-1e9, 1e9], [], ""),
        ({"minimum": 0, "maximum": 2}, [0, 2], [-0.1, 2.1], "0 to 2"),
        ({"minimum": 0, "maximum": 1, "above": True}, [0.1, 1], [0], "above 0 to 1"),
        ({"minimum": 0, "maximum": 1, "above": True, "below": True}, [0.5], [0, 1], "above 0 to below 1"),
        ({"minimum": 1}, [1], [0], "at least 1"),
        ({"minimum": 0, "above": True}, [1], [0], "above 0"),
        ({"maximum": 5}, [5], [6], "up to 5"),
        ({"minimum": 1, "maximum": 1}, [1], [2], "1"),
        ({"minimum": 0, "maximum": 2**64 - 1}, [2**64 - 1], [2**64], "0 to 18446744073709551615"),
    ],
)
def test_ranges(bounds: dict[str, Any], inside: list[float], outside: list[float], text: str) -> None:
    parameter = facts.Parameter("x", "accepted", None, "x", **bounds)
    assert all(parameter.in_range(value) for value in inside)
    assert not any(parameter.in_range(value) for value in outside)
    assert parameter.range_text() == text


def test_the_page_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "providers.md"
    assert path.read_text(encoding="utf-8") == markdown.page(), (
        "run: python -m grammask.providers.markdown > docs/reference/providers.md"
    )
