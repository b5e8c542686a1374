"""``grammask tokens``: the allowed tokens of a real tokenizer file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grammask import Vocabulary


@pytest.fixture(scope="module")
def tokenizer(tokenizer_path: Callable[[str], Path]) -> Path:
    return tokenizer_path("smollm2")


def test_tokens_after_a_prefix(run: Callable[..., Any], tokenizer: Path) -> None:
    result = run(
        "tokens", "--tokenizer", str(tokenizer), "--regex", "(yes|no), [a-z]{3}", "--prefix", "ye", "--json-output"
    )
    assert result.code == 0
    report = json.loads(result.out)
    vocabulary = Vocabulary.from_tokenizers(tokenizer)
    possible = ["s", "s,", "s, "] + [f"s, {letter}" for letter in "abc"]
    expected = [
        {"id": token, "text": data.decode()}
        for token in range(vocabulary.size)
        if (data := vocabulary.token_bytes(token)) is not None and data.decode(errors="replace") in possible
    ]
    assert report["allowed"] == expected
    assert report["complete"] is False
    assert report["prefix"] == "ye"


def test_listing_is_limited(run: Callable[..., Any], tokenizer: Path) -> None:
    result = run("tokens", "--tokenizer", str(tokenizer), "--regex", "[a-z]*", "--limit", "3")
    lines = result.out.splitlines()
    assert len(lines) == 3
    vocabulary = Vocabulary.from_tokenizers(tokenizer)
    for line in lines:
        token, text = line.split("\t")
        data = vocabulary.token_bytes(int(token))
        assert text == ("(end of text)" if data is None else f"'{data.decode()}'")
    assert "the first 3 shown" in result.err
    assert "the text so far is complete" in result.err


def test_an_impossible_prefix(run: Callable[..., Any], tokenizer: Path) -> None:
    result = run("tokens", "--tokenizer", str(tokenizer), "--regex", "[0-9]+x", "--prefix", "12y")
    assert (result.code, result.out) == (1, "")
    assert "byte 2 (line 1, column 3) found 'y', expected '0' to '9', 'x'" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--regex", "a"], 2, "give one of --tokenizer FILE and --model NAME"),
        (["--regex", "a", "--tokenizer", "a", "--model", "b"], 2, "give one of"),
        (["--regex", "a", "--tokenizer", "absent.json"], 4, "there is no file or folder absent.json"),
        (["--regex", "a", "--tokenizer", "record.json"], 4, "cannot read the tokenizer of 'record.json'"),
        (["--tokenizer", "record.json"], 2, "no constraint"),
    ],
)
def test_errors(run: Callable[..., Any], arguments: list[str], code: int, message: str) -> None:
    result = run("tokens", *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
