"""The engines that benchmarks compare, each behind the same small face (``base.Engine``).

Each engine gets its fastest documented way on one thread. Packages of peers are optional: an engine whose package is
not installed is left out of a run, and the report says so.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.engines.base import Engine, EngineOptions

DEFAULT = ("grammask", "llguidance", "xgrammar", "outlines-core")

PACKAGES = {
    "grammask": "grammask",
    "grammask-any": "grammask",
    "llguidance": "llguidance",
    "xgrammar": "xgrammar",
    "outlines-core": "outlines-core",
}
"""Engine name to the distribution it needs. ``grammask-any`` is grammask with properties in any order."""

_CLASSES = {
    "grammask": ("benchmarks.engines.grammask_engine", "GrammaskEngine"),
    "grammask-any": ("benchmarks.engines.grammask_engine", "AnyOrderEngine"),
    "llguidance": ("benchmarks.engines.llguidance_engine", "LLGuidanceEngine"),
    "xgrammar": ("benchmarks.engines.xgrammar_engine", "XGrammarEngine"),
    "outlines-core": ("benchmarks.engines.outlines_engine", "OutlinesEngine"),
}


def installed() -> dict[str, str]:
    """Engine name to version, of those whose package is installed."""
    found = {}
    for name, package in PACKAGES.items():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            continue
    return found


def create(name: str, options: EngineOptions) -> Engine[Any]:
    """Loads an engine and its vocabulary.

    Raises:
        KeyError: no engine of that name.
        ImportError: its package is not installed.
    """
    module, attribute = _CLASSES[name]
    engine: Engine[Any] = getattr(import_module(module), attribute)(options)
    return engine
