"""What a vocabulary keeps apart never shows up in a mask; what it holds as text does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import grammask
from grammask.engine.vocabulary import Vocabulary


def _is_start_of_text(token: bytes) -> bool:
    """Whether the bytes begin some UTF-8 text: they decode, but for a character that is still to be completed.

    The decoder's "unexpected end of data" is that of such a character alone: it has seen no byte that cannot follow.
    """
    try:
        token.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_mask_of_any_text(name: str, tokenizer_path: Callable[[str], Path]) -> None:
    vocabulary = Vocabulary.from_tokenizers(tokenizer_path(name), size=262_208)
    matcher = grammask.compile(grammask.Regex(r"(?s).*"), vocabulary).matcher()
    tokens = [vocabulary.token_bytes(token_id) for token_id in range(vocabulary.size)]
    expected = {token_id for token_id, token in enumerate(tokens) if token is not None and _is_start_of_text(token)}
    allowed = set(matcher.allowed_token_ids().tolist())
    assert allowed == expected | set(vocabulary.eos_token_ids)
    assert not allowed & set(vocabulary.padding_rows)
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    matcher.fill_mask(mask)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == allowed


def test_names_of_special_tokens_are_text_like_any_other(tokenizer_path: Callable[[str], Path]) -> None:
    vocabulary = Vocabulary.from_tokenizers(tokenizer_path("smollm2"))
    matcher = grammask.compile(grammask.Choice(["<|im_start|>"]), vocabulary).matcher()
    assert vocabulary.special_tokens["<|im_start|>"] not in matcher.allowed_token_ids()
    assert not matcher.accept(vocabulary.special_tokens["<|im_start|>"])
    for token_id in vocabulary.encode("<|im_start|>"):
        assert matcher.accept(token_id)
    assert matcher.is_complete
    assert matcher.allowed_token_ids().tolist() == sorted(vocabulary.eos_token_ids)
