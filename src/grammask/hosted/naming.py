"""From names to hosted models: ``openai_compatible(...)``, ``anthropic(...)`` and so on, and ``"provider:model"``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from grammask.hosted.anthropic_client import AnthropicClient
from grammask.hosted.errors import HostedError
from grammask.hosted.google_client import GoogleClient
from grammask.hosted.mistral_client import MistralClient
from grammask.hosted.model import HostedModel
from grammask.hosted.openai_client import OpenAIClient
from grammask.hosted.subset import AS_IT_IS
from grammask.models.errors import ModelError
from grammask.providers import names

_FLOW = ("attempts", "subset", "strict_settings", "extra", "max_tokens")
"""Options that are for HostedModel; the others are for the client library."""


@dataclass(frozen=True)
class _Endpoint:
    """Where a provider with an OpenAI-compatible interface is, and the variable that usually holds its key."""

    catalogue: str
    base_url: str | None
    key: str | None


_ENDPOINTS: Mapping[str, _Endpoint] = {
    "openai": _Endpoint("openai", None, "OPENAI_API_KEY"),
    "cerebras": _Endpoint("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "deepseek": _Endpoint("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": _Endpoint("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": _Endpoint("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "openrouter": _Endpoint("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": _Endpoint("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": _Endpoint("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    "ollama": _Endpoint("ollama/openai", "http://localhost:11434/v1", None),
    "lmstudio": _Endpoint("lmstudio", "http://localhost:1234/v1", None),
    "llama.cpp": _Endpoint("llama.cpp", "http://localhost:8080/v1", None),
    "vllm": _Endpoint("vllm", "http://localhost:8000/v1", None),
    "sglang": _Endpoint("sglang", "http://localhost:30000/v1", None),
    "tgi": _Endpoint("tgi/chat", "http://localhost:8080/v1", None),
}

_OWNERS = {
    "grammask": "vllm",
    "library": "ollama/openai",
    "llamacpp": "llama.cpp",
    "sglang": "sglang",
    "vllm": "vllm",
}
"""What servers call themselves in the field ``owned_by`` of their list of models, and the provider whose fields they
take."""


def openai_compatible(
    base_url: str | None = None,
    model: str | None = None,
    *,
    api_key: str | None = None,
    provider: str | None = None,
    **options: Any,
) -> HostedModel:
    """A model behind an interface like OpenAI's chat completions: OpenAI itself, other providers, servers of one's own.

    Args:
        base_url: the address with its version, such as ``"http://localhost:8000/v1"``; None is OpenAI's.
        model: its name there; None asks the server for its list, and takes the first.
        api_key: None is the key in the environment; servers of one's own need none.
        provider: name in the catalogue (``grammask providers``), which says what its settings mean and which forms of
            structured output it has. None goes by the address, then by what the server says of itself; a server that
            says nothing is tried with a schema as it is, then with JSON mode, then with words.
        options: ``attempts``, ``subset``, ``strict_settings``, ``extra``, ``max_tokens`` as for ``HostedModel``; others
            (``timeout``, ``max_retries``, ``default_headers`` ...) are for ``openai.OpenAI``.

    Raises:
        MissingDependency: the package openai is not installed.
        HostedError: there is no key, or the server does not answer the question for its models.
    """
    known = provider or _provider_at(base_url)
    flow = {name: options.pop(name) for name in _FLOW if name in options}
    if api_key is None and known is not None:
        variable = _ENDPOINTS[known.partition("/")[0]].key if known.partition("/")[0] in _ENDPOINTS else None
        api_key = os.environ.get(variable) if variable else None
    client = OpenAIClient(known or "openai", model or "", base_url=base_url, api_key=api_key, **options)
    if model is None or known is None:
        client.model, owner = _first_model(client, model)
        client.provider = known or _OWNERS.get(owner, "openai")
    if known is None and client.provider == "openai":
        flow.setdefault("subset", AS_IT_IS)
    return HostedModel(client, **flow)


def anthropic(model: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> HostedModel:
    """A model of Anthropic; options as for ``openai_compatible``, those of the client for ``anthropic.Anthropic``."""
    flow = {name: options.pop(name) for name in _FLOW if name in options}
    return HostedModel(AnthropicClient(model, base_url=base_url, api_key=api_key, **options), **flow)


def google(model: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> HostedModel:
    """A model of Google (Gemini API); options as for ``openai_compatible``, those of the client for
    ``google.genai.Client``."""
    flow = {name: options.pop(name) for name in _FLOW if name in options}
    return HostedModel(GoogleClient(model, base_url=base_url, api_key=api_key, **options), **flow)


def mistral(model: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> HostedModel:
    """A model of Mistral; options as for ``openai_compatible``, those of the client for ``mistralai.Mistral``."""
    flow = {name: options.pop(name) for name in _FLOW if name in options}
    return HostedModel(MistralClient(model, base_url=base_url, api_key=api_key, **options), **flow)


_OWN_CLIENTS = {"anthropic": anthropic, "google": google, "mistral": mistral}


def is_hosted(name: str) -> bool:
    """Whether a name has the form ``provider:model`` with a provider that ``load_hosted`` knows."""
    provider, colon, model = name.partition(":")
    return bool(colon and model) and (provider in _OWN_CLIENTS or provider in _ENDPOINTS)


def load_hosted(name: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> HostedModel:
    """A hosted model by name.

    Args:
        name: ``"openai:gpt-..."``, ``"anthropic:claude-..."``, ``"ollama:llama3.2"`` and so on; with ``base_url``, a
            plain model name at an OpenAI-compatible address, or ``""`` for the first model there.
        base_url: in place of the provider's usual address.
        api_key: None is the key in the provider's usual environment variable.

    Raises:
        ModelError: no provider of this name is known.
    """
    provider, colon, model = name.partition(":")
    if colon and provider in _OWN_CLIENTS:
        return _OWN_CLIENTS[provider](model, base_url=base_url, api_key=api_key, **options)
    if colon and provider in _ENDPOINTS:
        endpoint = _ENDPOINTS[provider]
        return openai_compatible(
            base_url or endpoint.base_url, model or None, api_key=api_key, provider=endpoint.catalogue, **options
        )
    if base_url is not None:
        return openai_compatible(base_url, name or None, api_key=api_key, **options)
    known = sorted([*_ENDPOINTS, *_OWN_CLIENTS])
    raise ModelError(
        f"no hosted model {name!r}", hint=f'write "provider:model" with one of {", ".join(known)}, or pass base_url'
    )


def _provider_at(base_url: str | None) -> str | None:
    """The provider whose usual address this is."""
    if base_url is None:
        return "openai"
    host = urlsplit(base_url).hostname or ""
    if host in ("localhost", "127.0.0.1", "::1"):
        return None
    for endpoint in _ENDPOINTS.values():
        if endpoint.base_url is not None and urlsplit(endpoint.base_url).hostname == host:
            return endpoint.catalogue
    if host == "api.openai.com":
        return "openai"
    if host.endswith(".openai.azure.com") and "azure" in names():
        return "azure"
    return None


def _first_model(client: OpenAIClient, wanted: str | None) -> tuple[str, str]:
    """A model's name at a server, and what the server calls itself."""
    try:
        listed = client.models()
    except HostedError:
        if wanted is None:
            raise
        return wanted, ""
    for name, owner in listed:
        if wanted in (None, name):
            return name, owner
    if wanted is not None:
        return wanted, listed[0][1] if listed else ""
    raise HostedError("the server lists no models", hint="pass model=...")
