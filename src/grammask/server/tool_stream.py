"""Calls of tools, told apart from the text around them while the output is still being written.

The output is known to follow its format, since the constraint lets nothing else through, so reading it needs no error
handling: a regular expression made from the format's pieces finds where a call's name and arguments stand, and brackets
tell where JSON ends. Formats whose arguments are no JSON are read when the output is over.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from grammask.constraints.tools import ToolCalls
from grammask.constraints.tools.format import (
    Arguments,
    Blank,
    CallId,
    FreeText,
    JsonCall,
    KeywordArguments,
    Match,
    Maybe,
    Name,
    OneOf,
    Parameters,
    Piece,
    Pieces,
    Token,
    walk,
)
from grammask.engine.vocabulary import Vocabulary

_BLANKS = r"[ \t\r\n]*"


@dataclass(frozen=True)
class Text:
    """Free text of the answer, or before the calls."""

    text: str


@dataclass(frozen=True)
class CallStarted:
    """A call begins.

    Attributes:
        index: counts the calls of the output.
        id: from the output, where the format writes one.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True)
class CallArguments:
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


Delta: TypeAlias = Text | CallStarted | CallArguments


class ToolStream:
    """Reads one output.

    Args:
        calls: the constraint that the output follows.
        vocabulary: what its tokens mean.
        may_answer: the output may be an answer without calls.
        preamble: free text may stand before the calls.
    """

    def __init__(self, calls: ToolCalls, vocabulary: Vocabulary, *, may_answer: bool, preamble: bool) -> None:
        self._calls = calls
        self._vocabulary = vocabulary
        self._format = format = calls.format
        pieces = format.thought + format.lead + format.begin + format.call + format.separator + format.end
        tokens = {piece.name for piece in walk(pieces) if isinstance(piece, Token)}
        self._by_token = tokens & set(vocabulary.special_tokens)
        notations = [piece for piece in walk(format.call) if isinstance(piece, (Parameters, KeywordArguments))]
        self._is_json = not notations and not format.thought
        self._waits = format.claim is not None or bool(format.thought)
        before, after = _split(format.call)
        self._first = re.compile(_pattern(format.begin + before) + r"(?=\{)")
        self._next = re.compile(_pattern(after + format.separator + before) + r"(?=\{)")
        self._text = ""
        self._marks: set[int] = set()
        self._position = 0
        self._state = "free" if preamble else "start" if may_answer else "call"
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._count = 0

    @property
    def count(self) -> int:
        """How many calls there are so far."""
        return self._count

    def feed(self, text: str, marks: Sequence[int]) -> list[Delta]:
        """More of the output.

        Args:
            text: whole characters.
            marks: where in it names of special tokens stand for the tokens.
        """
        self._marks.update(len(self._text) + mark for mark in marks)
        self._text += text
        deltas: list[Delta] = []
        while self._advance(deltas):
            pass
        return deltas

    def finish(self, token_ids: Sequence[int], *, complete: bool) -> list[Delta]:
        """The output is over.

        Args:
            token_ids: all of it.
            complete: it was not cut.
        """
        if self._state in ("free", "start") and self._waits:
            return self._read_whole(token_ids, complete)
        if self._state in ("free", "start", "answer"):
            rest, self._position = self._text[self._position :], len(self._text)
            return [Text(rest)] if rest else []
        if not self._is_json:
            return self._read_whole(token_ids, complete)
        return []

    def _advance(self, deltas: list[Delta]) -> bool:
        """One move of the machine; whether another may follow."""
        if self._state == "free":
            return self._free(deltas)
        if self._state == "start":
            return self._start()
        if self._state == "answer":
            if self._position < len(self._text):
                deltas.append(Text(self._text[self._position :]))
                self._position = len(self._text)
            return False
        if not self._is_json:
            return False
        if self._state == "arguments":
            return self._arguments(deltas)
        pattern = self._first if self._count == 0 else self._next
        match = pattern.match(self._text, self._position)
        if match is None:
            return False
        groups = match.groupdict()
        deltas.append(CallStarted(self._count, groups.get("id") or new_call_id(), groups["name"]))
        self._count += 1
        self._position = match.end()
        self._state = "arguments"
        return True

    def _start(self) -> bool:
        """Whether this is a call or an answer, which its first characters tell."""
        trigger = self._format.trigger
        if self._waits or (len(self._text) < len(trigger) and trigger.startswith(self._text)):
            return False
        self._state = "call" if self._text.startswith(trigger) and self._find(trigger) == 0 else "answer"
        return True

    def _free(self, deltas: list[Delta]) -> bool:
        """Text up to the trigger of the first call."""
        if self._waits:
            return False
        trigger, text = self._format.trigger, self._text
        start = self._find(trigger)
        if start >= 0:
            shown, self._state = text[self._position : start], "call"
        else:
            held = next(
                (
                    n
                    for n in range(min(len(trigger) - 1, len(text) - self._position), 0, -1)
                    if text.endswith(trigger[:n])
                ),
                0,
            )
            shown = text[self._position : len(text) - held]
        self._position += len(shown)
        if shown:
            deltas.append(Text(shown))
        return start >= 0

    def _find(self, trigger: str) -> int:
        start = self._text.find(trigger, self._position)
        while start >= 0 and trigger in self._by_token and start not in self._marks:
            start = self._text.find(trigger, start + 1)
        return start

    def _arguments(self, deltas: list[Delta]) -> bool:
        """The JSON text up to where its brackets close."""
        start = self._position
        for position in range(start, len(self._text)):
            character = self._text[position]
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self._position = position + 1
                    self._state = "after"
                    break
        else:
            self._position = len(self._text)
        if self._position > start:
            deltas.append(CallArguments(self._count - 1, self._text[start : self._position]))
        return self._state == "after"

    def _read_whole(self, token_ids: Sequence[int], complete: bool) -> list[Delta]:
        if not complete:
            # What was cut may be half a call, which nobody can use; as text it is at least seen.
            return [Text(self._text[self._position :])] if self._state in ("free", "start") else []
        output = self._calls.read(token_ids, self._vocabulary) if self._by_token else self._calls.read(self._text)
        deltas: list[Delta] = [Text(output.content)] if output.content and self._state != "call" else []
        for call in output.calls:
            deltas.append(CallStarted(self._count, call.id or new_call_id(), call.name))
            deltas.append(CallArguments(self._count, json.dumps(call.arguments, ensure_ascii=False, default=_number)))
            self._count += 1
        return deltas


