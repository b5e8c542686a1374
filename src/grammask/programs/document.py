"""The document that a program writes: plain text, or the turns of a chat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from grammask.models.errors import ModelError

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class Document:
    """What has been written.

    Attributes:
        turns: the closed turns of a chat, as messages.
        role: of the open turn; None between turns and in plain text.
        text: of the open turn, or the plain text.
    """

    turns: tuple[dict[str, Any], ...] = ()
    role: str | None = None
    text: str = ""

    @property
    def is_chat(self) -> bool:
        """Whether there are turns."""
        return bool(self.turns) or self.role is not None

    def add(self, text: str) -> Document:
        """The document with more text.

        Raises:
            ModelError: it is a chat, and no turn is open.
        """
        if self.turns and self.role is None:
            raise ModelError(
                "the text belongs to no turn of the chat", hint='open one: state.begin("user"), or state.user(...)'
            )
        return replace(self, text=self.text + text)

    def begin(self, role: str) -> Document:
        """The document with a new turn.

        Raises:
            ModelError: another turn is open, the role is unknown, or the document is plain text.
        """
        if role not in ROLES:
            raise ModelError(f"there is no role {role!r}", hint=f"one of {', '.join(ROLES)}")
        if self.role is not None:
            raise ModelError(f"the turn of {self.role} is still open", hint="close it: state.end()")
        if self.text:
            raise ModelError("the document began as plain text, so it has no turns", hint="start with a turn")
        return replace(self, role=role)

    def end(self) -> Document:
        """The document with its turn closed.

        Raises:
            ModelError: no turn is open.
        """
        if self.role is None:
            raise ModelError("no turn is open")
        return Document((*self.turns, {"role": self.role, "content": self.text}), None, "")

    def messages(self) -> list[dict[str, Any]]:
        """All turns, the open one among them if it has text."""
        opened = [{"role": self.role, "content": self.text}] if self.role is not None and self.text else []
        return [*self.turns, *opened]
