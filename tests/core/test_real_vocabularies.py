"""Masks over real tokenizers, checked token by token along whole outputs.

The masks of bounded strings, unanchored patterns, free keys and different items come from tables and differences.
``matched_prefix`` reads one token at a time and knows none of these; ``test_exactness.py`` judges it in turn.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import _core

SAMPLE = 200

_NAMES = ["שם מלא", "نام\u200cخانوادگی", "İstanbul", "数量", "🙂", "é"]
SCHEMAS: dict[str, tuple[Any, list[Any]]] = {
    "bounded strings": (
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "minLength": 2, "maxLength": 9},
                "b": {"type": "string", "maxLength": 3},
            },
        },
        [{"a": "abcdefghi", "b": "עבר"}, {"a": "🙂é\n\\", "b": ""}, {"a": "  "}],
    ),
    "long bounds": (
        {"type": "array", "items": {"type": "string", "minLength": 5, "maxLength": 40}},
        [["internationalization of the", "می\u200cخواهم که بدانم", "数量单位是什么样的"], []],
    ),
    "anchored pattern": (
        {"type": "string", "pattern": "^[A-Z]{2,3}-[0-9]+(-beta)?$"},
        ["AB-12345", "XYZ-1-beta"],
    ),
    "unanchored patterns": (
        {"type": "array", "items": {"type": "string", "pattern": "foo|[0-9]{3}"}},
        [["a foo b", "in 2024 again", 'quoted "123"'], ["foo"]],
    ),
    "pattern and length": (
        {"type": "string", "pattern": "x.*y", "minLength": 4, "maxLength": 12},
        ["ax bc y d", "xxyyİ"],
    ),
    "a pattern with few lengths": (
        {"type": "array", "items": {"type": "string", "pattern": "^(ab.|12345)+$", "minLength": 7, "maxLength": 16}},
        [["ab1ab数ab ", "1234512345"], ["ab1ab\u2003ab3", 'ab"12345ab\\']],
    ),
    "words of a pattern and a length": (
        {
            "type": "array",
            "items": {"type": "string", "pattern": r"^(?:\S+\s+){0,29}\S+$", "maxLength": 150},
        },
        [
            ["Experience in user research", "متن و \u2003 数量 ================================ x", "y" * 149],
            ["a " * 20 + "b"],
        ],
    ),
    "a pattern near its longest": (
        {"type": "string", "pattern": "^a.*zz$", "maxLength": 24},
        ["a then the words zz", "a                    zz", "abc internationalizzz"],
    ),
    "more words than any token holds": (
        {"type": "string", "pattern": r"^$|(^(?:\S+\s+){0,99}\S+$)", "maxLength": 400},
        ["", "a  b" * 12, "c " * 99 + "d", "— “é” 数 " * 30 + "."],
    ),
    "a host name": (
        {"type": "string", "format": "hostname"},
        ["example.com", "a" * 60 + ".b-c", ".".join(["ab" * 30] * 4)],
    ),
    "addresses with a length": (
        {"type": "array", "items": {"type": "string", "format": "email", "minLength": 3, "maxLength": 60}},
        [["a@b", "john.doe@example.com"], ['"of two \\" words"@example.org', "x" * 40 + "@[127.0.0.1]"]],
    ),
    "more characters than a pattern asks for": (
        {
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-zé]+( [a-z]+)*$", "minLength": 9, "maxLength": 60},
        },
        [["two words", "the words of a résumé"[:14]], ["a" * 9, "ééééééééé"]],
    ),
    "escapes and a length": (
        {
            "type": "array",
            "items": {"type": "string", "pattern": '^(?:\\\\|"|数|xy)*$', "minLength": 2, "maxLength": 64},
        },
        [['xy\\"数', '""' * 12], ["数数", "xy" * 20 + "\\\\"]],
    ),
    "lines of any characters": (
        {"type": "array", "items": {"type": "string", "pattern": "^.+?$"}},
        [["a “line” — of 数量 and 🙂, ok", "e\u0301\u2027x\ufeff"], ["\ufffd\ud7ff\ue000"]],
    ),
    "frames that end together": (
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"x": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}},
            },
        },
        [[{"x": [["a"], ["", "b]]"]]}], [{"x": []}, {}, {"x": [[]]}]],
    ),
    "forbidden beginning": (
        {"type": "string", "pattern": "^(?! )(?!the).*[^ ]$"},
        ["a then the", "thus"],
    ),
    "free keys": (
        {"type": "object", "additionalProperties": {"type": ["integer", "string"]}},
        [{"a": 1, "b": "c", "ab": 2, "": 3}, dict.fromkeys(_NAMES, 7), {}],
    ),
    "free keys beside known ones": (
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
            "additionalProperties": {"type": "string"},
        },
        [{"id": 12, "idx": "x", "i": "", "name": "n"}, {"id": 1, **dict.fromkeys(_NAMES, "é")}],
    ),
    "keys of a pattern": (
        {
            "type": "object",
            "patternProperties": {"^x-[a-z]+$": {"type": "boolean"}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        [{"x-one": True, "x-two": False, "x-three": True}],
    ),
    "different objects": (
        {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        [[{"a": 1}, {"a": 2}, {"a": 1, "b": 1}, {}]],
    ),
    "different scalars": (
        {"type": "array", "uniqueItems": True, "items": {"type": ["string", "number", "null"]}},
        [["a", "ab", 1, 10, None, 1.5, "1"], ["", "\u200c", "İ"]],
    ),
    "enumeration": (
        {"enum": [*_NAMES, "İzmir", "数", "yes", "yesterday", 1, 12, None, [1, {"a": "b"}]]},
        ["yes", "yesterday", "نام\u200cخانوادگی", [1, {"a": "b"}], 12],
    ),
    "named keys in any script": (
        {
            "type": "object",
            "properties": {name: {"type": "string", "maxLength": 6} for name in _NAMES},
            "required": _NAMES[:4],
        },
        [dict.fromkeys(_NAMES, "שלוםa"), dict.fromkeys(_NAMES[:4], "🙂\u200c")],
    ),
    "numbers": (
        {
            "type": "array",
            "items": [{"type": "number", "minimum": -10.5, "maximum": 1000}, {"type": "integer", "multipleOf": 12}],
            "minItems": 2,
        },
        [[-10.25, 144], [999.5, -12, {"free": [None]}]],
    ),
    "any value": ({}, [{"a": [1, "b", {"c": None}], "d": {}}, "text", [[[]]]]),
}


def masked(matcher: _core.Matcher, size: int) -> np.ndarray:
    out = np.zeros((size + 31) // 32, dtype=np.int32)
    matcher.fill_mask(out)
    return np.unpackbits(out.view(np.uint8), bitorder="little")[:size].astype(bool)


def check(
    matcher: _core.Matcher, vocabulary: grammask.Vocabulary, generator: random.Random, where: object
) -> np.ndarray:
    """Compares a mask with what the stepper says about a sample of tokens, those on its edge among them."""
    mask = masked(matcher, vocabulary.size)
    allowed = np.flatnonzero(mask)
    sample = generator.sample(range(vocabulary.size), SAMPLE)
    sample += allowed.tolist() if len(allowed) <= SAMPLE else generator.sample(allowed.tolist(), SAMPLE)
    for token in sample:
        data = vocabulary.token_bytes(token)
        if data is None:
            right = token in vocabulary.eos_token_ids and matcher.is_complete
        else:
            right = matcher.matched_prefix(data) == len(data)
        assert bool(mask[token]) == right, (where, token, data, "allowed" if mask[token] else "refused")
    return mask


@pytest.fixture(scope="module")
def vocabulary(tokenizer_path: Callable[[str], Path]) -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokenizers(tokenizer_path("llama3_1"))


def with_marks(vocabulary: grammask.Vocabulary) -> list[int]:
    """Tokens with a quote, a bracket or a comma inside: those that leave strings and objects."""
    marks = set(b'",:{}[]')
    return [
        token
        for token in range(vocabulary.size)
        if len(data := vocabulary.token_bytes(token) or b"") > 1 and marks & set(data)
    ]


@pytest.fixture(scope="module")
def interesting(vocabulary: grammask.Vocabulary) -> list[int]:
    return with_marks(vocabulary)


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_of_whole_outputs(name: str, vocabulary: grammask.Vocabulary, interesting: list[int]) -> None:
    follow(name, vocabulary, interesting)


def test_masks_over_tokens_of_another_kind(tokenizer_path: Callable[[str], Path]) -> None:
    """A tokenizer with 262,144 tokens that falls back to bytes, where long blanks and marks are single tokens."""
    vocabulary = grammask.Vocabulary.from_tokenizers(tokenizer_path("gemma3"))
    interesting = with_marks(vocabulary)
    for name in ["bounded strings", "free keys beside known ones", "different objects", "unanchored patterns"]:
        follow(name, vocabulary, interesting)


def follow(name: str, vocabulary: grammask.Vocabulary, interesting: list[int]) -> None:
    """Checks the masks along the outputs of a schema, as the tokenizer would write them."""
    schema, instances = SCHEMAS[name]
    compiled = grammask.compile(grammask.JsonSchema(schema, property_order="any", escapes="all"), vocabulary)
    generator = random.Random(name)
    for instance in instances:
        for separators in [(",", ":"), (", ", ": ")]:
            matcher = compiled.matcher()
            text = json.dumps(
                instance,
                ensure_ascii=generator.random() < 0.3 and "{" not in json.dumps(instance),
                separators=separators,
            )
            for token in [*vocabulary.encode(text), None]:
                mask = check(matcher, vocabulary, generator, (name, text, matcher.stack()))
                for other in generator.sample(interesting, 150):
                    data = vocabulary.token_bytes(other) or b""
                    assert bool(mask[other]) == (matcher.matched_prefix(data) == len(data)), (name, text, data)
                if token is None:
                    assert matcher.is_complete, (name, text)
                else:
                    assert mask[token], (name, text, vocabulary.token_bytes(token))
                    assert matcher.accept(token)


@pytest.mark.parametrize("name", SCHEMAS)
def test_random_outputs_never_end_in_nowhere(name: str, vocabulary: grammask.Vocabulary) -> None:
    """Random tokens, so that strings of any bytes, odd spellings and rare paths are walked too."""
    compiled = grammask.compile(grammask.JsonSchema(SCHEMAS[name][0]), vocabulary)
    generator = random.Random(name)
    matcher = compiled.matcher()
    for _ in range(15):
        mask = check(matcher, vocabulary, generator, (name, matcher.stack()))
        choices = [token for token in np.flatnonzero(mask).tolist() if vocabulary.token_bytes(token) is not None]
        assert choices or matcher.is_complete, (name, matcher.stack())
        if not choices:
            break
        # Tokens of marks lead through the structure, others stay in strings for long.
        marks = [token for token in choices if (vocabulary.token_bytes(token) or b"x")[-1:] in (b'"', b",", b"}", b"]")]
        token = generator.choice(marks if marks and generator.random() < 0.5 else choices)
        assert matcher.accept(token)


def text_of(b: _core.Builder) -> int:
    return b.repeat(b.chars([(0, 0x10FFFF)]), 0, None)


@pytest.mark.parametrize("beginning", [b"a", b" ", b"the"], ids=["a", "blank", "the"])
@pytest.mark.parametrize("framed", [False, True], ids=["flat", "in a frame"])
def test_texts_that_must_not_begin_so(beginning: bytes, framed: bool, vocabulary: grammask.Vocabulary) -> None:
    """The mask is that of all texts without the (possibly very many) tokens that begin so."""
    b = _core.Builder(vocabulary.native)
    text = text_of(b)
    language = b.intersection([text, b.complement(b.concat([b.literal(beginning), text]))])
    body = b.concat([b.call(language), b.literal(b"</s>")]) if framed else language
    matcher = b.compile(b.concat([b.literal(b"<"), body])).matcher()
    assert matcher.accept_bytes(b"<")
    mask = masked(matcher, vocabulary.size)
    for token in range(vocabulary.size):
        data = vocabulary.token_bytes(token)
        if data is not None:
            assert bool(mask[token]) == (matcher.matched_prefix(data) == len(data)), data


def test_a_word_other_than_a_keyword_before_anything(vocabulary: grammask.Vocabulary) -> None:
    """Nearly every token may leave the frame of the word."""
    b = _core.Builder(vocabulary.native)
    visible = b.repeat(b.byte_set([(33, 126)]), 0, None)
    word = b.intersection([visible, b.complement(b.literal(b"if"))])
    matcher = b.compile(b.concat([b.call(word), b.call(b.repeat(b.byte_set([(32, 126)]), 0, None))])).matcher()
    for data in [b"i", b"f", b"x", b" "]:
        assert matcher.accept_bytes(data)
        check(matcher, vocabulary, random.Random(1), data)
