"""What a Hugging Face decoder makes of each token, as bytes.

A ``tokenizer.json`` stores tokens as strings in an encoding of its own; its ``decoder`` says how a list of such strings
becomes text again. The bytes of a token are well defined exactly when that is a concatenation: when every token adds
the same bytes wherever it stands. Two families do:

* **Byte-level** (GPT-2, Llama 3, Qwen, ...): each character stands for one byte, by the printable alphabet of GPT-2. A
  token with any character outside that alphabet (an added token) stands for its own UTF-8 bytes.
* **Characters** (SentencePiece: Llama 2, Mistral, Gemma, T5): the token is its own text, with ``▁`` for a space, and
  ``<0xNN>`` for one byte where the decoder has a byte fallback.

A decoder that drops a space at the very start of the text (Metaspace, Strip after Fuse) still belongs to them: what a
model generates continues a prompt, and there the space is kept. Every other decoder is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from grammask.engine.tokenizers.table import VocabularyError

TokenReader = Callable[[list[str]], list[bytes]]

_MAX_STEPS = 64
_MAX_NESTING = 16
_OUTSIDE = 256
# "+F" is what Rust's integer parser, and with it the tokenizers library, also takes for two hexadecimal digits.
_BYTE_TOKEN = re.compile(rb"<0x(?:[0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")

_REFUSED = {
    "WordPiece": "its decoder joins words with spaces and cleans up around punctuation",
    "BPEDecoder": "its decoder turns the end-of-word suffix into a space except at the end of the text",
    "CTC": "its decoder merges repeated tokens",
}


def _byte_level_alphabet() -> NDArray[np.uint16]:
    """Code point -> byte of GPT-2's printable alphabet; 256 for others, for which the last entry stands too."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    table = np.full(256 + len(others) + 1, _OUTSIDE, dtype=np.uint16)
    table[printable] = printable
    table[256:-1] = others
    return table


_ALPHABET = _byte_level_alphabet()


def byte_level(tokens: list[str]) -> list[bytes]:
    """The bytes of tokens written in GPT-2's printable alphabet.

    All tokens are translated as one array of code points and cut apart again: a loop over characters would take most of
    the time of loading a vocabulary.
    """
    code_points = np.frombuffer("".join(tokens).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    values = _ALPHABET[np.minimum(code_points, len(_ALPHABET) - 1)]
    data = values.astype(np.uint8).tobytes()
    ends = np.cumsum(np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens)))
    bounds = [0, *ends.tolist()]
    result = [data[start:end] for start, end in pairwise(bounds)]
    for index in np.unique(np.searchsorted(ends, np.flatnonzero(values == _OUTSIDE), side="right")).tolist():
        result[index] = _utf8(tokens[index])
    return result


def characters(tokens: list[str], replacements: list[tuple[str, str]], byte_fallback: bool) -> list[bytes]:
    """The bytes of tokens that are their own text, after literal replacements and, if asked, byte tokens."""
    if not tokens:
        return []
    joined_with = _unused_character(tokens, replacements)
    joined = joined_with.join(tokens)
    for old, new in replacements:
        joined = joined.replace(old, new)
    result = _utf8(joined).split(joined_with.encode())
    if byte_fallback:
        for index, token in enumerate(result):
            if len(token) == 6 and _BYTE_TOKEN.fullmatch(token):
                result[index] = bytes([int(token[3:5], 16)])
    return result


def reader_for(decoder: object) -> TokenReader:
    """The reader for the ``decoder`` of a tokenizer.json (parsed JSON).

    Raises:
        VocabularyError: the decoder is malformed, or its tokens have no bytes of their own.
    """
    if decoder is None:
        raise VocabularyError(
            "the tokenizer has no decoder: its tokens are joined with spaces and have no bytes of their own",
            hint="set tokenizer.decoder (ByteLevel for byte-level BPE) and save again, or use Vocabulary.from_tokens",
        )
    steps = list(islice(_steps(decoder, 0), _MAX_STEPS + 1))
    if len(steps) > _MAX_STEPS:
        raise VocabularyError(f"the tokenizer's decoder has more than {_MAX_STEPS} steps")
    if [kind for kind, _ in steps if kind != "Fuse"] == ["ByteLevel"]:
        return byte_level

    replacements: list[tuple[str, str]] = []
    byte_fallback = fused = False
    for kind, step in steps:
        if kind == "Fuse":
            fused = True
        elif kind == "ByteFallback" and not fused and not byte_fallback:
            byte_fallback = True
        elif kind in ("Replace", "Metaspace") and not fused and not byte_fallback:
            replacements.append(_replacement(kind, step))
        elif kind == "Strip" and fused and step.get("stop") == 0:
            pass  # touches the start of the whole text only
        else:
            raise _refusal(kind, [name for name, _ in steps])
    return lambda tokens: characters(tokens, replacements, byte_fallback)


def _steps(decoder: object, depth: int) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The decoder's steps in order, nested sequences flattened."""
    if not isinstance(decoder, Mapping) or not isinstance(kind := decoder.get("type"), str):
        raise VocabularyError(f"a decoder must be an object with a type, not {type(decoder).__name__}")
    if kind != "Sequence":
        yield kind, decoder
        return
    inner = decoder.get("decoders")
    if not isinstance(inner, list):
        raise VocabularyError("a decoder of type Sequence must have a list of decoders")
    if depth >= _MAX_NESTING:
        raise VocabularyError(f"the tokenizer's decoders are nested deeper than {_MAX_NESTING}")
    for step in inner:
        yield from _steps(step, depth + 1)


def _replacement(kind: str, step: Mapping[str, object]) -> tuple[str, str]:
    if kind == "Metaspace":
        old, new = step.get("replacement"), " "
    else:
        pattern, content = step.get("pattern"), step.get("content")
        if isinstance(pattern, Mapping) and "Regex" in pattern:
            raise VocabularyError(
                "the tokenizer's decoder replaces by a regular expression, which may depend on the neighbouring tokens",
                hint="use Vocabulary.from_tokens with bytes that you know to be right",
            )
        old = pattern.get("String") if isinstance(pattern, Mapping) else None
        if not isinstance(content, str):
            raise VocabularyError("a decoder of type Replace must have a string as content")
        new = content
    if not isinstance(old, str) or not old:
        raise VocabularyError(f"a decoder of type {kind} must name the text that it replaces")
    return old, new


def _refusal(kind: str, names: list[str]) -> VocabularyError:
    reason = _REFUSED.get(kind, f"its decoder has the step {kind}, which is not known to work token by token here")
    return VocabularyError(
        f"the tokens of this tokenizer have no bytes of their own: {reason} (decoder: {' > '.join(names)})",
        hint="use a model with a byte-level or SentencePiece tokenizer, or Vocabulary.from_tokens with bytes that you "
        "know to be right",
    )


def _unused_character(tokens: list[str], replacements: list[tuple[str, str]]) -> str:
    """A character that no token and no replacement holds, to join the tokens with."""
    used = "".join([*tokens, *(old + new for old, new in replacements)])
    return next(character for character in map(chr, range(0x110000)) if character not in used)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 10) : error.start + 10]
        raise VocabularyError(f"a token holds a lone surrogate, which no text can hold: {around!a}") from None
