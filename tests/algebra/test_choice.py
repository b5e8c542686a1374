"""Choice: which texts stand for which values, and tries of many words."""

from __future__ import annotations

import enum
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grammask
from grammask.constraints.choice import Choice
from grammask.engine.errors import ConstraintSyntaxError, UnsatisfiableConstraint
from support.builders import BUILDER_NAMES, make_builder


class Color(enum.Enum):
    RED = "rouge"
    DEEP = 7


class Size(str, enum.Enum):
    SMALL = "small"


def test_texts_of_values() -> None:
    choice = Choice(["a", 1, -2.5, 1e300, True, False, None, Color.RED, Color.DEEP, Size.SMALL])
    expected = ["a", "1", "-2.5", "1e+300", "true", "false", "null", "rouge", "7", "small"]
    assert choice.texts == expected
    assert choice.value_of("7") is Color.DEEP
    assert choice.value_of("true") is True
    with pytest.raises(KeyError):
        choice.value_of("True")


def test_the_first_of_equal_texts_is_the_value() -> None:
    choice = Choice(["1", 1, "1"])
    assert choice.texts == ["1"]
    assert choice.value_of("1") == "1"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"a", ["a"], ("a",), object(), "\ud800"])
def test_what_cannot_be_a_choice(value: object) -> None:
    with pytest.raises(ConstraintSyntaxError):
        Choice([value])  # type: ignore[list-item]


def test_no_values() -> None:
    with pytest.raises(UnsatisfiableConstraint):
        Choice([])


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("abc",), "write Choice(['abc'])"),
        (("a", "b"), "write Choice(['a', 'b'])"),
        ((["a"], "b"), "write Choice([['a'], 'b'])"),
        ((7,), "write Choice([7])"),
    ],
)
def test_values_that_are_no_list(arguments: tuple[Any, ...], hint: str) -> None:
    with pytest.raises(ConstraintSyntaxError, match="one list of values") as caught:
        Choice(*arguments)
    assert caught.value.hint == hint


def test_values_and_their_representation() -> None:
    assert Choice(["a", "b"]) == Choice(iter(["b", "a", "b"]))
    assert hash(Choice(["a", "b"])) == hash(Choice(["b", "a"]))
    assert Choice(["a"]) != Choice(["b"])
    assert repr(Choice(["a", 1])) == "Choice(['a', 1])"
    assert len(repr(Choice(map(str, range(100_000))))) < 80


short_texts = st.text("aבé😀", max_size=4)


@pytest.mark.parametrize("builder_name", BUILDER_NAMES)
@settings(max_examples=100)
@given(words=st.sets(short_texts, min_size=1, max_size=12), others=st.sets(short_texts))
def test_exactly_the_words(builder_name: str, words: set[str], others: set[str]) -> None:
    builder = make_builder(builder_name)
    expr = Choice(words).lower(builder)
    for text in words | others:
        assert builder.matches(expr, text.encode()) == (text in words)
    if builder_name == "native":
        assert builder.count_words(expr, 100) == len(words)


def test_no_words_is_the_empty_language() -> None:
    builder = make_builder("native")
    assert builder.is_empty(builder.literals([]))


def test_words_that_end_inside_others_and_share_suffixes() -> None:
    words = ["", "a", "ab", "abc", "abd", "b", "xab", "yab", "מלך", "מלכה", "汉", "汉字"]
    builder = make_builder("native")
    expr = Choice(words).lower(builder)
    assert builder.count_words(expr, 1000) == len(words)
    assert all(builder.matches(expr, word.encode()) for word in words)
    assert not any(builder.matches(expr, text.encode()) for text in ["abcd", "x", "xa", "מל", "字"])


def test_many_words() -> None:
    chooser = random.Random(0)
    words = {"".join(chooser.choices("abcdefghij0123456789", k=chooser.randint(4, 12))) for _ in range(200_000)}
    builder = make_builder("native")
    expr = Choice(words).lower(builder)
    assert expr == Choice(sorted(words)).lower(builder)
    assert builder.count_words(expr, 10**6) == len(words)
    assert len(builder.shortest(builder.concat([builder.literal(b"<"), expr])) or b"") == 5
    for word in chooser.sample(sorted(words), 200):
        assert builder.matches(expr, word.encode())
        assert builder.matches(expr, word.encode()[:-1]) == (word[:-1] in words)
        others = builder.intersection([expr, builder.complement(builder.literal(word.encode()))])
        assert not builder.matches(others, word.encode())


@pytest.mark.parametrize("wrap", ["alone", "between", "twice", "in a frame", "without some"])
def test_masks_of_many_words(wrap: str) -> None:
    """Every token after every beginning of some words, against a look at the list of outputs."""
    chooser = random.Random(wrap)
    letters = "abcé"
    words = sorted({"".join(chooser.choices(letters, k=chooser.randint(0, 5))) for _ in range(300)})
    choice = Choice(words)
    outputs = {
        "alone": set(words),
        "between": {f"[{word}]" for word in words},
        "twice": {a + b for a in words for b in words[:40]},
        "in a frame": {*words, *(f"{word}{end}" for word in words for end in "a]"), *(f"#{word}" for word in words)},
        "without some": set(words[::2]),
    }[wrap]
    longer = ["ab", "ba", "aa", "abc", "bca", "[a", "[ab", "a]", "bc]", "éa", "aé", "a[", "cab", "aaa", "#", "#a"]
    tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in longer] + [b"a\xc3", b"\xa9b"]
    vocabulary = grammask.Vocabulary.from_tokens([*tokens, b"</s>"], eos_token_ids=[len(tokens)])
    constraint: Any = {
        "alone": choice,
        "between": "[" + choice + "]",
        "twice": choice + Choice(words[:40]),
        "in a frame": grammask.Grammar.gbnf('root ::= word [a\\]]? | "#" word', holes={"word": choice}),
        "without some": choice & ~Choice(words[1::2]),
    }[wrap]
    compiled = grammask.compile(constraint, vocabulary)
    prefixes = {output.encode()[:n] for output in outputs for n in range(len(output.encode()) + 1)}
    for prefix in chooser.sample(sorted(prefixes), min(len(prefixes), 250)):
        matcher = compiled.matcher()
        assert matcher.accept_bytes(prefix)
        expected = [index for index, token in enumerate(tokens) if prefix + token in prefixes]
        expected += [len(tokens)] if prefix.decode(errors="replace") in outputs else []
        assert list(matcher.allowed_token_ids()) == expected, prefix
