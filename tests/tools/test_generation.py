"""Random schemas, random outputs through real tokenizers: all of them parse, and the arguments validate."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import grammask
from grammask.constraints.tools import FORMATS, ToolCalls
from support.tool_rows import VALUES, WRITTEN
from support.tools import PING, WEATHER, random_schema, random_tokens

STARTS = {"harmony": "<|channel|>analysis<|message|>I think</x>so<|end|><|start|>assistant<|channel|>commentary to="}
CASES = [("smollm2", name, 8) for name in FORMATS] + [
    ("qwen3", "hermes", 2),
    ("qwen3", "qwen3_coder", 2),
    ("gptoss", "harmony", 1),
    ("llama3_1", "llama3_pythonic", 2),
    ("llama3_1", "llama3_json", 2),
    ("deepseek_v3", "deepseek_v3", 2),
    ("deepseek_v3", "deepseek_v3_1", 2),
]
TRAINED_ON = [(tokenizer, format) for tokenizer, format, _ in CASES if tokenizer != "smollm2"]


@pytest.fixture(scope="module")
def vocabulary_of(tokenizer_path: Callable[[str], Path]) -> Callable[[str], grammask.Vocabulary]:
    known: dict[str, grammask.Vocabulary] = {}

    def load(name: str) -> grammask.Vocabulary:
        if name not in known:
            known[name] = grammask.Vocabulary.from_tokenizers(tokenizer_path(name))
        return known[name]

    return load


def encode(text: str, vocabulary: grammask.Vocabulary) -> list[int]:
    """Tokens of a text in which names of special tokens stand for the tokens."""
    names = sorted(vocabulary.special_tokens, key=len, reverse=True)
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text)
    tokens = []
    for part in parts:
        special = vocabulary.special_tokens.get(part)
        tokens += vocabulary.encode(part) if special is None else [special]
    return tokens


def validator(schema: Any) -> Any:
    """Numbers that are too large for a float are decimals here."""
    jsonschema = pytest.importorskip("jsonschema")

    def is_integer(_: Any, value: Any) -> bool:
        return not isinstance(value, bool) and isinstance(value, (int, float, Decimal)) and value == value // 1

    checker = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer)
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=checker)(schema)


@pytest.mark.parametrize(("tokenizer", "format", "seeds"), CASES)
def test_what_is_generated_parses_and_validates(
    vocabulary_of: Callable[[str], grammask.Vocabulary], tokenizer: str, format: str, seeds: int
) -> None:
    vocabulary = vocabulary_of(tokenizer)
    seen = 0
    for seed in range(seeds):
        generator = random.Random(seed)
        schema = random_schema(generator)
        if format == "llama3_pythonic":
            schema = json.loads(json.dumps(schema, ensure_ascii=False).replace("é", "e"))
        calls = ToolCalls(
            [{"name": "save_page", "parameters": schema}, PING],
            format,
            choice="required" if seed % 3 else "save_page",
            parallel=2,
            whitespace=generator.choice(["flexible", "compact", "python"]),  # type: ignore[arg-type]
            property_order=generator.choice(["schema", "any"]),
        )
        compiled = grammask.compile(calls, vocabulary)
        for _ in range(2):
            tokens = random_tokens(compiled, generator, encode(STARTS.get(format, ""), vocabulary))
            read = calls.parse(tokens, vocabulary)
            assert 1 <= len(read) <= 2
            for call in read:
                if call.name == "save_page":
                    seen += 1
                    validator(schema).validate(call.arguments)
                else:
                    assert call.arguments == {}
    assert seen or seeds < 8


@pytest.mark.parametrize(("tokenizer", "format"), TRAINED_ON)
def test_values_that_look_like_markers_stay_text(
    vocabulary_of: Callable[[str], grammask.Vocabulary], tokenizer: str, format: str
) -> None:
    vocabulary = vocabulary_of(tokenizer)
    calls = ToolCalls([WEATHER, PING], format, choice="required")
    compiled = grammask.compile(calls, vocabulary)
    before, placeholder, after = re.split("(RAW|JSON)", WRITTEN[format])
    for value in VALUES:
        typed = value if placeholder == "RAW" else json.dumps(value, ensure_ascii=False)
        tokens = [*encode(before, vocabulary), *vocabulary.encode(typed), *encode(after, vocabulary)]
        matcher = compiled.matcher()
        assert all(map(matcher.accept, tokens)), value
        assert matcher.is_complete
        (call,) = calls.parse(tokens, vocabulary)
        assert call.arguments == {"city": value}
