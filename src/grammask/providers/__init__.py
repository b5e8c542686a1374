"""Which settings each provider's API takes, what they mean there, and requests that say what ``Sampling`` says."""

from __future__ import annotations

from grammask.providers.catalogue import find, load, load_all, names
from grammask.providers.facts import (
    FEATURES,
    PARAMETERS,
    Api,
    ApiOrder,
    CatalogueError,
    Condition,
    Feature,
    Parameter,
    Provider,
    Source,
    Statement,
)
from grammask.providers.translation import Issue, StaleCatalogueWarning, Translation, TranslationError, translate

__all__ = [
    "FEATURES",
    "PARAMETERS",
    "Api",
    "ApiOrder",
    "CatalogueError",
    "Condition",
    "Feature",
    "Issue",
    "Parameter",
    "Provider",
    "Source",
    "StaleCatalogueWarning",
    "Statement",
    "Translation",
    "TranslationError",
    "find",
    "load",
    "load_all",
    "names",
    "translate",
]
