"""The catalogue: what each provider's API takes, by the provider's name."""

from __future__ import annotations

import functools
import json
from importlib import resources

from grammask.providers.facts import Api, CatalogueError, Provider, listed
from grammask.providers.reading import read


@functools.cache
def names() -> tuple[str, ...]:
    """The names of all providers, alphabetically."""
    files = resources.files("grammask.providers").joinpath("data").iterdir()
    return tuple(sorted(file.name.removesuffix(".json") for file in files if file.name.endswith(".json")))


@functools.cache
def load(name: str) -> Provider:
    """One provider's facts.

    Raises:
        CatalogueError: there is no such provider.
    """
    if name not in names():
        raise CatalogueError(f"no provider {name!r}: use {listed(names())}")
    text = resources.files("grammask.providers").joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    return read(name, json.loads(text))


def load_all() -> tuple[Provider, ...]:
    """All providers, alphabetically."""
    return tuple(load(name) for name in names())


def find(name: str) -> tuple[Provider, Api]:
    """A provider and one of its APIs, from ``"openai"`` or ``"openai/responses"``.

    Raises:
        CatalogueError: there is no such provider or API.
    """
    provider_name, _, api_name = name.partition("/")
    provider = load(provider_name)
    return provider, provider.api(api_name or None)
