"""Vocabularies from plain lists: what they hold, round trips, and the native side."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammask
from grammask.engine.tokenizers.decoders import byte_level, characters
from grammask.engine.vocabulary import Vocabulary, VocabularyError

TOKENS = [b"a", b"ab", None, b"\xd7", b"", b"</s>", b"abc"]
token_lists = st.lists(st.none() | st.binary(max_size=6), min_size=1, max_size=40)


def test_what_it_holds() -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5], special_token_ids=[2], size=9)
    assert vocabulary.size == 9
    assert [vocabulary.token_bytes(i) for i in range(9)] == [b"a", b"ab", None, b"\xd7", None, None, b"abc", None, None]
    assert vocabulary.special_tokens == {"<token 2>": 2, "</s>": 5}
    assert vocabulary.eos_token_ids == [5]
    assert vocabulary.padding_rows == [4, 7, 8]
    assert [i for i in range(9) if vocabulary.is_special(i)] == [2, 5]
    assert vocabulary.decode([0, 3, 5, 2, 4, 6]) == b"a\xd7abc"
    assert repr(vocabulary) == "<Vocabulary of 9 tokens from tokens: 2 special, 3 padding, end of text 5>"


def test_names_of_special_tokens() -> None:
    named = Vocabulary.from_tokens(TOKENS, eos_token_ids=5, special_token_ids={"<think>": 0, "<end>": 5})
    assert named.special_tokens == {"<think>": 0, "<end>": 5}
    same_text = Vocabulary.from_tokens([b"x", b"x", b"\xff"], eos_token_ids=[1], special_token_ids=[0, 2])
    assert same_text.special_tokens == {"x": 0, "<token 1>": 1, "\\xff": 2}


def test_answers_are_copies() -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5])
    vocabulary.eos_token_ids.append(1)
    vocabulary.special_tokens["x"] = 1
    vocabulary.padding_rows.clear()
    assert vocabulary.eos_token_ids == [5]
    assert vocabulary.special_tokens == {"</s>": 5}
    assert vocabulary.padding_rows == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": ["a"], "eos_token_ids": []}, "token 0 must be bytes or None, not str"),
        ({"tokens": [b"a", 7], "eos_token_ids": []}, "token 1 must be bytes or None, not int"),
        ({"tokens": [b"a"], "eos_token_ids": [1]}, "the end-of-text token id 1 lies beyond the size of 1"),
        ({"tokens": [b"a"], "eos_token_ids": [-1]}, "an end-of-text id is -1"),
        ({"tokens": [b"a"], "eos_token_ids": "0"}, "an end-of-text id must be an integer, not '0'"),
        ({"tokens": [b"a"], "eos_token_ids": [True]}, "must be an integer, not True"),
        ({"tokens": [b"a"], "eos_token_ids": [0.0]}, r"must be an integer, not 0\.0"),
        ({"tokens": [b"a"], "eos_token_ids": None}, "does not say which tokens end a text"),
        ({"tokens": [b"a"], "eos_token_ids": [], "special_token_ids": [1]}, "special token '<token 1>' lies beyond"),
        ({"tokens": [b"a"], "eos_token_ids": [], "special_token_ids": {"x": 10**9}}, "special token 'x' is 1000000000"),
        ({"tokens": [b"a", b"b"], "eos_token_ids": [], "size": 1}, r"a size of 1 would cut off the token 1 \(b'b'\)"),
        ({"tokens": [b"a"], "eos_token_ids": [], "size": -1}, "size is -1"),
        ({"tokens": [b"a"], "eos_token_ids": [], "size": 10**9}, "size is 1000000000"),
        ({"tokens": [b"a"], "eos_token_ids": [], "size": "2"}, "size must be an integer, not '2'"),
        ({"tokens": [None] * (2**21 + 1), "eos_token_ids": []}, "there are 2097153 tokens, more than 2097152"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokens(**arguments)


@pytest.mark.parametrize("token_id", [-1, 7, 10**9])
def test_ids_outside(token_id: int) -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5])
    for question in (vocabulary.token_bytes, vocabulary.is_special, lambda i: vocabulary.decode([i])):
        with pytest.raises(IndexError, match="is not between 0 and 6"):
            question(token_id)


def test_numpy_integers_are_ids() -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=np.array([5, 2]), special_token_ids=np.array([0]))
    assert vocabulary.eos_token_ids == [5, 2]
    assert vocabulary.token_bytes(np.int32(6)) == b"abc"  # type: ignore[arg-type]


def test_fingerprint_is_pinned() -> None:
    """Caches on disk are named after it: a change needs a new version in the hashed header."""
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5], special_token_ids={"<é>": 2}, size=9)
    assert vocabulary.fingerprint == "af5a4478051b009588e72d5deb12395955e9327d395b3b116a927f2bd2699dc7"


@given(token_lists, st.data())
def test_round_trip(tokens: list[bytes | None], data: st.DataObject) -> None:
    ids = st.integers(0, len(tokens) - 1)
    special = data.draw(st.sets(ids))
    ends = data.draw(st.sets(ids))
    size = len(tokens) + data.draw(st.integers(0, 70))
    vocabulary = Vocabulary.from_tokens(tokens, ends, special, size)
    expected = [None if i in special | ends else token or None for i, token in enumerate(tokens)]
    expected += [None] * (size - len(tokens))
    assert [vocabulary.token_bytes(i) for i in range(size)] == expected
    assert set(vocabulary.special_tokens.values()) == special | ends
    assert set(vocabulary.padding_rows) == {i for i, token in enumerate(expected) if token is None} - special - ends
    sequence = data.draw(st.lists(st.integers(0, size - 1)))
    assert vocabulary.decode(sequence) == b"".join(expected[i] or b"" for i in sequence)


@given(token_lists, token_lists)
def test_fingerprints_differ_with_content(one: list[bytes | None], other: list[bytes | None]) -> None:
    first, second = (Vocabulary.from_tokens(tokens, eos_token_ids=[]) for tokens in (one, other))
    same = [token or None for token in one] == [token or None for token in other]
    assert (first.fingerprint == second.fingerprint) == same


@given(st.lists(st.binary(min_size=1, max_size=8)))
def test_byte_level_alphabet(tokens: list[bytes]) -> None:
    """Against the alphabet as GPT-2 defines it, one character at a time."""
    assert byte_level(["".join(GPT2_ALPHABET[byte] for byte in token) for token in tokens]) == tokens


@given(st.lists(st.text(st.sampled_from("aĠé\u0143\u0144一👩 "), min_size=1, max_size=5), max_size=10))
def test_byte_level_with_other_characters(tokens: list[str]) -> None:
    of_character = {character: byte for byte, character in GPT2_ALPHABET.items()}
    expected = [
        bytes(of_character[c] for c in token) if set(token) <= set(of_character) else token.encode() for token in tokens
    ]
    assert byte_level(tokens) == expected


@given(st.lists(st.text(max_size=6) | st.sampled_from(["<0x00>", "<0xAb>", "<0xg0>"])), st.booleans())
def test_characters(tokens: list[str], byte_fallback: bool) -> None:
    def expected(token: str) -> bytes:
        if byte_fallback and token in ("<0x00>", "<0xAb>"):
            return bytes.fromhex(token[3:5])
        return token.replace("▁", " ").replace("\x00", "zero").encode()

    assert characters(tokens, [("▁", " "), ("\x00", "zero")], byte_fallback) == [expected(token) for token in tokens]


def _gpt2_alphabet() -> dict[int, str]:
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    alphabet = {byte: chr(byte) for byte in kept}
    for byte in range(256):
        alphabet.setdefault(byte, chr(256 + len(alphabet) - len(kept)))
    return alphabet


GPT2_ALPHABET = _gpt2_alphabet()


# -- the native side


@given(token_lists, st.data())
def test_native_holds_the_same(tokens: list[bytes | None], data: st.DataObject) -> None:
    ends = data.draw(st.sets(st.integers(0, len(tokens) - 1)))
    size = len(tokens) + data.draw(st.integers(0, 40))
    vocabulary = Vocabulary.from_tokens(tokens, ends, size=size)
    assert vocabulary.native.size == size
    assert set(vocabulary.native.eos_token_ids) == ends
    assert [vocabulary.native.token_bytes(i) for i in range(size)] == [vocabulary.token_bytes(i) for i in range(size)]


@given(st.lists(st.binary(min_size=2, max_size=4)), st.binary(max_size=30))
def test_greedy_takes_the_longest_token(longer: list[bytes], text: bytes) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + longer
    vocabulary = Vocabulary.from_tokens(tokens, eos_token_ids=[])
    ids = vocabulary.tokenize_greedy(text)
    assert vocabulary.encode(text) == ids
    assert vocabulary.decode(ids) == text
    at = 0
    for token_id in ids:
        longest = max(len(token) for token in tokens if text.startswith(token, at))
        assert len(tokens[token_id]) == longest
        at += longest


@pytest.mark.parametrize(("text", "at"), [(b"abx", 2), ("é", 0), (b"\xd7\xd7\x00", 2), (b"</s>", 0), (b"bc", 0)])
def test_greedy_without_tokens_for_the_text(text: str | bytes, at: int) -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5])
    with pytest.raises(VocabularyError, match=f"no token fits at byte {at} of the text"):
        vocabulary.encode(text)


def test_lone_surrogates_are_no_text() -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5])
    with pytest.raises(UnicodeEncodeError):
        vocabulary.encode("a\ud800")


def test_native_is_built_once_by_many_threads() -> None:
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)], eos_token_ids=[])
    built: list[Any] = []
    threads = [threading.Thread(target=lambda: built.append(vocabulary.native)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 8
    assert len({id(native) for native in built}) == 1


def test_memory_by_part() -> None:
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_token_ids=[5])
    before = vocabulary.memory_bytes()
    assert set(before) == {"table", "special_tokens"}
    assert vocabulary.native is not None
    after = vocabulary.memory_bytes()
    assert set(before) < set(after)
    assert all(isinstance(size, int) and size >= 0 for size in after.values())
    assert json.loads(json.dumps(after)) == after


def test_apart() -> None:
    """The same tokens and masks, and nothing shared with what is compiled for the vocabulary itself."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_token_ids=[3])
    vocabulary.cache_budget = 1 << 20
    twins = [vocabulary.apart(), vocabulary.apart(), vocabulary.apart().apart()]
    before = vocabulary.memory_bytes()
    for twin in twins:
        assert twin.fingerprint == vocabulary.fingerprint
        assert twin.special_tokens == vocabulary.special_tokens
        assert twin.cache_budget == 1 << 20
        matcher = grammask.compile(grammask.Regex("(ab){2}|b"), twin).matcher()
        assert matcher.allowed_token_ids().tolist() == [0, 1, 2]
        assert matcher.accept(1)
        assert matcher.allowed_token_ids().tolist() == [3]
    assert vocabulary.memory_bytes() == before
