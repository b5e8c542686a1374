"""Sampling settings as the page sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grammask.explorer.problems import Problem
from grammask.sampling import Sampling

FIELDS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "penalize_structured",
    "order",
)
"""What the page may set, under the names of ``Sampling``."""


def sampling_of(value: Any) -> Sampling:
    """Settings from a JSON object; what is missing or null keeps the default of ``Sampling``.

    Raises:
        Problem: a value out of its range, or settings that contradict each other.
    """
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise Problem("request", "malformed request", "the sampling settings are not an object")
    given = {name: value[name] for name in FIELDS if value.get(name) is not None}
    try:
        return Sampling(**given)
    except (ValueError, TypeError) as error:
        raise Problem("sampling", "impossible setting", str(error)) from error
