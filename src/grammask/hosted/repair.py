"""From what a model writes when nothing holds it to JSON, to JSON: code fences, words around it, damaged texts.

What can be read strictly is read strictly. Only where that fails does ``json-repair`` have a go, and the attempt says
so. Nothing is guessed about an answer that was cut: it is not complete.
"""

from __future__ import annotations

import json
import re
from typing import Any

from grammask.hosted.loading import needed
from grammask.validation.json_problems import read_json

_FENCE = re.compile(r"```[A-Za-z0-9_+-]*[ \t]*\n?(.*?)```", re.DOTALL)
_THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_START = re.compile(r"[\[{]")
_MAX_STARTS = 64
"""Brackets and braces inside a text that are tried as the beginning of a value."""
_MAX_REPAIRED = 100_000
_MAX_DEPTH = 100
"""Characters and levels of a text that is worth repairing; a model that writes more has lost its way."""


class NoJson(ValueError):
    """There is no JSON value in a text."""


def find_json(text: str) -> tuple[Any, bool]:
    """The JSON value in an answer, and whether the text had to be repaired for it.

    Tried in this order: the whole text; the contents of code fences, the last first, since models correct themselves;
    the longest value that starts at a bracket or brace; the repaired text.

    Raises:
        NoJson: none of these gives a value.
    """
    text = _THOUGHTS.sub("", text).strip()
    fenced = [match[1].strip() for match in reversed(list(_FENCE.finditer(text)))]
    for candidate in (text, *fenced):
        try:
            return read_json(candidate), False
        except (ValueError, RecursionError):
            continue
    embedded = _longest_value(text)
    if embedded is not None:
        return read_json(embedded), False
    for candidate in (*fenced, text):
        start = _START.search(candidate)
        if start is not None:
            value = _repaired(candidate[start.start() :])
            if value is not None:
                return value, True
    raise NoJson("the answer holds no JSON value")


def _longest_value(text: str) -> str | None:
    """The longest object or array inside a text that is JSON as it stands."""
    best = ""
    position = 0
    decoder = json.JSONDecoder()
    for _ in range(_MAX_STARTS):
        start = _START.search(text, position)
        if start is None:
            break
        try:
            _, end = decoder.raw_decode(text, start.start())
            candidate = text[start.start() : end]
            read_json(candidate)
        except (ValueError, RecursionError):
            position = start.end()
            continue
        best = max(best, candidate, key=len)
        position = end
    return best or None


def _repaired(text: str) -> Any:
    if len(text) > _MAX_REPAIRED or _depth(text) > _MAX_DEPTH:
        return None
    json_repair = needed("json_repair", "hosted")
    try:
        value = json_repair.loads(text)
        return None if value in ("", [], {}) else read_json(json.dumps(value, allow_nan=False))
    except (ValueError, RecursionError):
        return None


def _depth(text: str) -> int:
    """How many brackets and braces are open at once at most, quoted ones counted as well."""
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth = max(0, depth - 1)
    return deepest
