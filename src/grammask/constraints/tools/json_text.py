"""Reading JSON and Python literals at a place in a text, with exact positions of faults.

Numbers with a fraction or exponent become floats, others integers; what neither can hold becomes a decimal.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Fault = Callable[[int, str], Exception]
"""From a position and an expectation to the exception to raise."""

BLANKS = re.compile(r"[ \t\r\n]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LONG_INTEGER = 4_000
"""Digits above which ``int`` refuses to read a number; Python limits conversions to 4,300."""


def skip_blanks(text: str, position: int) -> int:
    """The position after blanks, as JSON defines them."""
    match = BLANKS.match(text, position)
    assert match is not None
    return match.end()


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) < _LONG_INTEGER else Decimal(text)


def _number(text: str) -> float | Decimal:
    value = float(text)
    return value if math.isfinite(value) else Decimal(text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"JSON whose objects name each member once ({json.dumps(repeated)} stands twice)")
    return members


def _constant(name: str) -> Any:
    raise ValueError(f"a JSON number instead of {name}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_number, parse_constant=_constant
)


def read_json(text: str, position: int, limit: int, fault: Fault) -> tuple[Any, int]:
    """The JSON value that starts at a position, and where it ends, at most at the limit."""
    if position >= limit:
        raise fault(position, "a JSON value")
    try:
        value, end = _DECODER.raw_decode(text if limit == len(text) else text[:limit], position)
    except json.JSONDecodeError as error:
        raise fault(error.pos, f"JSON ({error.msg})") from None
    except ValueError as error:
        raise fault(position, str(error)) from None
    except RecursionError:
        raise fault(position, "JSON that is nested less deeply") from None
    return value, end


def read_python(text: str, position: int, fault: Fault) -> tuple[str, int]:
    """The Python literal that starts at a position as JSON text, and where it ends."""
    try:
        return _PythonReader(text, fault).value(position)
    except RecursionError:
        raise fault(position, "values that are nested less deeply") from None


class _PythonReader:
    def __init__(self, text: str, fault: Fault) -> None:
        self._text = text
        self._fault = fault

    def value(self, position: int) -> tuple[str, int]:
        text = self._text
        position = skip_blanks(text, position)
        first = text[position : position + 1]
        if first and first in "\"'":
            return self._string(position)
        if first == "[":
            return self._collection(position, "]", self.value)
        if first == "{":
            return self._collection(position, "}", self._member)
        for word, meaning in (("True", "true"), ("False", "false"), ("None", "null")):
            if text.startswith(word, position):
                return meaning, position + len(word)
        number = NUMBER.match(text, position)
        if number is None:
            raise self._fault(position, "a Python literal")
        return number[0], number.end()

    def _string(self, position: int) -> tuple[str, int]:
        text, quote = self._text, self._text[position]
        end = position + 1
        while text[end : end + 1] != quote:
            if end >= len(text):
                raise self._fault(end, f"the closing {quote}")
            end += 2 if text[end] == "\\" else 1
        end += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # escapes without a meaning stand for themselves
                content = ast.literal_eval(text[position:end])
            content.encode()
        except (SyntaxError, ValueError):
            raise self._fault(position, "a Python string in one line") from None
        return json.dumps(content, ensure_ascii=False), end

    def _collection(self, position: int, close: str, item: Callable[[int], tuple[str, int]]) -> tuple[str, int]:
        text = self._text
        items: list[str] = []
        opening = text[position]
        position = skip_blanks(text, position + 1)
        while text[position : position + 1] != close:
            if items:
                if text[position : position + 1] != ",":
                    raise self._fault(position, f"',' or '{close}'")
                position = skip_blanks(text, position + 1)
            content, position = item(position)
            items.append(content)
            position = skip_blanks(text, position)
        return opening + ",".join(items) + close, position + 1

    def _member(self, position: int) -> tuple[str, int]:
        text = self._text
        if text[position : position + 1] not in ("'", '"'):
            raise self._fault(position, "a string")
        key, position = self._string(position)
        position = skip_blanks(text, position)
        if text[position : position + 1] != ":":
            raise self._fault(position, "':'")
        content, position = self.value(position + 1)
        return f"{key}:{content}", position
