"""Reading the fields of a request, which may hold anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grammask.explorer.problems import Problem


def fields(request: Any) -> Mapping[str, Any]:
    """A request that is an object.

    Raises:
        Problem: it is not.
    """
    if not isinstance(request, Mapping):
        raise Problem("request", "malformed request", "the request is not a JSON object")
    return request


def text(request: Mapping[str, Any], name: str, limit: int, default: str = "") -> str:
    """A text of at most ``limit`` characters.

    Raises:
        Problem: it is something else, or longer.
    """
    value = request.get(name, default)
    if not isinstance(value, str):
        raise Problem("request", "malformed request", f"{name} is a text")
    if len(value) > limit:
        raise Problem(
            name, "too long", f"{len(value):,} characters are more than the {limit:,} that are looked at here"
        )
    return value


def whole(request: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    """A whole number, moved into the range from ``low`` to ``high``.

    Raises:
        Problem: it is something else.
    """
    value = request.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise Problem("request", "malformed request", f"{name} is a whole number")
    return min(high, max(low, value))


def names(request: Mapping[str, Any], name: str, limit: int) -> list[str]:
    """A list of at most ``limit`` texts; more are left out.

    Raises:
        Problem: it is something else.
    """
    value = request.get(name) or []
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise Problem("request", "malformed request", f"{name} is a list of texts")
    return value[:limit]
