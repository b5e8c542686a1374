"""A position in a grammar's text, with what both dialects write alike: blanks, repetition bounds, token names."""

from __future__ import annotations

from collections.abc import Container

from grammask.constraints.grammar.nodes import Token
from grammask.constraints.grammar.source import Source
from grammask.engine.errors import ConstraintError, ConstraintTooLarge

MAX_REPETITION = 1_000_000
"""The largest bound a repetition may have."""

_DIGITS = frozenset("0123456789")


class Cursor:
    """Reads a source from left to right.

    comments: the character sequences that start a comment up to the end of the line.
    """

    def __init__(self, source: Source, comments: tuple[str, ...]) -> None:
        self.source = source
        self.offset = 0
        self._text = source.text
        self._comments = comments

    @property
    def at_end(self) -> bool:
        return self.offset >= len(self._text)

    def peek(self, ahead: int = 0) -> str:
        """The character some places ahead, empty at the end of the text."""
        return self._text[self.offset + ahead : self.offset + ahead + 1]

    def advance(self) -> str:
        char = self._text[self.offset]
        self.offset += 1
        return char

    def looking_at(self, text: str) -> bool:
        return self._text.startswith(text, self.offset)

    def take(self, text: str) -> bool:
        """Steps over this text if it stands here."""
        if not self._text.startswith(text, self.offset):
            return False
        self.offset += len(text)
        return True

    def take_while(self, characters: Container[str]) -> str:
        start = self.offset
        while self.offset < len(self._text) and self._text[self.offset] in characters:
            self.offset += 1
        return self._text[start : self.offset]

    def skip(self, *, newlines: bool = False) -> None:
        """Steps over blanks and comments; over line breaks only when told."""
        blanks = " \t\r\n" if newlines else " \t"
        while self.offset < len(self._text):
            if self._text[self.offset] in blanks:
                self.offset += 1
            elif self._text.startswith(self._comments, self.offset):
                while self.offset < len(self._text) and self._text[self.offset] not in "\r\n":
                    self.offset += 1
            else:
                return

    def unexpected(self, wanted: str) -> ConstraintError:
        """The error for a place where something else was wanted."""
        char = self.peek()
        found = "the text ends" if not char else "the line ends" if char in "\r\n" else f"{char!r} stands"
        return self.source.error(self.offset, f"{found} where {wanted} was expected")

    def number(self) -> int:
        """A repetition bound.

        Raises:
            ConstraintTooLarge: it is above MAX_REPETITION.
        """
        start = self.offset
        digits = self.take_while(_DIGITS)
        if not digits:
            raise self.unexpected("a number")
        digits = digits.lstrip("0") or "0"
        if len(digits) > len(str(MAX_REPETITION)) or int(digits) > MAX_REPETITION:
            raise self.source.error(
                start,
                f"repetition bounds above {MAX_REPETITION} are refused",
                hint="leave the upper bound out",
                kind=ConstraintTooLarge,
            )
        return int(digits)

    def repetition(self, *, newlines: bool) -> tuple[int, int | None]:
        """The bounds that ``*``, ``+``, ``?``, ``{m}``, ``{m,}``, ``{m,n}`` or ``{,n}`` stand for."""
        start = self.offset
        operator = self.advance()
        if operator != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[operator]
        self.skip(newlines=newlines)
        low: int | None = None
        if self.peek() != ",":
            low = self.number()
            self.skip(newlines=newlines)
        high = low
        if self.take(","):
            self.skip(newlines=newlines)
            high = self.number() if self.peek() in _DIGITS else None
            self.skip(newlines=newlines)
            if low is None and high is None:
                raise self.source.error(start, "a repetition needs at least one bound", hint="any number of times is *")
        if not self.take("}"):
            raise self.unexpected("'}' after the repetition bounds")
        self.check_bounds(low or 0, high, start)
        return low or 0, high

    def check_bounds(self, low: int, high: int | None, offset: int) -> None:
        if high is not None and high < low:
            raise self.source.error(offset, f"at least {low} but at most {high} repetitions are impossible")

    def token(self) -> Token:
        """``<[id]>`` or ``<name>``; the name of a token includes its angle brackets."""
        start = self.offset
        end = self._text.find(">", start)
        line_end = self._text.find("\n", start)
        if end < 0 or 0 <= line_end < end:
            raise self.source.error(start, "this token is never closed", hint="end it with >")
        self.offset = end + 1
        name = self._text[start : end + 1]
        if not name.startswith("<["):
            if len(name) == 2:
                raise self.source.error(start, "a token needs a name", hint="write <name> or <[id]>")
            return Token(name, None, start)
        digits = name[2:-2]
        if not name.endswith("]>") or not digits or any(digit not in _DIGITS for digit in digits) or len(digits) > 9:
            raise self.source.error(start, f"{name} is not a token id", hint="write it as <[128001]>")
        return Token(None, int(digits), start)
