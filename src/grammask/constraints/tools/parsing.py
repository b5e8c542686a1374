"""From an output back to calls: the reader of a format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from grammask._core import Compiled
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.tools.arguments import OTHERS, ArgumentsSchema, byte_builder, is_json
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
    ToolFormat,
)
from grammask.constraints.tools.json_text import NUMBER, read_json, read_python, skip_blanks
from grammask.constraints.tools.source import Source, ToolCallError
from grammask.constraints.tools.tool import NAME

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHOWN = 8
"""Names or characters listed in a message."""


@dataclass(frozen=True)
class ToolCall:
    """One call.

    Attributes:
        name: the tool.
        arguments: by name; they satisfy the tool's schema.
        id: the identifier that the format writes with a call, None where it writes none.
        start, end: the place of the call in the output, in characters.
    """

    name: str
    arguments: dict[str, Any]
    id: str | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class ToolOutput:
    """An output taken apart.

    Attributes:
        thoughts: texts of what the format calls thoughts (analysis in Harmony).
        content: the free text: before the calls, or the whole answer.
        calls: in the order written.
    """

    thoughts: tuple[str, ...]
    content: str
    calls: tuple[ToolCall, ...]


class Validator:
    """Finds where the JSON text of arguments leaves a tool's schema."""

    def __init__(self, schema: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        lenient = {**options, "property_order": "any", "escapes": "all", "whitespace": "flexible", "numbers": "any"}
        self._schema = JsonSchema(schema, **lenient)
        self._compiled: Compiled | None = None

    def missing(self, text: str) -> list[str]:
        """The required arguments that are not there, as far as the schema's own ``required`` says so."""
        schema = self._schema.schema
        required = schema.get("required") if isinstance(schema, Mapping) else None
        try:
            given = json.loads(text)
        except ValueError:
            return []
        if not isinstance(given, dict) or not isinstance(required, list):
            return []
        return [name for name in required if name not in given]

    def fault(self, text: str) -> tuple[int, str] | None:
        """Position in the text and the characters that could stand there; None if the arguments are in order."""
        if self._compiled is None:
            builder = byte_builder()
            self._compiled = builder.compile(self._schema.lower(builder))
        matcher = self._compiled.matcher()
        data = text.encode()
        good = matcher.matched_prefix(data)
        if good == len(data):
            return None
        matcher.accept_bytes(data[:good])
        following = [chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in matcher.next_bytes()]
        shown = " ".join(following[:SHOWN]) + (" ..." if len(following) > SHOWN else "")
        return len(data[:good].decode(errors="ignore")), shown


@dataclass
class _Call:
    """What is known of the call being read.

    Attributes:
        arguments: their JSON text.
        place: where they stand in the output as they are, or where they end if they are written in another notation.
        values: for those in another notation, of each value: where it ends in ``arguments``, where it begins in the
            output. The last entry is the closing brace.
    """

    start: int
    name: str = ""
    id: str | None = None
    arguments: str = ""
    place: int = 0
    values: list[tuple[int, int]] = field(default_factory=list)

    def set_members(self, members: Mapping[str, str], places: list[int]) -> None:
        """Joins members (names, JSON texts of the values) to one object; places are those of the values and the end."""
        self.arguments = "{"
        self.values = []
        for (name, value), place in zip(members.items(), places, strict=False):
            comma = "," if self.values else ""
            self.arguments += f"{comma}{json.dumps(name, ensure_ascii=False)}:{value}"
            self.values.append((len(self.arguments), place))
        self.arguments += "}"
        self.place = places[-1]
        self.values.append((len(self.arguments), places[-1]))


class FormatReader:
    """Reads one output.

    Args:
        source: the output.
        format: the description.
        arguments: the constraint of each tool's arguments, by the name of the tool.
        validators: the same for checking.
    """

    def __init__(
        self,
        source: Source,
        format: ToolFormat,
        arguments: Mapping[str, JsonSchema],
        validators: Mapping[str, Validator],
    ) -> None:
        self._source = source
        self._text = source.text
        self._format = format
        self._arguments = arguments
        self._validators = validators
        self._faults: list[ToolCallError] = []
        self._texts: list[str] = []
        self._call = _Call(0)

    def output(self, *, answers: bool, high: int | None, preamble: bool) -> ToolOutput:
        """Arguments as for ``FormatLowering.output``.

        Raises:
            ToolCallError: at the furthest place that could be reached.
        """
        position = 0
        while self._format.thought:
            after = self._try(self._format.thought, position)
            if after is None:
                break
            position = after
        thoughts, self._texts = tuple(self._texts), []
        if high != 0:
            calls = self._attempt(lambda: self._calls(position, high, preamble))
            if calls is not None:
                return ToolOutput(thoughts, "".join(self._texts), calls)
        self._texts = []
        if answers and self._attempt(lambda: self._finish(self._sequence(self._format.answer, position))) is not None:
            return ToolOutput(thoughts, "".join(self._texts), ())
        furthest = max(fault.position for fault in self._faults)
        expected = dict.fromkeys([fault.expected for fault in self._faults if fault.position == furthest])
        raise self._source.fault(furthest, " or ".join(expected))

    def _attempt(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except ToolCallError as error:
            self._faults.append(error)
            return None

    def _try(self, pieces: Pieces, position: int) -> int | None:
        """The position after the pieces; None, with nothing recorded, if they do not stand here."""
        texts, call = len(self._texts), replace(self._call)
        after: int | None = self._attempt(lambda: self._sequence(pieces, position))
        if after is None:
            del self._texts[texts:]
            self._call = call
        return after

    def _finish(self, position: int) -> int:
        if position != len(self._text):
            raise self._source.fault(position, "the end of the output")
        return position

    # -- calls

    def _calls(self, position: int, high: int | None, preamble: bool) -> tuple[ToolCall, ...]:
        format = self._format
        if preamble:
            position = self._sequence(format.lead, position)
        position = self._sequence(format.begin, position)
        call, position = self._one_call(position)
        calls = [call]
        while high is None or len(calls) < high:
            following = self._attempt(partial(self._next_call, position))
            if following is None:
                break
            call, position = following
            calls.append(call)
        position = self._sequence(format.end, position)
        self._finish(skip_blanks(self._text, position))
        return tuple(calls)

    def _next_call(self, position: int) -> tuple[ToolCall, int]:
        return self._one_call(self._sequence(self._format.separator, position))

    def _one_call(self, position: int) -> tuple[ToolCall, int]:
        end = None
        for shape in self._format.also_read:
            self._call = _Call(position)
            end = self._try(shape, position)
            if end is not None:
                break
        else:
            self._call = _Call(position)
            end = self._sequence(self._format.call, position)
        call = self._call
        fault = self._validators[call.name].fault(call.arguments)
        if fault is not None:
            offset, following = fault
            expected = f"arguments that satisfy the schema of {call.name}"
            missing = self._validators[call.name].missing(call.arguments)
            if missing:
                expected += f", where {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            if not call.values:
                raise self._source.fault(call.place + offset, f"{expected} (next could be {following})")
            place = next((place for ends, place in call.values if offset < ends), call.place)
            as_json = f"as JSON they leave it after {call.arguments[:offset]}, where next could be {following}"
            raise self._source.fault(place, f"{expected} ({as_json})")
        value, _ = read_json(call.arguments, 0, len(call.arguments), self._source.fault)
        return ToolCall(call.name, value, call.id, position, end), end

    # -- pieces

    def _sequence(self, pieces: Pieces, position: int) -> int:
        for piece in pieces:
            position = self._piece(piece, position)
        return position

    def _piece(self, piece: Piece, position: int) -> int:
        if isinstance(piece, str):
            return self._literal(piece, position)
        if isinstance(piece, Token):
            return self._token(piece, position)
        if isinstance(piece, Blank):
            return skip_blanks(self._text, position)
        if isinstance(piece, OneOf):
            return self._one_of(piece, position)
        if isinstance(piece, Match):
            return self._match(piece, position)
        if isinstance(piece, Maybe):
            after = self._try(piece.pieces, position)
            return position if after is None else after
        if isinstance(piece, CallId):
            end = self._sequence(piece.pieces, position)
            self._call.id = self._text[position:end]
            return end
        if isinstance(piece, FreeText):
            return self._free_text(position)
        if isinstance(piece, Name):
            return self._name(position)
        if isinstance(piece, JsonCall):
            return self._json_call(piece, position)
        if isinstance(piece, Arguments):
            return self._json_arguments(position)
        if isinstance(piece, Parameters):
            return self._parameters(piece, position)
        return self._keywords(piece, position)

    def _literal(self, text: str, position: int) -> int:
        end = position + len(text)
        if not self._text.startswith(text, position) or self._source.next_special(position) < end:
            raise self._source.fault(position, repr(text))
        return end

    def _token(self, piece: Token, position: int) -> int:
        name, source = piece.name, self._source
        if name in source.by_token:
            found = source.specials.get(position) == name
        else:
            found = self._text.startswith(name, position)
        if found:
            return position + len(name)
        if piece.ends:
            return position
        raise source.fault(position, name)

    def _one_of(self, piece: OneOf, position: int) -> int:
        for text in piece.texts:
            if self._text.startswith(text, position):
                return self._literal(text, position)
        raise self._source.fault(position, " or ".join(map(repr, piece.texts)))

    def _match(self, piece: Match, position: int) -> int:
        match = re.compile(piece.pattern).match(self._text, position, self._source.next_special(position))
        if match is None:
            raise self._source.fault(position, f"a text like {piece.pattern}")
        return match.end()

    def _free_text(self, position: int) -> int:
        format, source = self._format, self._source
        if format.claim is not None and re.compile(format.claim).match(self._text, position):
            raise source.fault(position, "text that does not begin like a call")
        ends = [source.next_special(position)]
        for name in format.markers:
            if name not in source.by_token:
                place = self._text.find(name, position, ends[0])
                ends += [place] if place >= 0 else []
        self._texts.append(self._text[position : min(ends)])
        return min(ends)

    def _name(self, position: int) -> int:
        match = NAME.match(self._text, position, self._source.next_special(position))
        if match is None or match[0] not in self._arguments:
            names = sorted(self._arguments)
            raise self._source.fault(
                position, f"the name of a tool: {', '.join(names[:SHOWN])}{' ...' if len(names) > SHOWN else ''}"
            )
        self._call.name = match[0]
        return match.end()

    def _json_call(self, piece: JsonCall, position: int) -> int:
        position = self._json_key("{", piece.name, position)
        position = self._literal('"', position)
        position = self._literal('"', self._name(position))
        position = self._json_key(",", piece.arguments, skip_blanks(self._text, position))
        position = skip_blanks(self._text, self._json_arguments(position))
        return self._literal("}", position)

    def _json_key(self, before: str, key: str, position: int) -> int:
        """After ``before "key":``, blanks where JSON allows them."""
        position = skip_blanks(self._text, self._literal(before, position))
        position = skip_blanks(self._text, self._literal(json.dumps(key), position))
        return skip_blanks(self._text, self._literal(":", position))

    def _json_arguments(self, position: int) -> int:
        if not self._text.startswith("{", position):
            raise self._source.fault(position, "'{'")
        _, end = read_json(self._text, position, self._source.next_special(position), self._source.fault)
        call = self._call
        call.arguments, call.place = self._text[position:end], position
        return end

    def _parameters(self, piece: Parameters, position: int) -> int:
        call, text = self._call, self._text
        schema = self._arguments[call.name]
        assert isinstance(schema, ArgumentsSchema)
        members: dict[str, str] = {}
        places: list[int] = []
        while not text.startswith(piece.end, position):
            if not text.startswith(piece.open, position):
                raise self._source.fault(position, f"{piece.open!r} or {piece.end!r}")
            start = self._literal(piece.open, position)
            stop = text.find(piece.between[0], start)
            name = text[start : stop if stop >= 0 else len(text)]
            kinds = schema.kinds.get(name, schema.kinds.get(OTHERS))
            if kinds is None or name in members or not name:
                left = [repr(known) for known in schema.kinds if known and known not in members]
                raise self._source.fault(
                    start, f"the name of another parameter of {call.name}: {', '.join(left) or 'none'}"
                )
            position = self._literal(piece.between, start + len(name))
            places.append(position)
            members[name], position = self._parameter(piece, position, kinds)
            position = self._literal(piece.after, position)
        call.set_members(members, [*places, position])
        return self._literal(piece.end, position)

    def _parameter(self, piece: Parameters, position: int, kinds: int) -> tuple[str, int]:
        """The value at a position as JSON text, and the position after what closes it."""
        text, source = self._text, self._source
        limit = source.next_special(position)
        stop = text.find(piece.close, position, limit)
        raw = text[position : stop if stop >= 0 else limit]
        if is_json(raw, kinds, NUMBER.fullmatch(raw) is not None):
            _, end = read_json(text, position, limit, source.fault)
            return text[position:end], self._literal(piece.close, end)
        if stop < 0:
            raise source.fault(limit, repr(piece.close))
        return json.dumps(raw, ensure_ascii=False), stop + len(piece.close)

    def _keywords(self, piece: KeywordArguments, position: int) -> int:
        call, text, source = self._call, self._text, self._source
        members: dict[str, str] = {}
        places: list[int] = []
        while not text.startswith(piece.end, position):
            if members:
                position = skip_blanks(text, self._literal(",", position))
            match = _PARAMETER.match(text, position)
            if match is None or match[0] in members:
                raise source.fault(position, f"the name of another parameter, or {piece.end!r}")
            position = self._literal("=", match.end())
            places.append(position)
            members[match[0]], position = read_python(text, position, source.fault)
            position = skip_blanks(text, position)
        call.set_members(members, [*places, position])
        return self._literal(piece.end, position)
