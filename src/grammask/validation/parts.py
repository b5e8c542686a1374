"""The parts of an output that is being written: what of it is complete, and so can be judged.

A splitter is a function from the text so far, and whether the output has ended, to the parts that are complete, in the
order in which they end. It is called again and again with longer texts, and with shorter ones after a rejection, so it
keeps nothing in mind.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grammask.validation.problems import Path


@dataclass(frozen=True)
class Part:
    """A complete part of an output.

    Attributes:
        text: the part itself.
        start, end: where it stands in the output, in characters.
        so_far: the output up to the end of the part.
        path: of a JSON value, its place; None elsewhere.
        value: the JSON value; the text elsewhere.
        is_whole: the part is the whole output.
    """

    text: str
    start: int
    end: int
    so_far: str
    path: Path | None = None
    value: Any = None
    is_whole: bool = False


Splitter = Callable[[str, bool], list[Part]]


def split_by(pattern: str | re.Pattern[str]) -> Splitter:
    """Parts are what a pattern matches, from the beginning on. A match that reaches the end of the text so far could
    still grow, so it counts only when the output has ended."""
    compiled = re.compile(pattern)

    def split(text: str, ended: bool) -> list[Part]:
        matches = [match for match in compiled.finditer(text) if match.end() > match.start()]
        parts = [
            Part(match[0], match.start(), match.end(), text[: match.end()], value=match[0])
            for match in matches
            if ended or match.end() < len(text)
        ]
        return [*parts, *whole(text, ended)]

    return split


def whole(text: str, ended: bool) -> list[Part]:
    """The only part is the whole output."""
    return [Part(text, 0, len(text), text, (), text, True)] if ended else []


words = split_by(r"\S+")
"""Parts are words."""

lines = split_by(r"[^\n]+")
"""Parts are lines."""


def json_values(text: str, ended: bool) -> list[Part]:
    """Parts are the values of a JSON text: every scalar, array and object, inner ones first."""
    reader = _JsonValues(text, ended)
    with contextlib.suppress(_Incomplete):
        reader.value(0, ())
    return reader.parts


class _Incomplete(Exception):
    """The text goes on behind its end."""


_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class _JsonValues:
    """Reads the beginning of a JSON text that satisfies a constraint, so that it need not look for faults."""

    def __init__(self, text: str, ended: bool) -> None:
        self._text = text
        self._ended = ended
        self.parts: list[Part] = []

    def value(self, position: int, path: Path) -> int:
        start = self._blanks(position)
        first = self._text[start]
        if first == "{":
            end = self._members(start, path)
        elif first == "[":
            end = self._items(start, path)
        else:
            end = self._scalar(start)
        written = self._text[start:end]
        part = Part(written, start, end, self._text[:end], path, json.loads(written), not path)
        self.parts.append(part)
        return end

    def _blanks(self, position: int) -> int:
        while position < len(self._text) and self._text[position] in " \t\r\n":
            position += 1
        if position >= len(self._text):
            raise _Incomplete
        return position

    def _scalar(self, start: int) -> int:
        found = (_STRING if self._text[start] == '"' else _SCALAR).match(self._text, start)
        if found is None:
            raise _Incomplete
        if found.end() == len(self._text) and self._text[start] in "-0123456789" and not self._ended:
            raise _Incomplete  # more digits may follow
        return found.end()

    def _members(self, start: int, path: Path) -> int:
        position = self._blanks(start + 1)
        while self._text[position] != "}":
            if self._text[position] == ",":
                position = self._blanks(position + 1)
            end = self._scalar(position)
            name = json.loads(self._text[position:end])
            position = self._blanks(self.value(self._blanks(end) + 1, (*path, name)))
        return position + 1

    def _items(self, start: int, path: Path) -> int:
        position = self._blanks(start + 1)
        number = 0
        while self._text[position] != "]":
            if self._text[position] == ",":
                position += 1
            position = self._blanks(self.value(position, (*path, number)))
            number += 1
        return position + 1
