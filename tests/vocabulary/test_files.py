"""Vocabularies in files: the same masks as those of the built one, and refusals of files that are not whole."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import Vocabulary, VocabularyError
from grammask.engine import vocabulary_file

TOKENS = [*(bytes([byte]) for byte in range(256)), b'{"', b'":', b"null", "é".encode(), b"\xc3\xa9\xc3", b"end", None]


@pytest.fixture
def built() -> Vocabulary:
    return Vocabulary.from_tokens(TOKENS, eos_token_ids=[261], special_token_ids={"<tool>": 262}, size=270)


@pytest.fixture
def saved(built: Vocabulary, tmp_path: Path) -> Path:
    path = tmp_path / "vocabulary.bin"
    built.save(path)
    return path


def masks(vocabulary: Vocabulary, text: bytes) -> list[list[int]]:
    """The tokens allowed before and after each token of a JSON text."""
    schema = {"type": "object", "properties": {"é": {"enum": [None, 1]}, "b": {"type": "string", "maxLength": 4}}}
    matcher = grammask.compile(grammask.JsonSchema(schema), vocabulary).matcher()
    out = [matcher.allowed_token_ids().tolist()]
    for token_id in vocabulary.tokenize_greedy(text):
        assert matcher.accept(token_id)
        out.append(matcher.allowed_token_ids().tolist())
    return out


def test_a_loaded_vocabulary_is_the_saved_one(built: Vocabulary, saved: Path, tmp_path: Path) -> None:
    loaded = Vocabulary.load(saved)
    assert (loaded.fingerprint, loaded.size, loaded.eos_token_ids) == (built.fingerprint, 270, [261])
    assert loaded.special_tokens == built.special_tokens
    assert loaded.padding_rows == built.padding_rows
    assert loaded.source == "tokens"
    assert [loaded.token_bytes(i) for i in range(270)] == [built.token_bytes(i) for i in range(270)]
    assert loaded.is_special(262)
    text = '{"é":null,"b":"é é"}'.encode()
    assert masks(loaded, text) == masks(built, text)
    # A file that is loaded can be saved again, over itself as well.
    loaded.save(tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == saved.read_bytes()
    loaded.save(saved)
    assert masks(loaded, text) == masks(built, text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.bin", "vocabulary.bin"]


def test_memory_of_a_mapped_vocabulary_is_the_files(built: Vocabulary, saved: Path) -> None:
    assert built.native.memory_bytes()["vocabulary"] > 0
    assert Vocabulary.load(saved).native.memory_bytes()["vocabulary"] == 0


def test_files_that_are_not_whole_are_refused(saved: Path) -> None:
    content = saved.read_bytes()
    generator = random.Random(0)
    broken = [b"", b"GGUF", b"\0" * 1000, content + b"x"]
    broken += [content[: generator.randrange(len(content))] for _ in range(60)]
    for _ in range(200):
        at = generator.randrange(len(content))
        broken.append(content[:at] + bytes([content[at] ^ 1 << generator.randrange(8)]) + content[at + 1 :])
    for each in broken:
        saved.write_bytes(each)
        with pytest.raises(VocabularyError, match=r"vocabulary\.bin cannot be used: .*\n  hint: "):
            Vocabulary.load(saved)
    with pytest.raises(FileNotFoundError):
        Vocabulary.load(saved.parent / "other.bin")


@pytest.mark.parametrize(
    ("notes", "problem"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "written by grammask None"),
        (b'{"grammask": "0.0.1", "special_tokens": {}, "source": "tokens"}', r"written by grammask 0\.0\.1"),
        (b'{"grammask": "VERSION", "source": "tokens"}', "lack"),
        (b'{"grammask": "VERSION", "source": "tokens", "special_tokens": {"a": -1}}', "between 0 and"),
        (b'{"grammask": "VERSION", "source": "tokens", "special_tokens": {"a": 270}}', "'a' is none"),
        (b'{"grammask": "VERSION", "source": "tokens", "special_tokens": {"a": 65}}', "'a' is none"),
    ],
)
def test_notes_are_checked(built: Vocabulary, tmp_path: Path, notes: bytes, problem: str) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(built.native.to_block(notes.replace(b"VERSION", grammask.__version__.encode())))
    with pytest.raises(VocabularyError, match=problem):
        Vocabulary.load(path)


@pytest.mark.skipif(os.name != "posix", reason="who may write to a file is asked on POSIX systems only")
def test_a_file_that_others_can_change_is_copied(built: Vocabulary, saved: Path) -> None:
    assert saved.stat().st_mode & 0o022 == 0
    saved.chmod(0o666)
    loaded = Vocabulary.load(saved)
    saved.write_bytes(bytes(saved.stat().st_size))
    assert masks(loaded, b'{"b":"x"}') == masks(built, b'{"b":"x"}')
    assert isinstance(vocabulary_file._content(saved), bytes)


@pytest.mark.parametrize("kind", ["path", "folder", "text", "bytes", "object"])
def test_the_cache_finds_what_was_made_before(byte_level_json: dict[str, Any], tmp_path: Path, kind: str) -> None:
    file = tmp_path / "model" / "tokenizer.json"
    file.parent.mkdir()
    file.write_text(json.dumps(byte_level_json))
    source: Any = {
        "path": file,
        "folder": file.parent,
        "text": file.read_text(),
        "bytes": file.read_bytes(),
        "object": byte_level_json,
    }[kind]
    cache = tmp_path / "cache"
    first = Vocabulary.from_tokenizers(source, cache=cache)
    again = Vocabulary.from_tokenizers(source, cache=cache)
    assert len(list(cache.iterdir())) == 1
    assert again.native.memory_bytes()["vocabulary"] == 0
    assert (again.fingerprint, again.source) == (first.fingerprint, "tokenizers")
    pytest.importorskip("tokenizers")
    assert again.encode("the hehe") == first.encode("the hehe")


def test_the_cache_tells_apart_what_differs(byte_level_json: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(byte_level_json))
    cache = tmp_path / "cache"

    def made(**options: Any) -> Vocabulary:
        return Vocabulary.from_tokenizers(file, cache=cache, **options)

    assert made().size == 260
    assert made(size=300).size == 300
    assert made(eos_token_ids=65).eos_token_ids == [65]
    assert made(eos_token_ids=iter([66])).eos_token_ids == [66]
    (tmp_path / "config.json").write_text('{"vocab_size": 280}')
    assert made().size == 280
    assert made().size == 280
    assert len(list(cache.iterdir())) == 5


def test_a_cache_that_is_damaged_is_made_again(byte_level_json: dict[str, Any], tmp_path: Path) -> None:
    first = Vocabulary.from_tokenizers(byte_level_json, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert Vocabulary.from_tokenizers(byte_level_json, cache=tmp_path).fingerprint == first.fingerprint
    assert file.read_bytes() == content


def test_a_cache_that_cannot_be_written_is_reported(byte_level_json: dict[str, Any], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.warns(RuntimeWarning, match="not kept"):
        made = Vocabulary.from_tokenizers(byte_level_json, cache=blocked / "folder")
    assert made.size == 260


def test_the_users_cache_is_opt_in(
    byte_level_json: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMMASK_CACHE", str(tmp_path))
    Vocabulary.from_tokenizers(byte_level_json)
    assert not list(tmp_path.iterdir())
    Vocabulary.from_tokenizers(byte_level_json, cache=True)
    assert len(list((tmp_path / "vocabularies").iterdir())) == 1


def test_a_real_vocabulary_in_another_process(real_vocabulary: Callable[[str], Vocabulary], tmp_path: Path) -> None:
    """The masks of a real vocabulary are the same in a process that maps its file."""
    vocabulary = real_vocabulary("smollm2")
    path = tmp_path / "smollm2.bin"
    vocabulary.save(path)
    code = (
        "import sys, numpy, grammask\n"
        "vocabulary = grammask.Vocabulary.load(sys.argv[1])\n"
        "matcher = grammask.compile(grammask.Regex('[a-z]{1,9}( [a-z]+)*'), vocabulary).matcher()\n"
        "sys.stdout.buffer.write(matcher.allowed_token_ids().tobytes())\n"
    )
    output = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True).stdout
    matcher = grammask.compile(grammask.Regex("[a-z]{1,9}( [a-z]+)*"), vocabulary).matcher()
    assert np.array_equal(np.frombuffer(output, dtype=np.int32), matcher.allowed_token_ids())
