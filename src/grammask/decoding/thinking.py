"""Thinking that passes through: a model that was trained to think between tags may do so before the output begins.

Thinking and output are one sequence under one constraint, (tag, any text without the closing tag, closing tag), then
the output; so the token limit covers both, and a budget closes the thinking in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask.decoding.strategy import Strategy

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.decoding.streams import TextStream
    from grammask.engine.vocabulary import Vocabulary
    from grammask.models import LanguageModel, Prompt

_BLANKS = r"[ \n]{0,4}"
"""What may stand between the closing tag and the output."""


@dataclass(frozen=True)
class Thinking(Strategy):
    """``strategy="thinking"``: ``Result.reasoning`` is what stands between the tags, streamed on the channel
    "reasoning"; ``Result.text`` is the output behind it.

    Attributes:
        open, close: the tags: special tokens where the vocabulary has them under these names, else text.
        required: the model must think; else it may.
        opened: the chat template has written the opening tag already, so the output begins inside.
    """

    open: str = "<think>"
    close: str = "</think>"
    required: bool = False
    opened: bool = False

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        from grammask.decoding.generate import stream_one
        from grammask.models.base import Model
        from grammask.models.errors import ModelError

        if not isinstance(model, Model):
            raise ModelError(f"{model.name} is not decoded here, so its thinking cannot be let through: leave it out")
        return stream_one(model, prompt, constraint, **options, thinking=self)

    def around(self, constraint: Constraint, vocabulary: Vocabulary) -> Constraint:
        """The constraint behind thinking."""
        from grammask.constraints.algebra import sequence
        from grammask.constraints.regex import Regex
        from grammask.constraints.special_token import SpecialToken

        special = vocabulary.special_tokens
        opening = SpecialToken(self.open) if self.open in special else self.open
        words = Regex(r"[\s\S]*")
        if self.close in special:
            closing: Any = SpecialToken(self.close)
        else:
            words = words & ~(Regex(r"[\s\S]*") + self.close + Regex(r"[\s\S]*"))  # type: ignore[assignment]
            closing = self.close
        thinking = sequence(*(() if self.opened else (opening,)), words, closing, Regex(_BLANKS))
        return sequence(thinking if self.required or self.opened else thinking.optional(), constraint)

    def splitter(self, vocabulary: Vocabulary) -> ThinkingSplitter:
        """A fresh splitter for the tokens of one output."""
        special = vocabulary.special_tokens
        return ThinkingSplitter(self, special.get(self.open), special.get(self.close))


class ThinkingSplitter:
    """Tells thinking from output, token by token."""

    def __init__(self, thinking: Thinking, open_id: int | None, close_id: int | None) -> None:
        self._open = b"" if open_id is not None or thinking.opened else thinking.open.encode()
        self._close = thinking.close.encode() if close_id is None else None
        self._open_id = open_id
        self._close_id = close_id
        self._held = b""
        self._state = "inside" if thinking.opened else "before"

    def split(self, token_id: int, data: bytes) -> tuple[bytes, bytes]:
        """The bytes of thinking and of output that a token releases; tags are left out."""
        if self._state == "before":
            if self._open_id is not None:
                if token_id == self._open_id:
                    self._state = "inside"
                    return b"", b""
                self._state = "output"
                return b"", data
            self._held += data
            if self._held.startswith(self._open):
                self._state = "inside"
                data, self._held = self._held[len(self._open) :], b""
            elif self._open.startswith(self._held):
                return b"", b""
            else:
                self._state = "output"
                data, self._held = self._held, b""
        if self._state == "inside":
            return self._inside(token_id, data)
        if self._state == "blanks":
            data = data.lstrip(b" \n")
            if data:
                self._state = "output"
        return b"", data

    def _inside(self, token_id: int, data: bytes) -> tuple[bytes, bytes]:
        if self._close is None:
            if token_id == self._close_id:
                self._state = "blanks"
            return data, b""
        text = self._held + data
        words, tag, rest = text.partition(self._close)
        if tag:
            self._held = b""
            rest = rest.lstrip(b" \n")
            self._state = "output" if rest else "blanks"
            return words, rest
        kept = max((n for n in range(1, len(self._close)) if text.endswith(self._close[:n])), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept], b""
