"""Small tokenizers to build on, and vocabularies of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grammask.engine.vocabulary import Vocabulary

CORPUS = {
    "hebrew": "שלום עולם! בְּרֵאשִׁית בָּרָא אֱלֹהִים, ״מסמך״ מס׳ 12 — תודה רבה.",
    "persian": "می\u200cخواهم کتاب\u200cهایم را بخوانم؛ نمی\u200cدانم «چه» می\u200cشود. ۱۲۳۴ ريال",
    "turkish": "İstanbul'da ıslak ağaç, çığ düştü; ŞÖFÖR GÜLÜMSEDİ. Iğdır, I ı İ i",
    "chinese": "今天天气很好，我们去公园吧。「引号」与『书名』：䶮、𠮷野家、㐂。",
    "french": "L’été dernier, « Noël » à la crèche : œuf, garçon, où ? Ça coûte 12 345,67 €…",
    "english": "The quick brown fox doesn't jump; it's 3.14159 o'clock -- \"quoted\".\n\n\tNext   line  ",
    "code": "def f(x: int) -> dict[str, int]:\n    return {'a\\u00e9': x ** 2, \"b\": 0xFF}  # λ\r\n\tif x && y {}",
    "json": '{"name": "Zoë", "tags": ["a", "b\\n"], "n": -1.5e+10, "nested": {"x": null, "y": [true, false, {}]}}',
    "emoji": "👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 🇹🇷🇮🇷🇮🇱 👍🏽 ❤️ 🧑🏿\u200d🚀 ☺ 1️⃣",
    "controls": "\x00\x01\x07\x1b[0m\x7f\x85\u2028\u2029\ufeff\ufffd\U0010ffff\u200b\u200d\u200e",
    "spaces": " a  b   c    d        e\t\tf\n\n\ng \n h\r\n\u00a0\u3000 ",
}


@pytest.fixture(scope="session")
def corpus() -> dict[str, str]:
    """Text in many scripts, with joiners, code, emoji, controls and white space; composed (NFC) as Qwen writes it."""
    return {**CORPUS, "everything": "\n".join(CORPUS.values())}


@pytest.fixture(scope="session")
def real_vocabulary(tokenizer_path: Callable[[str], Path]) -> Callable[[str], Vocabulary]:
    """The vocabulary of a real tokenizer.json by name, read once."""
    return cache(lambda name: Vocabulary.from_tokenizers(tokenizer_path(name)))


@pytest.fixture
def byte_level_json() -> dict[str, Any]:
    """A byte-level tokenizer: 256 bytes, two merges, one special and one plain added token."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    vocab = {alphabet[byte]: byte for byte in range(256)} | {"he": 256, "Ġt": 257}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return tokenizer_json(
        model={**_BPE, "vocab": vocab, "merges": ["h e", "Ġ t"]},
        pre_tokenizer=byte_level,
        decoder=byte_level,
        added_tokens=[added(258, "<|endoftext|>", special=True), added(259, "<tool>")],
    )


@pytest.fixture
def sentencepiece_json() -> dict[str, Any]:
    """A tokenizer in the manner of Llama 2: ``▁`` for spaces, one put before the text, and byte tokens."""
    specials = ["<unk>", "<s>", "</s>"]
    vocab = {name: index for index, name in enumerate(specials)}
    vocab |= {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    for piece in ("▁", "a", "b", "▁a", "ab", "▁ab", "é", "▁▁"):
        vocab[piece] = len(vocab)
    return tokenizer_json(
        model={
            **_BPE,
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocab,
            "merges": ["▁ a", "a b", "▁a b", "▁ ▁"],
        },
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        decoder={
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        added_tokens=[added(index, name, special=True) for index, name in enumerate(specials)],
    )


_BPE: dict[str, Any] = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
}


def tokenizer_json(**parts: Any) -> dict[str, Any]:
    empty = dict.fromkeys(["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"])
    return {"version": "1.0", **empty, "added_tokens": [], **parts}


def added(token_id: int, content: str, *, special: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return {"id": token_id, "content": content, **flags}
