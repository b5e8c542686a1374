"""The errors a constraint can raise while it is read or compiled.

ValueError
└── ConstraintError
    ├── ConstraintSyntaxError     the constraint's own text is malformed (regex, grammar, schema)
    ├── UnsupportedConstraint     well-formed, but cannot be enforced exactly
    ├── UnsatisfiableConstraint   well-formed, but no output satisfies it
    └── ConstraintTooLarge        a limit on states, memory or time was reached
"""

from __future__ import annotations

RAISE_LIMITS = "simplify the constraint, or pass larger limits=grammask.Limits(...)"
"""The hint of errors that larger limits would avoid."""
MAX_SHOWN = 1_000
"""Longer texts are cut in their middle where a message shows them: constraints may hold megabytes."""


class ConstraintError(ValueError):
    """Base of all errors about constraints.

    Attributes:
        pointer: JSON pointer of the place inside a schema ("" is the root), or None.
        line, column: 1-based place inside a grammar or pattern, or None.
        hint: what to do about it, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = _shown(message)
        self.pointer = pointer
        self.line = line
        self.column = column
        self.hint = hint
        super().__init__(self._render())

    def _render(self) -> str:
        where = ""
        if self.pointer is not None:
            where = f"at {_shown(self.pointer) or '(root)'}: "
        elif self.line is not None:
            where = f"line {self.line}, column {self.column}: "
        elif self.column is not None:
            where = f"column {self.column}: "
        text = where + self.message
        return f"{text}\n  hint: {_shown(self.hint)}" if self.hint else text


def _shown(text: str) -> str:
    half = MAX_SHOWN // 2
    return text if len(text) <= MAX_SHOWN else f"{text[:half]} ... {text[-half:]}"


class ConstraintSyntaxError(ConstraintError):
    """The text of a pattern, grammar or schema is malformed."""


class UnsupportedConstraint(ConstraintError):
    """The constraint asks for something that cannot be enforced exactly on text."""


class UnsatisfiableConstraint(ConstraintError):
    """No output at all satisfies the constraint."""


class ConstraintTooLarge(ConstraintError):
    """A limit on expressions, states, memory or time was reached."""
