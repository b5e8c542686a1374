"""Which tokens end a generation.

The files beside a tokenizer say it (``generation_config.json``, ``tokenizer_config.json``, ``config.json``); where they
are absent, the special tokens with names that well-known model families use for it are taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grammask.engine.tokenizers.table import VocabularyError, checked_id, checked_ids

CONFIGURATION_FILES = ("generation_config.json", "tokenizer_config.json", "config.json")
"""The files that may lie beside a tokenizer.json and are read with it."""

KNOWN_NAMES = (
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<turn|>",
    "<｜end▁of▁sentence｜>",
    "<|END_OF_TURN_TOKEN|>",
    "<|eos|>",
    "[EOS]",
)

_NOT_AN_END_BESIDE = {"<|end|>": "<|return|>"}
"""In the harmony format ``<|end|>`` closes a message after which the model goes on; ``<|return|>`` closes the turn."""


def known_end_tokens(special_tokens: Mapping[str, int]) -> tuple[int, ...]:
    """The ids of special tokens that are known by name to end a generation, ascending."""
    return tuple(
        sorted(
            special_tokens[name]
            for name in KNOWN_NAMES
            if name in special_tokens and _NOT_AN_END_BESIDE.get(name) not in special_tokens
        )
    )


def declared_end_tokens(folder: Path, id_of: Callable[[str], int | None]) -> tuple[int, ...]:
    """The ids that the configuration files in ``folder`` declare as end of text.

    id_of: gives the id of a token by its name, None if there is no such token.

    ``generation_config.json`` and ``tokenizer_config.json`` are joined (the first names ids, the second a token);
    ``config.json`` counts only if neither says anything, since its value is often that of the base model.

    Raises:
        VocabularyError: a file is malformed, or names a token that the tokenizer does not have.
    """
    generation = read_object(folder / "generation_config.json").get("eos_token_id")
    found = [] if generation is None else list(checked_ids(generation, "eos_token_id in generation_config.json"))
    name = read_object(folder / "tokenizer_config.json").get("eos_token")
    if isinstance(name, Mapping):
        name = name.get("content")
    if name is not None:
        token_id = id_of(name) if isinstance(name, str) else None
        if token_id is None:
            raise VocabularyError(
                f"tokenizer_config.json declares the eos_token {name!r}, which the tokenizer does not have",
                hint="correct the file, or pass eos_token_ids",
            )
        found.append(token_id)
    if not found:
        model = _text_config(folder).get("eos_token_id")
        found = [] if model is None else list(checked_ids(model, "eos_token_id in config.json"))
    return tuple(dict.fromkeys(found))


def declared_size(folder: Path) -> int | None:
    """The rows of the logits that ``config.json`` in ``folder`` declares, None if it says nothing."""
    size = _text_config(folder).get("vocab_size")
    return None if size is None else checked_id(size, "vocab_size in config.json")


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is no such file.

    Raises:
        VocabularyError: the file does not hold a JSON object.
    """
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} must hold a JSON object")
    return value


def _text_config(folder: Path) -> dict[str, Any]:
    config = read_object(folder / "config.json")
    inner = config.get("text_config")  # models with several modalities
    return {**config, **inner} if isinstance(inner, dict) else config
