"""tokenizer.json: small files of each family, what is kept apart, what is refused, and broken files."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grammask.engine.vocabulary import Vocabulary, VocabularyError

Json = dict[str, Any]


# -- families


def test_byte_level(byte_level_json: Json) -> None:
    vocabulary = Vocabulary.from_tokenizers(byte_level_json)
    assert [vocabulary.token_bytes(i) for i in range(256)] == [bytes([byte]) for byte in range(256)]
    assert vocabulary.token_bytes(256) == b"he"
    assert vocabulary.token_bytes(257) == b" t"
    assert vocabulary.token_bytes(258) is None
    assert vocabulary.special_tokens == {"<|endoftext|>": 258}
    assert vocabulary.eos_token_ids == [258]
    assert vocabulary.token_bytes(259) == b"<tool>"


@pytest.mark.parametrize("content", ["<think>", "  ", "안녕", "｜▁｜", "née", "é", "Ġx", "\u200d"])
def test_added_tokens_read_as_the_library_decodes_them(content: str, byte_level_json: Json) -> None:
    """Also where that surprises: a token of letters that are all in GPT-2's alphabet is read by that alphabet."""
    tokenizers = pytest.importorskip("tokenizers")
    entry = {**byte_level_json["added_tokens"][-1], "id": 260, "content": content}
    if content in byte_level_json["model"]["vocab"]:
        entry["id"] = byte_level_json["model"]["vocab"][content]
    byte_level_json["added_tokens"].append(entry)
    library = tokenizers.Tokenizer.from_str(json.dumps(byte_level_json))
    token = Vocabulary.from_tokenizers(byte_level_json).token_bytes(entry["id"])
    assert token is not None
    assert token.decode(errors="replace") == library.decode([entry["id"]])


