"""Reading JSON and Python literals at a place in a text, with exact positions of faults.

Numbers with a fraction or exponent become floats, others integers; what neither can hold becomes a decimal.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator
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
        return _read_deep_json(text[:limit], position, fault)
    return value, end


def _read_deep_json(text: str, position: int, fault: Fault) -> tuple[Any, int]:
    """Like ``read_json``, for values nested deeper than the standard library reads."""

    def scalar(position: int) -> tuple[Any, int]:
        return read_json(text, position, len(text), fault)

    open_values: list[list[Any]] = [[]]
    starts: list[int] = []
    end = position
    for kind, content, place in _events(text, position, fault, scalar):
        end = place
        if kind == "open":
            open_values.append([])
            starts.append(place)
        elif kind == "close":
            items, start = open_values.pop(), starts.pop()
            if content == "]":
                open_values[-1].append(items)
                continue
            try:
                open_values[-1].append(_members(list(zip(items[::2], items[1::2], strict=True))))
            except ValueError as error:
                raise fault(start, str(error)) from None
        else:
            open_values[-1].append(content)
    return open_values[0][0], end


def read_python(text: str, position: int, fault: Fault) -> tuple[str, int]:
    """The Python literal that starts at a position as JSON text, and where it ends."""

    def scalar(position: int) -> tuple[str, int]:
        return _python_scalar(text, position, fault)

    parts: list[str] = []
    end = position
    before = ""  # what separates the next part from those before it
    for kind, content, place in _events(text, position, fault, scalar):
        end = place
        if kind == "close":
            parts.append(content)
        else:
            parts.append(before + content)
        before = {"open": "", "key": ":"}.get(kind, ",")
    return "".join(parts), end


def _python_scalar(text: str, position: int, fault: Fault) -> tuple[str, int]:
    if text[position : position + 1] in ('"', "'"):
        return _python_string(text, position, fault)
    for word, meaning in (("True", "true"), ("False", "false"), ("None", "null")):
        if text.startswith(word, position):
            return meaning, position + len(word)
    number = NUMBER.match(text, position)
    if number is None:
        raise fault(position, "a Python literal")
    return number[0], number.end()


def _python_string(text: str, position: int, fault: Fault) -> tuple[str, int]:
    quote = text[position]
    end = position + 1
    while text[end : end + 1] != quote:
        if end >= len(text):
            raise fault(end, f"the closing {quote}")
        end += 2 if text[end] == "\\" else 1
    end += 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes without a meaning stand for themselves
            content = ast.literal_eval(text[position:end])
        content.encode()
    except (SyntaxError, ValueError):
        raise fault(position, "a Python string in one line") from None
    return json.dumps(content, ensure_ascii=False), end


def _events(
    text: str, position: int, fault: Fault, scalar: Callable[[int], tuple[Any, int]]
) -> Iterator[tuple[str, Any, int]]:
    """The parts of a value in the order written, without recursion: however deep it nests.

    Yields:
        ("open", bracket, its position), ("key" or "scalar", value, position after it),
        ("close", bracket, position after it).
    """
    closing: list[str] = []

    def key(position: int) -> tuple[tuple[str, Any, int], int]:
        if text[position : position + 1] not in ("'", '"'):
            raise fault(position, "a string")
        name, after = scalar(position)
        colon = skip_blanks(text, after)
        if text[colon : colon + 1] != ":":
            raise fault(colon, "':'")
        return ("key", name, after), colon + 1

    while True:
        position = skip_blanks(text, position)
        bracket = text[position : position + 1]
        if bracket in ("[", "{"):
            yield "open", bracket, position
            closing.append("]" if bracket == "[" else "}")
            position = skip_blanks(text, position + 1)
            if text[position : position + 1] != closing[-1]:
                if bracket == "{":
                    event, position = key(position)
                    yield event
                continue
        else:
            value, position = scalar(position)
            yield "scalar", value, position
        while closing:
            position = skip_blanks(text, position)
            mark = text[position : position + 1]
            if mark == closing[-1]:
                position += 1
                yield "close", closing.pop(), position
                continue
            if mark != ",":
                raise fault(position, f"',' or '{closing[-1]}'")
            position = skip_blanks(text, position + 1)
            if closing[-1] == "}":
                event, position = key(position)
                yield event
            break
        else:
            return
