"""Client libraries are extras: imported when a client is made, with a clear error where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from grammask.models.errors import MissingDependency


def needed(module: str, extra: str) -> Any:
    """The module of a client library.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependency(
            f"this provider needs the package that has {module}", hint=f'pip install "grammask[{extra}]"'
        ) from error
