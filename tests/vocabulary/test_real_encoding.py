"""encode: what the real tokenizers write for a text, without special tokens, and never another text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grammask.engine.vocabulary import Vocabulary


@pytest.mark.parametrize("name", ["llama3_1", "qwen3", "gptoss", "gemma3", "deepseek_v3", "smollm2"])
def test_as_the_library_does(
    name: str,
    tokenizer_path: Callable[[str], Path],
    real_vocabulary: Callable[[str], Vocabulary],
    corpus: dict[str, str],
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(tokenizer_path(name)))
    vocabulary = real_vocabulary(name)
    for language, text in corpus.items():
        assert vocabulary.encode(text) == library.encode(text, add_special_tokens=False).ids, language
    for special in vocabulary.special_tokens:
        text = f"a{special}b"
        ids = vocabulary.encode(text)
        assert not set(ids) & set(vocabulary.special_tokens.values())
        assert vocabulary.decode(ids) == text.encode()


def test_plain_added_tokens(real_vocabulary: Callable[[str], Vocabulary]) -> None:
    assert real_vocabulary("qwen3").encode("<tool_call>") == [151657]


@pytest.mark.parametrize("text", ["e\u0301", "A\u030a", "\u1100\u1161", "\u2126 ohm"])
def test_text_that_a_normalizer_would_change(text: str, real_vocabulary: Callable[[str], Vocabulary]) -> None:
    """Qwen composes characters (NFC) before it encodes; a forced text must stay as it is."""
    vocabulary = real_vocabulary("qwen3")
    assert vocabulary.decode(vocabulary.encode(text)) == text.encode()


def test_metaspace_character_is_not_a_space(real_vocabulary: Callable[[str], Vocabulary]) -> None:
    """Gemma writes spaces as U+2581; the character itself can only be spelled with byte tokens."""
    vocabulary = real_vocabulary("gemma3")
    ids = vocabulary.encode("a▁b")
    assert vocabulary.decode(ids) == "a▁b".encode()
    assert [vocabulary.token_bytes(i) for i in ids[1:4]] == [b"\xe2", b"\x96", b"\x81"]


def test_bytes_that_end_inside_a_character(real_vocabulary: Callable[[str], Vocabulary]) -> None:
    vocabulary = real_vocabulary("llama3_1")
    for data in ("שלום".encode()[:-1], b"\xf0\x9f\x91", b"abc \xff def", b""):
        assert vocabulary.decode(vocabulary.encode(data)) == data


def test_tiktoken_encoding_of_the_same_ranks(
    real_vocabulary: Callable[[str], Vocabulary], corpus: dict[str, str]
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    original = real_vocabulary("llama3_1")
    encoding = tiktoken.Encoding(
        name="llama3_1",
        pat_str=(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        mergeable_ranks={original.token_bytes(i): i for i in range(128_000)},
        special_tokens=original.special_tokens,
    )
    vocabulary = Vocabulary.from_tiktoken(encoding)
    assert vocabulary.fingerprint == original.fingerprint
    for text in [*corpus.values(), "say <|eot_id|> aloud"]:
        assert vocabulary.encode(text) == original.encode(text)
        assert vocabulary.decode(vocabulary.encode(text)) == text.encode()


def test_transformers_tokenizer_of_the_same_file(tokenizer_path: Callable[[str], Path], corpus: dict[str, str]) -> None:
    transformers = pytest.importorskip("transformers")
    path = tokenizer_path("smollm2")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path), eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>"]
    )
    vocabulary = Vocabulary.from_transformers(tokenizer, 49_280)
    assert vocabulary.size == 49_280
    assert vocabulary.padding_rows == list(range(49_152, 49_280))
    assert vocabulary.eos_token_ids == [2]
    same = Vocabulary.from_tokenizers(path, size=49_280, eos_token_ids=2)
    assert vocabulary.fingerprint == same.fingerprint
    for text in corpus.values():
        assert vocabulary.encode(text) == tokenizer.encode(text, add_special_tokens=False)
    tokenizer.add_tokens(["<plain>"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<apart>"]})
    grown = Vocabulary.from_transformers(tokenizer)
    assert grown.size == 49_154
    assert grown.token_bytes(49_152) == b"<plain>"
    assert grown.special_tokens["<apart>"] == 49_153
