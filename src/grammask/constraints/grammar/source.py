"""The text of a grammar, and errors that point into it."""

from __future__ import annotations

from bisect import bisect_right

from grammask.engine.errors import ConstraintError, ConstraintSyntaxError

_EXCERPT_WIDTH = 72


class Source:
    """A grammar's text with its line structure.

    Attributes:
        text: the whole text; offsets below are indices into it, in code points.
        dialect: what the text is, for messages ("GBNF", "Lark").
    """

    def __init__(self, text: str, dialect: str) -> None:
        self.text = text
        self.dialect = dialect
        self._line_starts = [0]
        for offset, char in enumerate(text):
            if char == "\n":
                self._line_starts.append(offset + 1)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both counted from 1, of an offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def excerpt(self, offset: int) -> str:
        """The line that holds the offset, cut to a readable width, and a caret under the place."""
        line, column = self.position(offset)
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        content = self.text[start:end].rstrip("\r")
        first = 0
        if len(content) > _EXCERPT_WIDTH:
            first = max(0, min(column - 1 - _EXCERPT_WIDTH // 2, len(content) - _EXCERPT_WIDTH))
        visible = content[first : first + _EXCERPT_WIDTH]
        before = "…" if first else ""
        after = "…" if first + _EXCERPT_WIDTH < len(content) else ""
        shown = "".join(char if char == "\t" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in visible)
        indent = "".join("\t" if char == "\t" else " " for char in visible[: column - 1 - first])
        gutter = str(line)
        return f"  {gutter} | {before}{shown}{after}\n  {' ' * len(gutter)} | {' ' * len(before)}{indent}^"

    def error(
        self,
        offset: int,
        message: str,
        hint: str | None = None,
        kind: type[ConstraintError] = ConstraintSyntaxError,
    ) -> ConstraintError:
        """The error to raise for a fault at this offset, with line, column and an excerpt."""
        offset = min(offset, len(self.text))
        line, column = self.position(offset)
        return kind(f"{message}\n{self.excerpt(offset)}", line=line, column=column, hint=hint)
