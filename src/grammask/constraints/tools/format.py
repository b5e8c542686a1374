"""The declarative description of how a family of models writes tool calls.

A format is data: sequences of *pieces*. One interpreter turns them into a constraint (``lowering``), another one reads
outputs back (``parsing``), so the two cannot disagree. In full an output is

    thought*  then  answer                                             without calls
    thought*  then  lead  begin  call (separator call)*  end           with calls

where each name is a field of ``ToolFormat``, a sequence of pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from grammask.engine.errors import ConstraintSyntaxError


@dataclass(frozen=True)
class Token:
    """A marker that is a special token where the vocabulary has it, and its text where not.

    ends: whether it ends the output. Where the vocabulary counts it among its end-of-text tokens it needs no place of
        its own, and as text it may be missing.
    """

    name: str
    ends: bool = False


@dataclass(frozen=True)
class Blank:
    """White space: exactly this text, or under the whitespace policy "flexible" any blanks or none."""

    text: str = ""


@dataclass(frozen=True)
class OneOf:
    """One of some texts; no text begins with another one."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """A text that the pattern matches as a whole; what follows in the format must not be able to continue it."""

    pattern: str


@dataclass(frozen=True)
class Maybe:
    """The pieces or nothing; what follows in the format must begin differently."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class FreeText:
    """Text up to the next marker of the format."""


@dataclass(frozen=True)
class Name:
    """The name of the tool."""


@dataclass(frozen=True)
class CallId:
    """Pieces whose text, all together, is the identifier of the call."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Arguments:
    """The arguments as one JSON object."""


@dataclass(frozen=True)
class JsonCall:
    """A JSON object with the tool's name and its arguments as members, in this order."""

    name: str = "name"
    arguments: str = "arguments"


@dataclass(frozen=True)
class Parameters:
    """The arguments one after the other, as tagged text: ``before KEY between VALUE after``, then ``end``.

    Values of string parameters are raw text up to the first ``close``, which such a value therefore cannot hold. Values
    of other parameters are JSON. Of a parameter that may be a string or something else, a value that begins with ``"``,
    or like an object or array, or is a number, boolean or null, is JSON if the parameter may have that type; everything
    else is a raw string.

    Attributes:
        open: before the name of a parameter.
        between: between its name and its value.
        close: after a value.
        after: following that, before the next parameter or the end.
        end: after the last one.
    """

    open: str
    between: str
    close: str
    after: str
    end: str


@dataclass(frozen=True)
class KeywordArguments:
    """The arguments as in a Python call, ``city="Oslo", days=3)``, with values as Python literals.

    Strings are in double or single quotes. ``end`` is what closes the call.
    """

    end: str = ")"


Leaf: TypeAlias = str | Token | Blank | OneOf | Match | FreeText
Piece: TypeAlias = Leaf | Maybe | CallId | Name | Arguments | JsonCall | Parameters | KeywordArguments
Pieces: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True)
class ToolFormat:
    """How tool calls are written.

    Attributes:
        name: for messages.
        call: one call. Holds the tool's name once and the arguments once.
        begin, separator, end: before the first call, between calls, after the last.
        lead: what may stand before ``begin``.
        answer: an output without calls.
        thought: what may stand before all of this, any number of times.
        also_read: other shapes of a call that models write, read in outputs but never written under the constraint.
        max_calls: calls that the format can hold, None for any number.
        claim: a regular expression for formats whose calls have no marker and are the whole output: a text that begins
            with a match is a call, every other text an answer. ``lead`` is then empty.

    Raises:
        ConstraintSyntaxError: the description is inconsistent.
    """

    name: str
    call: Pieces
    begin: Pieces = ()
    separator: Pieces = ()
    end: Pieces = ()
    lead: Pieces = (FreeText(),)
    answer: Pieces = (FreeText(),)
    thought: Pieces = ()
    also_read: tuple[Pieces, ...] = ()
    max_calls: int | None = None
    claim: str | None = None

    def __post_init__(self) -> None:
        for call in (self.call, *self.also_read):
            kinds = [type(piece) for piece in walk(call)]
            if kinds.count(Name) + kinds.count(JsonCall) != 1:
                raise self._fault("a call names its tool exactly once (Name or JsonCall)")
            if sum(map(kinds.count, (Arguments, JsonCall, Parameters, KeywordArguments))) != 1:
                raise self._fault("a call has its arguments exactly once")
        if self.claim is not None:
            if any(isinstance(piece, FreeText) for piece in walk(self.lead)):
                raise self._fault("calls without a marker cannot follow free text: lead=()")
            re.compile(self.claim)
        elif self.has_free_lead and not self.trigger:
            raise self._fault("calls that may follow free text begin with a text or a Token", "or give a claim")
        markers = self.markers
        for first in markers:
            for second in markers:
                if first != second and first in second:
                    raise self._fault(f"the marker {second!r} contains the marker {first!r}")
                if any(first.endswith(second[:size]) for size in range(1, min(len(first), len(second)))):
                    raise self._fault(f"the marker {second!r} may begin inside {first!r}")

    def _fault(self, message: str, hint: str | None = None) -> ConstraintSyntaxError:
        return ConstraintSyntaxError(f"tool format {self.name!r}: {message}", hint=hint)

    @property
    def has_free_lead(self) -> bool:
        """Whether calls may follow free text."""
        return any(isinstance(piece, FreeText) for piece in self.lead)

    @property
    def trigger(self) -> str:
        """The text that begins the first call, "" if it has no marker."""
        first = (self.begin + self.call)[0]
        if isinstance(first, Token):
            return first.name
        return first if isinstance(first, str) else ""

    @property
    def markers(self) -> tuple[str, ...]:
        """Every text that free text cannot hold where all markers are spelled as text."""
        pieces = self.thought + self.lead + self.begin + self.call + self.separator + self.end + self.answer
        names = [piece.name for piece in walk(pieces) if isinstance(piece, Token)]
        if self.claim is None and self.has_free_lead:
            names.append(self.trigger)
        return tuple(dict.fromkeys(names))


def walk(pieces: Pieces) -> Iterator[Piece]:
    """All pieces, those inside others too."""
    for piece in pieces:
        yield piece
        if isinstance(piece, (Maybe, CallId)):
            yield from walk(piece.pieces)