def test_sentencepiece(sentencepiece_json: Json) -> None:
    vocabulary = Vocabulary.from_tokenizers(sentencepiece_json)
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert vocabulary.eos_token_ids == [2]
    assert [vocabulary.token_bytes(3 + byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    pieces = [vocabulary.token_bytes(i) for i in range(259, vocabulary.size)]
    assert pieces == [b" ", b"a", b"b", b" a", b"ab", b" ab", "é".encode(), b"  "]


def test_a_leading_space_is_kept(sentencepiece_json: Json) -> None:
    """The library drops one space at the very start of a text; an output continues a prompt, so there it stays."""
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_str(json.dumps(sentencepiece_json))
    vocabulary = Vocabulary.from_tokenizers(sentencepiece_json)
    ids = [262, 264]
    assert library.decode(ids) == "a ab"
    assert vocabulary.decode(ids) == b" a ab"
    assert library.decode([260, *ids]) == "a a ab"
    assert vocabulary.decode([260, *ids]) == b"a a ab"


@pytest.mark.parametrize(
    "name", ["<0x41>", "<0xff>", "<0xfF>", "<0x+f>", "<0x1>", "<0xG1>", "<0x411>", "x<0x41>", "<0X41>"]
)
def test_byte_tokens_are_those_of_the_library(name: str, sentencepiece_json: Json) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    sentencepiece_json["model"]["vocab"] = {"<unk>": 0, "<s>": 1, "</s>": 2, name: 3}
    sentencepiece_json["model"]["merges"] = []
    library = tokenizers.Tokenizer.from_str(json.dumps(sentencepiece_json))
    token = Vocabulary.from_tokenizers(sentencepiece_json).token_bytes(3)
    assert token is not None
    assert token.decode(errors="replace") == library.decode([3])


@pytest.mark.parametrize(
    "decoder",
    [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
        {"type": "Sequence", "decoders": [{"type": "Metaspace", "replacement": "▁"}, {"type": "Fuse"}]},
    ],
)
def test_unigram_with_metaspace(decoder: Json, byte_level_json: Json) -> None:
    byte_level_json["model"] = {
        "type": "Unigram",
        "unk_id": 1,
        "vocab": [["</s>", 0.0], ["<unk>", 0.0], ["▁", -2.0], ["▁hi", -3.0], ["é", -4.5], ["<0x41>", -5]],
    }
    byte_level_json["decoder"] = decoder
    byte_level_json["added_tokens"] = [{"id": 0, "content": "</s>", "special": True}]
    vocabulary = Vocabulary.from_tokenizers(byte_level_json)
    assert vocabulary.special_tokens == {"</s>": 0, "<unk>": 1}
    assert [vocabulary.token_bytes(i) for i in range(2, 6)] == [b" ", b" hi", "é".encode(), b"<0x41>"]


def test_old_files_do_not_name_the_type_of_the_model(byte_level_json: Json) -> None:
    expected = Vocabulary.from_tokenizers(byte_level_json).fingerprint
    del byte_level_json["model"]["type"]
    assert Vocabulary.from_tokenizers(byte_level_json).fingerprint == expected


def test_ids_without_a_token_are_padding(byte_level_json: Json) -> None:
    del byte_level_json["model"]["vocab"]["he"]
    byte_level_json["model"]["merges"] = ["Ġ t"]
    byte_level_json["added_tokens"] = []
    vocabulary = Vocabulary.from_tokenizers(byte_level_json, size=260, eos_token_ids=[])
    assert vocabulary.padding_rows == [256, 258, 259]
    assert vocabulary.eos_token_ids == []


def test_sources_are_equal(byte_level_json: Json, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = json.dumps(byte_level_json)
    file = tmp_path / "tokenizer.json"
    file.write_text(text, encoding="utf-8")
    sources = [byte_level_json, text, text.encode(), file, str(file), tmp_path, tokenizers.Tokenizer.from_str(text)]
    vocabularies = [Vocabulary.from_tokenizers(source) for source in sources]
    assert len({vocabulary.fingerprint for vocabulary in vocabularies}) == 1
    for vocabulary in vocabularies:
        assert vocabulary.encode("he t<tool>") == [256, 257, 259]
        assert vocabulary.source == "tokenizers"


# -- encoding


def test_encode_never_uses_special_tokens(byte_level_json: Json) -> None:
    vocabulary = Vocabulary.from_tokenizers(byte_level_json)
    ids = vocabulary.encode("a<|endoftext|>b<tool>")
    assert 258 not in ids
    assert ids[-1] == 259
    assert vocabulary.decode(ids) == b"a<|endoftext|>b<tool>"


def test_encode_leaves_the_users_tokenizer_alone(byte_level_json: Json) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_str(json.dumps(byte_level_json))
    library.enable_truncation(2)
    library.enable_padding(length=8, pad_id=258)
    vocabulary = Vocabulary.from_tokenizers(library)
    assert vocabulary.encode("abc<|endoftext|>"[:3]) == [97, 98, 99]
    assert library.encode_special_tokens is False
    assert library.truncation["max_length"] == 2


@pytest.mark.parametrize("text", ["ab", " ab", "a", "  a", "é", "b a", "", " ", "\n", "a\x02b", "\x02"])
def test_encode_adds_no_space_before_the_text(text: str, sentencepiece_json: Json) -> None:
    """The normalizer of Llama 2 puts a space before every text; the middle of an output must not get one."""
    vocabulary = Vocabulary.from_tokenizers(sentencepiece_json)
    assert vocabulary.decode(vocabulary.encode(text)) == text.encode()


def test_encode_in_the_middle_of_a_text(sentencepiece_json: Json) -> None:
    vocabulary = Vocabulary.from_tokenizers(sentencepiece_json)
    assert [vocabulary.token_bytes(i) for i in vocabulary.encode("ab ab")] == [b"ab", b" ab"]


def test_encode_without_the_library(byte_level_json: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    vocabulary = Vocabulary.from_tokenizers(byte_level_json)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="encoding greedily.*tokenizers"):
            assert vocabulary.encode("he t") == [256, 257]


def test_encode_with_a_file_that_only_the_library_refuses(byte_level_json: Json) -> None:
    pytest.importorskip("tokenizers")
    byte_level_json["model"]["merges"] = ["x"]
    vocabulary = Vocabulary.from_tokenizers(byte_level_json)
    with pytest.warns(RuntimeWarning, match="encoding greedily"):
        assert vocabulary.encode("he t") == [256, 257]


# -- end of text and size from the files beside


def _write(folder: Path, tokenizer: Json, **files: Any) -> Path:
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("files", "ends", "size"),
    [
        ({}, [258], 260),
        ({"generation_config": {"eos_token_id": 65}}, [65], 260),
        ({"generation_config": {"eos_token_id": [65, 258]}}, [65, 258], 260),
        ({"generation_config": {}}, [258], 260),
        ({"tokenizer_config": {"eos_token": "<tool>"}}, [259], 260),
        ({"tokenizer_config": {"eos_token": {"content": "<tool>", "lstrip": False}}}, [259], 260),
        ({"tokenizer_config": {"eos_token": None}}, [258], 260),
        ({"generation_config": {"eos_token_id": 258}, "tokenizer_config": {"eos_token": "<tool>"}}, [258, 259], 260),
        ({"config": {"eos_token_id": 259}}, [259], 260),
        ({"config": {"eos_token_id": 1, "text_config": {"eos_token_id": 259, "vocab_size": 300}}}, [259], 300),
        ({"config": {"eos_token_id": 1}, "tokenizer_config": {"eos_token": "<tool>"}}, [259], 260),
        ({"config": {"vocab_size": 320}}, [258], 320),
    ],
)
def test_declared_ends_and_size(files: Json, ends: list[int], size: int, byte_level_json: Json, tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizers(_write(tmp_path, byte_level_json, **files))
    assert vocabulary.eos_token_ids == ends
    assert vocabulary.size == size
    assert all(vocabulary.token_bytes(end) is None for end in ends)
    assert set(ends) <= set(vocabulary.special_tokens.values())
    overridden = Vocabulary.from_tokenizers(tmp_path, eos_token_ids=(7, 9), size=1000)
    assert overridden.eos_token_ids == [7, 9]
    assert overridden.size == 1000


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"generation_config": "{"}, "generation_config.json is not valid JSON"),
        ({"generation_config": "[" * 100_000}, "generation_config.json is not valid JSON"),
        ({"generation_config": "[]"}, "must hold a JSON object"),
        ({"generation_config": {"eos_token_id": "65"}}, "must be an integer, not '65'"),
        ({"generation_config": {"eos_token_id": [[65]]}}, r"must be an integer, not \[65\]"),
        ({"generation_config": {"eos_token_id": -1}}, "must lie between 0 and"),
        ({"generation_config": {"eos_token_id": 300}}, "300 lies beyond the size of 260"),
        ({"tokenizer_config": {"eos_token": "<none>"}}, "which the tokenizer does not have"),
        ({"tokenizer_config": {"eos_token": 7}}, "which the tokenizer does not have"),
        ({"config": {"vocab_size": 100}}, "a size of 100 would cut off the token 100"),
        ({"config": {"vocab_size": "many"}}, "vocab_size in config.json must be an integer"),
        ({"config": {"vocab_size": 10**9}}, "token ids must lie between"),
    ],
)
def test_broken_files_beside(files: Json, message: str, byte_level_json: Json, tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokenizers(_write(tmp_path, byte_level_json, **files))


def test_known_names_of_end_tokens(byte_level_json: Json) -> None:
    def ends(*names: str) -> list[int]:
        tokenizer = copy.deepcopy(byte_level_json)
        tokenizer["added_tokens"] = [
            {"id": 258 + index, "content": name, "special": True} for index, name in enumerate(names)
        ]
        return Vocabulary.from_tokenizers(tokenizer).eos_token_ids

    assert ends("<|x|>", "<|eot_id|>", "<|im_end|>") == [259, 260]
    assert ends("<|end|>", "<|user|>") == [258]
    assert ends("<|end|>", "<|return|>", "<|call|>") == [259, 260]
    with pytest.raises(VocabularyError, match="does not say which tokens end a text"):
        ends("<|x|>")


# -- refusals


def _model(**parts: Any) -> Callable[[Json], None]:
    return lambda tokenizer: tokenizer["model"].update(parts)


def _top(**parts: Any) -> Callable[[Json], None]:
    return lambda tokenizer: tokenizer.update(parts)


def _vocab(**tokens: Any) -> Callable[[Json], None]:
    return lambda tokenizer: tokenizer["model"]["vocab"].update(tokens)


def _added(**parts: Any) -> Callable[[Json], None]:
    return lambda tokenizer: tokenizer["added_tokens"][-1].update(parts)


def _decoder(kind: str, **parts: Any) -> Callable[[Json], None]:
    return _top(decoder={"type": kind, **parts})


_REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
_DEEP: Json = {"type": "Fuse"}
for _ in range(50):
    _DEEP = {"type": "Sequence", "decoders": [_DEEP]}
_CYCLE: Json = {"type": "Sequence", "decoders": []}
_CYCLE["decoders"] += [_CYCLE, _CYCLE]

REFUSED = {
    "no model": (lambda tokenizer: tokenizer.pop("model"), "has no model"),
    "model is a list": (_top(model=[]), "has no model"),
    "unknown model": (_model(type="Oracle"), "unknown type 'Oracle'"),
    "WordPiece": (_model(type="WordPiece", continuing_subword_prefix="##"), "WordPiece tokenizers are not supported"),
    "word suffix": (_model(end_of_word_suffix="</w>"), "marks parts of words"),
    "word prefix": (_model(continuing_subword_prefix="##"), "marks parts of words"),
    "no vocab": (_model(vocab=None), "must have a vocab"),
    "vocab is a list": (_model(vocab=["a"]), "must have a vocab"),
    "vocab is empty": (_model(vocab={}), "must have a vocab"),
    "duplicate id": (_vocab(x=65), "the id 65 belongs to 2 tokens: 'A', 'x'"),
    "negative id": (_vocab(x=-1), "the id of token 'x' is -1"),
    "huge id": (_vocab(x=10**9), "the id of token 'x' is 1000000000"),
    "enormous id": (_vocab(x=10**5000), "the id of token 'x' is a very large integer"),
    "id is text": (_vocab(x="300"), "the id of token 'x' must be an integer, not '300'"),
    "id is a float": (_vocab(x=300.0), "must be an integer, not 300.0"),
    "id is true": (_vocab(x=True), "must be an integer, not True"),
    "id is null": (_vocab(x=None), "must be an integer, not None"),
    "lone surrogate": (_added(content="\ud800"), "lone surrogate"),
    "added: not a list": (_top(added_tokens={}), "added_tokens must be a list"),
    "added: not an object": (_top(added_tokens=[1]), "entry 0 of added_tokens"),
    "added: no content": (_added(content=None), "entry 1 of added_tokens"),
    "added: no id": (_added(id=None), "the id of the added token '<tool>' must be an integer"),
    "added: huge id": (_added(id=10**9), "the id of the added token '<tool>' is 1000000000"),
    "added: gap": (_added(id=270), "declares the id 270, but the tokenizers library gives it 259"),
    "added: id in use": (_added(id=65), "declares the id 65, but the tokenizers library gives it 259"),
    "added: other id": (_added(content="he"), "declares the id 259, but the tokenizers library gives it 256"),
    "added: twice": (_added(id=258, content="<|endoftext|>"), "declared more than once"),
    "no decoder": (_top(decoder=None), "has no decoder"),
    "decoder is text": (_top(decoder="ByteLevel"), "a decoder must be an object with a type"),
    "decoder without type": (_top(decoder={}), "a decoder must be an object with a type"),
    "WordPiece decoder": (_decoder("WordPiece", prefix="##", cleanup=True), "joins words with spaces"),
    "BPEDecoder": (_decoder("BPEDecoder", suffix="</w>"), "end-of-word suffix"),
    "CTC": (_decoder("CTC", pad_token="<pad>"), "merges repeated tokens"),
    "unknown decoder": (_decoder("Oracle"), "has the step Oracle"),
    "regex": (_decoder("Replace", pattern={"Regex": "▁+"}, content=" "), "replaces by a regular expression"),
    "replace nothing": (_decoder("Replace", pattern={"String": ""}, content=" "), "must name the text"),
    "replace without pattern": (_decoder("Replace", content=" "), "must name the text"),
    "replace by nothing known": (_decoder("Replace", pattern={"String": "▁"}), "must have a string as content"),
    "metaspace of nothing": (_decoder("Metaspace", replacement=None), "must name the text"),
    "sequence of nothing": (_decoder("Sequence", decoders=None), "must have a list of decoders"),
    "deep sequence": (_top(decoder=_DEEP), "nested deeper than"),
    "cyclic sequence": (_top(decoder=_CYCLE), "nested deeper than"),
    "long sequence": (_decoder("Sequence", decoders=[_REPLACE] * 100), "more than 64 steps"),
    "strip each token": (_decoder("Strip", content=" ", start=1, stop=0), "has the step Strip"),
    "strip the end": (
        _decoder("Sequence", decoders=[{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1}]),
        "has the step Strip",
    ),
    "replace bytes": (_decoder("Sequence", decoders=[{"type": "ByteFallback"}, _REPLACE]), "has the step Replace"),
    "replace across tokens": (_decoder("Sequence", decoders=[{"type": "Fuse"}, _REPLACE]), "has the step Replace"),
    "byte-level and more": (_decoder("Sequence", decoders=[{"type": "ByteLevel"}, _REPLACE]), "has the step ByteLevel"),
    "unigram: no list": (_top(model={"type": "Unigram", "vocab": {}}), "a list of"),
    "unigram: no pair": (_top(model={"type": "Unigram", "vocab": ["a"]}), "entry 0 of a Unigram vocab"),
    "unigram: twice": (_top(model={"type": "Unigram", "vocab": [["a", 0], ["a", 0]]}), "'a' has more than one id"),
    "unigram: unk_id": (_top(model={"type": "Unigram", "vocab": [["a", 0]], "unk_id": 1}), "unk_id is 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, byte_level_json: Json) -> None:
    change, message = REFUSED[case]
    change(byte_level_json)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokenizers(byte_level_json)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not valid JSON"),
        (b"\xff\xfe\x00", "is not valid JSON"),
        (b"[]", "must hold an object"),
        (b"null", "must hold an object"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"model": {"vocab": {"a": ' + b"9" * 5000 + b"}}}", "is not valid JSON"),
        (b"GGUF\x03\x00\x00\x00", "from_gguf"),
        (b"\x1f\x8b\x08\x00", "is compressed"),
    ],
)
def test_broken_content(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokenizers(content)
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(VocabularyError, match=message) as caught:
        Vocabulary.from_tokenizers(file)
    assert "tokenizer.json" in str(caught.value) or "must hold an object" in message


def test_truncated_at_any_place(byte_level_json: Json) -> None:
    content = json.dumps(byte_level_json).encode()
    for length in range(0, len(content), 7):
        with pytest.raises(VocabularyError):
            Vocabulary.from_tokenizers(content[:length])


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Vocabulary.from_tokenizers(tmp_path / "tokenizer.json")
    (tmp_path / "model.gguf").touch()
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json \(it has model\.gguf\)"):
        Vocabulary.from_tokenizers(tmp_path)


@pytest.mark.parametrize("source", [None, 7, ["a"], object()])
def test_sources_of_a_wrong_type(source: Any) -> None:
    with pytest.raises(VocabularyError, match="expected a path"):
        Vocabulary.from_tokenizers(source)
    with pytest.raises(VocabularyError, match="not backed by the tokenizers library"):
        Vocabulary.from_transformers(source)
    with pytest.raises(VocabularyError, match=r"expected a tiktoken\.Encoding"):
        Vocabulary.from_tiktoken(source)


def test_reading_a_file_imports_no_tokenizer_library(byte_level_json: Json, tmp_path: Path) -> None:
    file = _write(tmp_path, byte_level_json) / "tokenizer.json"
    code = (
        "import sys; from grammask.engine.vocabulary import Vocabulary; Vocabulary.from_tokenizers(sys.argv[1]);"
        "print(sorted({'tokenizers', 'transformers', 'tiktoken', 'gguf', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
