"""Where in a JSON text, which may stop anywhere, its end is: the path of the value there, and what can come next.

This reads texts that a constraint has accepted, in order to explain them; it judges nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Where = Literal["value", "key", "colon", "in key", "in string", "in number", "in literal", "after value", "end"]
"""What the end of the text stands before, or inside of."""

_LEXEME = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r'|(?P<string>"(?:[^"\\]|\\.)*"?\\?)'
    r"|(?P<number>-?[0-9][0-9.eE+-]*|-)"
    r"|(?P<literal>[a-z]+)"
    r"|(?P<punctuation>[{}\[\]:,])",
    re.DOTALL,
)


@dataclass(frozen=True)
class Lexeme:
    """A piece of JSON: ``kind`` is space, key, string, number, literal or the punctuation mark itself."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class JsonPlace:
    """The end of a JSON text.

    Attributes:
        path: names and positions from the root to the value that the end is in or before.
        where: what the end stands before, or inside of.
        keys: the names that the innermost object has so far.
        partial: the text of the string, number or literal that is being written, quotes included.
        lexemes: the pieces of the whole text.
    """

    path: tuple[str | int, ...]
    where: Where
    keys: tuple[str, ...] = ()
    partial: str = ""
    lexemes: tuple[Lexeme, ...] = ()

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)


@dataclass
class _Frame:
    is_object: bool
    part: str | int | None = None
    keys: list[str] = field(default_factory=list)


def place_in(text: str) -> JsonPlace:
    """The place at the end of a text. Whatever follows the first thing that is no JSON is left out."""
    scan = _Scan(text)
    lexemes = tuple(scan)
    frames = scan.frames
    keys = tuple(frames[-1].keys) if frames and frames[-1].is_object else ()
    return JsonPlace(scan.path, scan.where, keys, scan.partial, lexemes)


def offset_of(text: str, pointer: str) -> int | None:
    """Where in a JSON text the value that a JSON pointer names begins; None if there is no such value."""
    wanted = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    scan = _Scan(text)
    where, path = scan.where, scan.path
    for lexeme in scan:
        if where == "value" and lexeme.kind not in ("space", "]") and tuple(map(str, path)) == wanted:
            return lexeme.start
        where, path = scan.where, scan.path
    return None


class _Scan:
    """Reads a text piece by piece, keeping the place after each.

    Attributes:
        frames: the objects and arrays that are open.
        where, partial: as in ``JsonPlace``.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.frames: list[_Frame] = []
        self.where: Where = "value"
        self.partial = ""

    @property
    def path(self) -> tuple[str | int, ...]:
        """As in ``JsonPlace``."""
        return tuple(frame.part for frame in self.frames if frame.part is not None)

    def __iter__(self) -> Iterator[Lexeme]:
        position = 0
        while position < len(self._text):
            found = _LEXEME.match(self._text, position)
            if found is None:
                return
            position = found.end()
            self.partial = ""
            kind = self._take(found.group(), str(found.lastgroup), at_end=position == len(self._text))
            yield Lexeme(found.start(), found.end(), kind)

    def _take(self, lexeme: str, kind: str, *, at_end: bool) -> str:
        if kind == "punctuation":
            self.where = _punctuation(lexeme, self.frames, self.where)
            return lexeme
        if kind == "string":
            return self._take_string(lexeme)
        if kind in ("number", "literal"):
            if at_end and lexeme not in ("true", "false", "null"):
                self.where, self.partial = ("in number" if kind == "number" else "in literal"), lexeme
            else:
                self.where = _after(self.frames)
        return kind

    def _take_string(self, lexeme: str) -> str:
        closed = len(lexeme) > 1 and lexeme.endswith('"') and not _odd_backslashes(lexeme[:-1])
        if self.where != "key":
            if closed:
                self.where = _after(self.frames)
            else:
                self.where, self.partial = "in string", lexeme
            return "string"
        if closed:
            top = self.frames[-1]
            top.part = _decoded(lexeme)
            top.keys.append(top.part)
            self.where = "colon"
        else:
            self.where, self.partial = "in key", lexeme
        return "key"


def _punctuation(mark: str, frames: list[_Frame], where: Where) -> Where:
    if mark == "{":
        frames.append(_Frame(True))
        return "key"
    if mark == "[":
        frames.append(_Frame(False, 0))
        return "value"
    if mark in "]}":
        if frames:
            frames.pop()
        return _after(frames)
    if mark == ":":
        return "value"
    if not frames:
        return where
    top = frames[-1]
    if top.is_object:
        top.part = None
        return "key"
    top.part = top.part + 1 if isinstance(top.part, int) else 0
    return "value"


def _after(frames: list[_Frame]) -> Where:
    return "after value" if frames else "end"


def _odd_backslashes(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _decoded(lexeme: str) -> str:
    try:
        return str(json.loads(lexeme))
    except ValueError:
        return lexeme[1:-1]


def schemas_at(schema: Any, path: tuple[str | int, ...]) -> list[tuple[str, dict[str, Any]]]:
    """The subschemas that speak about the value at a path, with their JSON pointers.

    References within the document are followed, and the branches of allOf, anyOf and oneOf are all listed, since which
    of them applies depends on the text.
    """
    current = _branches(schema, schema, "", set())
    for part in path:
        following: list[tuple[str, dict[str, Any]]] = []
        for pointer, here in current:
            for keyword, child in _children(here, part):
                following += _branches(schema, child, f"{pointer}/{keyword}", set())
        current = following
    return current


def _children(here: dict[str, Any], part: str | int) -> list[tuple[str, Any]]:
    if isinstance(part, str):
        properties = here.get("properties")
        if isinstance(properties, dict) and part in properties:
            return [("properties/" + part.replace("~", "~0").replace("/", "~1"), properties[part])]
        return [("additionalProperties", here["additionalProperties"])] if "additionalProperties" in here else []
    for keyword in ("prefixItems", "items"):
        items = here.get(keyword)
        if isinstance(items, list) and part < len(items):
            return [(f"{keyword}/{part}", items[part])]
    for keyword in ("items", "additionalItems"):
        if isinstance(here.get(keyword), (dict, bool)):
            return [(keyword, here[keyword])]
    return []


def _branches(root: Any, here: Any, pointer: str, seen: set[str]) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(here, dict) or pointer in seen:
        return []
    seen.add(pointer)
    found = [(pointer, here)]
    reference = here.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        found += _branches(root, _resolve(root, reference[1:]), reference[1:], seen)
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = here.get(keyword)
        if isinstance(branches, list):
            for index, branch in enumerate(branches):
                found += _branches(root, branch, f"{pointer}/{keyword}/{index}", seen)
    return found


def _resolve(root: Any, pointer: str) -> Any:
    here = root
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        else:
            return None
    return here
