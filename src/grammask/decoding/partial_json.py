"""Reading the beginning of a JSON text: what is known of the value before the text is complete."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()
"""Stands for a value of which nothing is known yet."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_LITERALS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_NUMBER = re.compile(r"-?[0-9.eE+-]*")
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")


class PartialText(str):
    """A string whose end has not been written yet."""

    __slots__ = ()


def partial_json(text: str, *, parse_float: Callable[[str], Any] = float) -> Any:
    """The value that a beginning of a JSON text tells.

    Members and items that have not begun are absent, a string that is being written is a ``PartialText``, and a number
    at the end of the text is absent, since more digits may follow. Of a whole text it is the whole value (but for a
    number that stands alone). Texts that are no beginning of JSON give what stands before the fault.

    Returns:
        The value, or None if nothing is known of it (``null`` cannot be told apart from that).
    """
    value, _ = _Reader(text, parse_float).value(0)
    return None if value is ABSENT else value


class _Reader:
    """Each method reads at a position and returns the value and the position behind it, -1 where the text ends (or
    goes wrong) within the value."""

    def __init__(self, text: str, parse_float: Callable[[str], Any]) -> None:
        self._text = text
        self._parse_float = parse_float

    def value(self, position: int) -> tuple[Any, int]:
        position = self._skip(position)
        first = self._text[position : position + 1]
        if first == "{":
            return self._object(position + 1)
        if first == "[":
            return self._array(position + 1)
        if first == '"':
            return self._string(position)
        if first in _LITERALS:
            word, value = _LITERALS[first]
            return (value, position + len(word)) if self._text.startswith(word, position) else (ABSENT, -1)
        return self._number(position)

    def _skip(self, position: int) -> int:
        match = _BLANKS.match(self._text, position)
        return match.end() if match else position

    def _object(self, position: int) -> tuple[Any, int]:
        members: dict[str, Any] = {}
        while True:
            position = self._skip(position)
            if self._text[position : position + 1] == "}":
                return members, position + 1
            if members:
                if self._text[position : position + 1] != ",":
                    return members, -1
                position = self._skip(position + 1)
            if self._text[position : position + 1] != '"':
                return members, -1
            name, position = self._string(position)
            if position < 0:
                return members, -1
            position = self._skip(position)
            if self._text[position : position + 1] != ":":
                return members, -1
            value, position = self.value(position + 1)
            if value is not ABSENT:
                members[name] = value
            if position < 0:
                return members, -1

    def _array(self, position: int) -> tuple[Any, int]:
        items: list[Any] = []
        while True:
            position = self._skip(position)
            if self._text[position : position + 1] == "]":
                return items, position + 1
            if items:
                if self._text[position : position + 1] != ",":
                    return items, -1
                position += 1
            value, position = self.value(position)
            if value is not ABSENT:
                items.append(value)
            if position < 0:
                return items, -1

    def _string(self, position: int) -> tuple[Any, int]:
        end = position + 1
        while end < len(self._text):
            character = self._text[end]
            if character == '"':
                try:
                    return json.loads(self._text[position : end + 1], strict=False), end + 1
                except ValueError:
                    return ABSENT, -1
            if character == "\\":
                escape = _ESCAPE.match(self._text, end)
                if escape is None:
                    break
                if _HIGH.fullmatch(escape[0]) and len(self._text) < escape.end() + 6:
                    break  # the other half of the surrogate pair is still to come
                end = escape.end()
            else:
                end += 1
        return PartialText(json.loads(self._text[position:end] + '"', strict=False)), -1

    def _number(self, position: int) -> tuple[Any, int]:
        match = _NUMBER.match(self._text, position)
        if match is None or not match[0] or match.end() == len(self._text):
            return ABSENT, -1
        try:
            return json.loads(match[0], parse_float=self._parse_float), match.end()
        except ValueError:
            return ABSENT, -1
