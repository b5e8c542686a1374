"""GGUF metadata, written by the gguf package and read here; and what happens when such a file is broken."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.engine.vocabulary import Vocabulary, VocabularyError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

LLAMA = [
    ("<unk>", UNKNOWN, None),
    ("<s>", CONTROL, None),
    ("</s>", CONTROL, None),
    ("<0x00>", BYTE, b"\x00"),
    ("<0xE2>", BYTE, b"\xe2"),
    ("▁", NORMAL, b" "),
    ("▁the▁", NORMAL, b" the "),
    ("é", NORMAL, "é".encode()),
    ("<0x41>", NORMAL, b"<0x41>"),
    ("▁▁", USER_DEFINED, "▁▁".encode()),
    ("[PAD1]", UNUSED, None),
]
GPT2 = [
    ("<|endoftext|>", CONTROL, None),
    ("a", NORMAL, b"a"),
    ("Ġé", NORMAL, b" \xe9"),
    ("é", USER_DEFINED, "é".encode()),
    ("[PAD1]", UNUSED, None),
]


def write(path: Path, model: str, tokens: list[tuple[str, int, Any]], endianess: str = "LITTLE", **extra: Any) -> Path:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(path), "llama", endianess=gguf.GGUFEndian[endianess])
    writer.add_uint32("llama.context_length", 32)
    writer.add_array("general.tags", ["one", "two"])
    writer.add_array("general.numbers", [1.5, 2.5])
    writer.add_tokenizer_model(model)
    writer.add_token_list([name for name, _, _ in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kind for _, kind, _ in tokens])
    writer.add_token_merges(["a b", "b c"])
    for key, value in extra.items():
        writer.add_uint32(f"tokenizer.ggml.{key}", value)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_chat_template("{{ messages }}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("endianess", ["LITTLE", "BIG"])
@pytest.mark.parametrize(("model", "tokens"), [("llama", LLAMA), ("t5", LLAMA), ("gpt2", GPT2)])
def test_token_types(model: str, tokens: list[tuple[str, int, Any]], endianess: str, tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_gguf(write(tmp_path / "model.gguf", model, tokens, endianess))
    assert vocabulary.size == len(tokens)
    assert [vocabulary.token_bytes(i) for i in range(len(tokens))] == [token for _, _, token in tokens]
    assert vocabulary.special_tokens == {n: i for i, (n, kind, _) in enumerate(tokens) if kind in (UNKNOWN, CONTROL)}
    assert vocabulary.padding_rows == [len(tokens) - 1]
    assert vocabulary.eos_token_ids == [2 if tokens is LLAMA else 0]


def test_declared_ends_come_first(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", "llama", LLAMA, eos_token_id=1, eot_token_id=7)
    assert Vocabulary.from_gguf(path).eos_token_ids == [1, 7, 2]
    assert Vocabulary.from_gguf(path).token_bytes(7) is None
    assert Vocabulary.from_gguf(path, eos_token_ids=[2]).token_bytes(7) == "é".encode()
    assert Vocabulary.from_gguf(path, size=16).padding_rows == [10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize(
    ("model", "tokens", "extra", "message"),
    [
        ("bert", LLAMA, {}, "WordPiece"),
        ("rwkv", LLAMA, {}, "'rwkv' are not supported"),
        ("no_vocab", LLAMA, {}, "holds no tokens"),
        ("llama", LLAMA, {"eos_token_id": 99}, "declares the end token 99, but has 11 tokens"),
        ("llama", [("<0xZZ>", BYTE, None)], {}, "the byte token 0 is named '<0xZZ>'"),
        ("llama", [("a", 77, None)], {}, "token 0 has the unknown type 77"),
        ("llama", [("a", NORMAL, None)], {}, "does not say which tokens end a text"),
    ],
)
def test_refused(model: str, tokens: Any, extra: dict[str, int], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", model, tokens, **extra)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_gguf(path)


def test_truncated_at_any_byte(tmp_path: Path) -> None:
    content = write(tmp_path / "model.gguf", "llama", LLAMA).read_bytes()
    path = tmp_path / "cut.gguf"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(VocabularyError):
            Vocabulary.from_gguf(path)


def test_changed_bytes_are_read_or_refused(tmp_path: Path) -> None:
    content = write(tmp_path / "model.gguf", "llama", LLAMA).read_bytes()
    path = tmp_path / "changed.gguf"

    @given(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=4))
    def check(changes: list[tuple[int, int]]) -> None:
        changed = bytearray(content)
        for place, value in changes:
            changed[place] = value
        path.write_bytes(changed)
        try:
            vocabulary = Vocabulary.from_gguf(path)
        except VocabularyError:
            return
        assert vocabulary.size == len(LLAMA)

    check()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


MODEL = pair("tokenizer.ggml.model", 8, string("llama"))
TOKENS = "tokenizer.ggml.tokens"
STRINGS = struct.pack("<I", 8)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([MODEL], r"has no tokenizer\.ggml\.model or no"),
        ([], r"has no tokenizer\.ggml\.model or no"),
        ([MODEL, pair(TOKENS, 9, STRINGS + struct.pack("<Q", 1 << 62))], "declares 4611686018427387904 tokens"),
        ([MODEL, pair(TOKENS, 9, STRINGS + struct.pack("<Q", 1000))], "is cut off"),
        ([MODEL, pair(TOKENS, 9, STRINGS + struct.pack("<Q", 0))], "must be strings, at least one"),
        ([MODEL, pair(TOKENS, 9, struct.pack("<IQi", 5, 1, 7))], "must be strings, at least one"),
        ([MODEL, pair(TOKENS, 9, struct.pack("<IQ", 4, 1 << 62))], "declares 4611686018427387904 tokens"),
        ([MODEL, pair(TOKENS, 9, STRINGS + struct.pack("<Q", 1) + string(b"\xff"))], "not UTF-8"),
        ([MODEL, pair(TOKENS, 8, string("a"))], r"has no tokenizer\.ggml\.model or no"),
        ([pair("x", 8, struct.pack("<Q", (1 << 64) - 1))], "is cut off"),
        ([pair("x", 9, STRINGS + struct.pack("<QQ", 2, (1 << 64) - 1))], "is cut off"),
        ([pair("x", 9, struct.pack("<IQ", 12, 1 << 61))], "is cut off"),
        ([pair("x", 9, struct.pack("<IQ", 9, 1))], "array of unknown item type 9"),
        ([pair("x", 13, b"")], "value of unknown type 13"),
    ],
)
def test_hostile_metadata(pairs: list[bytes], message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_gguf(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a GGUF file"),
        (b'{"model": {}}', "is not a GGUF file"),
        (b"GGUF", "is cut off"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version other than 2 and 3"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 63), "is cut off"),
    ],
)
def test_not_gguf(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_gguf(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Vocabulary.from_gguf(tmp_path / "model.gguf")
