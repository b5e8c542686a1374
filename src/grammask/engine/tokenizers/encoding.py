"""The tokenizer's own encoding of a text, never with special tokens.

A library's ``encode`` may change the text: a normalizer composes characters (NFC), a prefix space is put before the
first word, white space beside an added token is dropped. A constraint needs tokens that spell exactly the text that it
forces, so the result is checked against the bytes; where it differs, the text is encoded once more behind a character
that never joins with what follows, which is also how the text looks in the middle of an output.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

    import tokenizers

TextEncoder = Callable[[str], "Sequence[int] | None"]
"""Token ids of a text without special tokens, None if the tokenizer cannot encode it."""

_CONTEXTS = ("", "\x02", "\n")


class EncoderUnavailable(Exception):
    """The tokenizer that would encode cannot be loaded; says why."""


class HuggingFaceEncoder:
    """Encodes with the tokenizers library, loaded at the first call.

    load: makes a Tokenizer of our own: its settings are changed, so it must not be one that others use. Whatever it
        raises is raised as EncoderUnavailable, by every later call too.
    """

    def __init__(self, load: Callable[[], tokenizers.Tokenizer]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._tokenizer: tokenizers.Tokenizer | None = None
        self._failure: str | None = None

    def __call__(self, text: str) -> Sequence[int] | None:
        tokenizer = self._tokenizer or self._loaded()
        try:
            ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        except Exception:  # the library raises no other: a text outside a vocabulary without an unknown token
            return None
        return ids

    def _loaded(self) -> tokenizers.Tokenizer:
        with self._lock:
            if self._tokenizer is None and self._failure is None:
                try:
                    tokenizer = self._load()
                except Exception as error:  # no library, no file, or a file that the library refuses
                    self._failure = f"{type(error).__name__}: {error}"
                else:
                    tokenizer.encode_special_tokens = True  # the names of special tokens are ordinary text
                    tokenizer.no_truncation()
                    tokenizer.no_padding()
                    self._tokenizer = tokenizer
            if self._tokenizer is None:
                raise EncoderUnavailable(self._failure)
            return self._tokenizer


class TiktokenEncoder:
    """Encodes with tiktoken."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    def __call__(self, text: str) -> Sequence[int]:
        return self._encoding.encode_ordinary(text)


def encode_exactly(text: str, encoder: TextEncoder, token_bytes: Callable[[int], bytes | None]) -> list[int] | None:
    """Tokens that spell exactly ``text``, as the tokenizer would write them, or None if it has no such tokens.

    Raises:
        EncoderUnavailable: by the encoder.
    """
    wanted = text.encode()
    for context in _CONTEXTS:
        ids = encoder(context + text)
        if ids is None:
            return None
        spelled = [token_bytes(token_id) for token_id in ids]
        start = _start_of(wanted, spelled, context)
        if start is not None:
            return list(ids[start:])
    return None


def _start_of(wanted: bytes, spelled: list[bytes | None], context: str) -> int | None:
    """The index from which the tokens spell exactly ``wanted``; without a context that must be all of them."""
    if not context:
        return 0 if None not in spelled and b"".join(t for t in spelled if t is not None) == wanted else None
    missing = len(wanted)
    start = len(spelled)
    while missing > 0 and start > 0:
        token = spelled[start - 1]
        if token is None:
            return None
        start -= 1
        missing -= len(token)
    if missing != 0 or b"".join(t for t in spelled[start:] if t is not None) != wanted:
        return None
    return start