def new_call_id() -> str:
    """An identifier as OpenAI's look."""
    return f"call_{secrets.token_hex(12)}"


def _number(value: Any) -> Any:
    return int(value) if value == value.to_integral_value() else float(value)


def _split(call: Pieces) -> tuple[Pieces, Pieces]:
    """The pieces of a call before its arguments, and after them."""
    for position, piece in enumerate(call):
        if isinstance(piece, JsonCall):
            return call[: position + 1], ("}", *call[position + 1 :])
        if isinstance(piece, (Arguments, Parameters, KeywordArguments)):
            return call[:position], call[position + 1 :]
    raise AssertionError("a call has its arguments exactly once")


def _pattern(pieces: Pieces) -> str:
    return "".join(map(_piece, pieces))


def _piece(piece: Piece) -> str:
    if isinstance(piece, str):
        return (_BLANKS if piece == "}" else "") + re.escape(piece)
    if isinstance(piece, Token):
        return f"(?:{re.escape(piece.name)}){'?' if piece.ends else ''}"
    if isinstance(piece, Blank):
        return _BLANKS
    if isinstance(piece, OneOf):
        return f"(?:{'|'.join(map(re.escape, piece.texts))})"
    if isinstance(piece, Match):
        return f"(?:{piece.pattern})"
    if isinstance(piece, Maybe):
        return f"(?:{_pattern(piece.pieces)})?"
    if isinstance(piece, CallId):
        return f"(?P<id>{_pattern(piece.pieces)})"
    if isinstance(piece, FreeText):
        return r"[\s\S]*?"
    if isinstance(piece, Name):
        return r"(?P<name>[A-Za-z0-9_.\-/]{1,128})"
    assert isinstance(piece, JsonCall)
    name = rf'"{piece.name}"{_BLANKS}:{_BLANKS}"(?P<name>[A-Za-z0-9_.\-/]{{1,128}})"'
    return rf'\{{{_BLANKS}{name}{_BLANKS},{_BLANKS}"{piece.arguments}"{_BLANKS}:{_BLANKS}'
