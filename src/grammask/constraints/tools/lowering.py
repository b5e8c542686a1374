"""From a format to the expression of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from grammask.constraints.algebra import Text, encode
from grammask.constraints.json_schema.whitespace import punctuation
from grammask.constraints.regex import lower_pattern
from grammask.constraints.tools.format import (
    Blank,
    CallId,
    FreeText,
    JsonCall,
    Match,
    Maybe,
    Name,
    OneOf,
    Piece,
    Pieces,
    Token,
    ToolFormat,
)
from grammask.constraints.triggered import text_without

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.base import Constraint
    from grammask.constraints.json_schema.whitespace import Whitespace


class FormatLowering:
    """Spells the pieces of one format.

    Args:
        builder: where expressions are made.
        format: the description.
        tokens: name -> id of the markers that are special tokens; all others are text.
        ends: ids of the tokens that end a text.
        whitespace: the policy for blanks.
    """

    def __init__(
        self,
        builder: Builder,
        format: ToolFormat,
        tokens: Mapping[str, int],
        ends: Sequence[int],
        whitespace: Whitespace,
    ) -> None:
        self._builder = builder
        self._format = format
        self._arguments: dict[str, Expr] = {}
        self._tokens = tokens
        self._ends = ends
        self._whitespace: Whitespace = whitespace
        self._punctuation = punctuation(whitespace, builder)

    def add_tool(self, name: str, arguments: Constraint) -> None:
        """A tool that may be called, with the constraint of its arguments.

        Raises:
            ConstraintError: the arguments cannot be enforced or satisfied.
        """
        self._arguments[name] = self._builder.call(arguments.lower(self._builder))

    def output(self, *, answers: bool, high: int | None, preamble: bool) -> Expr:
        """Outputs without calls if ``answers``, and those with 1 to ``high`` calls (None: no limit, 0: none)."""
        builder, format = self._builder, self._format
        found = []
        if answers:
            found.append(builder.call(self._sequence(format.answer)))
        if high != 0:
            more = builder.concat([self._sequence(format.separator), self._call(format.call)])
            others = builder.repeat(more, 0, None if high is None else high - 1)
            found.append(builder.concat([self._first_call(preamble), others, self._sequence(format.end)]))
        thought = builder.call(self._sequence(format.thought)) if format.thought else builder.epsilon
        return builder.concat([builder.repeat(thought, 0, None), builder.union(found)])

    def _call(self, pieces: Pieces) -> Expr:
        return self._builder.union([self._sequence(pieces, name) for name in self._arguments])

    def _first_call(self, preamble: bool) -> Expr:
        """Up to the end of the first call.

        The free text before it and the marker that ends that text are a frame of their own: like answers and thoughts,
        it is the same whatever the tools, and so are its states and masks, the costliest of all.
        """
        builder, format = self._builder, self._format
        if not (preamble and format.has_free_lead):
            return builder.concat([self._sequence(format.begin), self._call(format.call)])
        if format.begin:
            lead = self._sequence((*format.lead, format.begin[0]))
            return builder.concat([builder.call(lead), self._sequence(format.begin[1:]), self._call(format.call)])
        lead = self._sequence((*format.lead, format.call[0]))
        return builder.concat([builder.call(lead), self._call(format.call[1:])])

    def _sequence(self, pieces: Pieces, tool: str = "") -> Expr:
        return self._builder.concat([self._piece(piece, tool) for piece in pieces])

    def _piece(self, piece: Piece, tool: str) -> Expr:
        builder = self._builder
        if isinstance(piece, str):
            return builder.literal(encode(piece))
        if isinstance(piece, Token):
            return self._token(piece)
        if isinstance(piece, Blank):
            if self._whitespace == "flexible":
                return self._punctuation.before_value
            return builder.literal(piece.text.encode())
        if isinstance(piece, OneOf):
            return builder.union([builder.literal(encode(text)) for text in piece.texts])
        if isinstance(piece, Match):
            return lower_pattern(piece.pattern, builder, search=False)
        if isinstance(piece, Maybe):
            return builder.optional(self._sequence(piece.pieces, tool))
        if isinstance(piece, CallId):
            return self._sequence(piece.pieces, tool)
        if isinstance(piece, FreeText):
            return self._free_text()
        if isinstance(piece, Name):
            return builder.literal(tool.encode())
        if isinstance(piece, JsonCall):
            return self._json_call(piece, tool)
        return self._arguments[tool]

    def _token(self, piece: Token) -> Expr:
        builder = self._builder
        found = self._tokens.get(piece.name)
        if found is None:
            text = builder.literal(encode(piece.name))
            return builder.optional(text) if piece.ends else text
        if piece.ends and found in self._ends:
            return builder.epsilon
        return builder.special_token(found)

    def _free_text(self) -> Expr:
        builder, format = self._builder, self._format
        stops = [builder.literal(encode(name)) for name in format.markers if name not in self._tokens]
        free = text_without(stops, builder)
        if format.claim is None:
            return free
        claimed = builder.concat([lower_pattern(format.claim, builder, search=False), Text().lower(builder)])
        return builder.intersection([free, builder.complement(claimed)])

    def _json_call(self, piece: JsonCall, tool: str) -> Expr:
        builder, marks = self._builder, self._punctuation

        def quoted(text: str) -> Expr:
            return builder.literal(b'"' + text.encode() + b'"')

        name = [marks.open_object, quoted(piece.name), marks.colon, marks.before_value, quoted(tool)]
        arguments = [marks.comma, quoted(piece.arguments), marks.colon, marks.before_value, self._arguments[tool]]
        return builder.concat([*name, *arguments, marks.close_object])
