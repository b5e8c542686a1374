"""The table that every reader fills: for each token id the bytes that it adds to the output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_SIZE = 1 << 21
"""Largest number of token ids (2,097,152). The largest vocabularies in use have about 262,000; an id beyond this limit
is a broken file, and a table for it would only eat memory."""


class VocabularyError(ValueError):
    """A tokenizer that cannot be read, or whose tokens cannot be given exact bytes.

    Attributes:
        message: what is wrong.
        hint: what to do about it, or None.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)


@dataclass(frozen=True)
class TokenTable:
    """Token bytes by id.

    Attributes:
        tokens: index is the token id; None (or no bytes at all) for ids that never match text: special tokens and ids
            without a token.
        special_tokens: name -> id of the tokens that only a grammar that asks for them by name may use.
        eos_token_ids: the end-of-text tokens that the source declares, or that are known by their name. May be empty.
        size: rows of the logits if the source knows it, else None.
    """

    tokens: list[bytes | None]
    special_tokens: dict[str, int] = field(default_factory=dict)
    eos_token_ids: tuple[int, ...] = ()
    size: int | None = None


def checked_id(value: object, what: str) -> int:
    """``value`` as a token id.

    Raises:
        VocabularyError: not an integer (booleans are none), negative, or not below MAX_SIZE.
    """
    if type(value) is not int:
        index = getattr(value, "__index__", None)  # numpy integers
        if index is None or isinstance(value, bool):
            raise VocabularyError(f"{what} must be an integer, not {_shown(value)}")
        value = int(index())
    if not 0 <= value < MAX_SIZE:
        raise VocabularyError(f"{what} is {_shown(value)}: token ids must lie between 0 and {MAX_SIZE - 1}")
    return value


def checked_ids(values: object, what: str) -> tuple[int, ...]:
    """``values`` as distinct token ids, in their order. A lone id counts as a list of one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return (checked_id(values, what),)
    return tuple(dict.fromkeys(checked_id(value, what) for value in values))


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # integers beyond the interpreter's limit on digits
        text = "a very large integer"
    return text if len(text) <= 60 else text[:57] + "..."
