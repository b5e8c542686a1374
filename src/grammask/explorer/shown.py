"""Tokens and numbers as JSON values for the page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary


class TokenNames:
    """What each token of a vocabulary is called on the page."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._special = {token_id: name for name, token_id in vocabulary.special_tokens.items()}

    def text(self, token_id: int) -> str:
        """A token's text: bytes that are no UTF-8 by themselves as ``\\xNN``, special tokens by their name."""
        data = self._vocabulary.token_bytes(token_id)
        if data is None:
            return self._special.get(token_id, f"[{token_id}]")
        return data.decode("utf-8", "backslashreplace")

    def token(self, token_id: int) -> dict[str, Any]:
        """``id``, ``text``, and ``special`` for tokens that are no text."""
        shown: dict[str, Any] = {"id": int(token_id), "text": self.text(token_id)}
        if self._vocabulary.token_bytes(token_id) is None:
            shown["special"] = True
        return shown


def number(value: float | None) -> float | None:
    """A number that JSON can hold: what is not finite is None."""
    return None if value is None or not math.isfinite(value) else float(value)
