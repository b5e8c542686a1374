"""What was wrong with the input, in a form that the page can show beside the field it came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(eq=False)
class Problem(ValueError):
    """A mistake that the person at the page can correct.

    Attributes:
        field: the input that it is about, such as ``constraint``, ``sampling``, ``prompt`` or ``path``.
        kind: in a few words, such as "unsupported constraint".
        message: what is wrong.
        hint: what to do about it.
        pointer: JSON pointer of the place in a schema. line, column: the place in a text, from 1.
    """

    field: str
    kind: str
    message: str
    hint: str | None = None
    pointer: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        return asdict(self)

    @classmethod
    def of_error(cls, error: Exception, field: str) -> Problem:
        """From an exception of grammask, with its place if it has one."""
        return cls(
            field,
            _words(type(error).__name__),
            str(getattr(error, "message", None) or error),
            getattr(error, "hint", None),
            getattr(error, "pointer", None),
            getattr(error, "line", None),
            getattr(error, "column", None),
        )


def _words(name: str) -> str:
    """``UnsupportedConstraint`` is "unsupported constraint"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
