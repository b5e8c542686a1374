"""Free text with triggers."""

from __future__ import annotations

import random
import re

import pytest

import grammask
from grammask.constraints.special_token import SpecialToken
from grammask.constraints.triggered import Tag, Triggered
from support.grammars import accepts, byte_vocabulary

ADD = Tag("<f=add>", grammask.Regex("[0-9]{1,2}"), "</f>", trigger="<f=")
SAY = Tag("<f=say>", grammask.Text(), "</f>", trigger="<f=")

# (options, text, allowed)
ROWS = [
    ({}, "", True),
    ({}, "no tag at all < f= >", True),
    ({}, "a<f=add>12</f>b", True),
    ({}, "<<f=add>1</f><<f=say>x < y</f>", True),
    ({}, "a<f=", False),
    ({}, "a<f=mul>12</f>", False),
    ({}, "a<f=add>123</f>", False),
    ({}, "<f=say><f=add></f>", True),
    ({}, "<f=say>a</f>b</f>", True),
    ({"at_least": 1}, "plain", False),
    ({"at_least": 2}, "<f=add>1</f> <f=add>1</f>", True),
    ({"at_least": 2}, "<f=add>1</f>", False),
    ({"at_most": 1}, "<f=add>1</f> and more", True),
    ({"at_most": 1}, "<f=add>1</f> <f=add>1</f>", False),
    ({"at_most": 0}, "plain", True),
    ({"at_most": 0}, "<f=add>1</f>", False),
    ({"stop_after_last": True}, "plain", True),
    ({"stop_after_last": True}, "x <f=add>1</f>", True),
    ({"stop_after_last": True}, "x <f=add>1</f> ", False),
    ({"stop_after_last": True, "at_least": 1}, "plain", False),
    ({"stop_after_last": True, "at_most": 0}, "plain", True),
]


@pytest.mark.parametrize(("options", "text", "allowed"), ROWS)
def test_rows(options: dict[str, int], text: str, allowed: bool) -> None:
    assert accepts(grammask.compile(Triggered([ADD, SAY], **options), byte_vocabulary()), text) == allowed  # type: ignore[arg-type]


def test_overlapping_triggers_agree_with_a_regular_expression() -> None:
    """A trigger that overlaps itself: free text runs to the first occurrence."""
    constraint = Triggered([Tag("aab", grammask.Choice(["c"]), "d")])
    compiled = grammask.compile(constraint, byte_vocabulary())
    expected = re.compile(r"(?:(?!aab)[\s\S])*(?:aabcd(?:(?!aab)[\s\S])*)*")
    generator = random.Random(1)
    for _ in range(3000):
        text = "".join(generator.choice(["a", "aab", "aabcd", "b", "c", "d"]) for _ in range(generator.randrange(6)))
        assert accepts(compiled, text) == (expected.fullmatch(text) is not None), text


def test_a_trigger_split_across_tokens_is_seen() -> None:
    tokens = [b"x<", b"<f", b"=add>", b"f=add>", b"1", b"</f>", b"9 ", b"</s>"]
    vocabulary = grammask.Vocabulary.from_tokens(tokens, eos_token_ids=[7])
    matcher = grammask.compile(Triggered([ADD]), vocabulary).matcher()
    every = set(range(8))
    # After "x<" everything may follow. "f=add>" completes the trigger: a digit must come, and "9 " is more than one.
    for token, following in [(0, every), (3, {4}), (4, {4, 5}), (5, every), (1, every), (2, {4})]:
        assert matcher.accept(token)
        assert set(matcher.allowed_token_ids().tolist()) == following, token


def test_special_tokens_are_matched_by_id_alone() -> None:
    vocabulary = grammask.Vocabulary.from_tokens(
        [b"a", b"<go>", b"1", b"", b"", b"</s>"], eos_token_ids=[5], special_token_ids={"<go>": 3, "<end>": 4}
    )
    tag = Tag(SpecialToken("<go>"), grammask.Choice(["1"]), SpecialToken("<end>"))
    matcher = grammask.compile(Triggered([tag], at_most=1), vocabulary).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 1, 2, 3, 5]
    assert matcher.accept(1)  # the name as text is text
    assert matcher.accept(3)
    assert matcher.allowed_token_ids().tolist() == [2]
    assert matcher.accept(2)
    assert matcher.allowed_token_ids().tolist() == [4]
    assert matcher.accept(4)
    assert matcher.allowed_token_ids().tolist() == [0, 1, 2, 5]


def test_unknown_special_tokens_are_refused() -> None:
    with pytest.raises(grammask.UnsupportedConstraint, match="no special token '<go>'"):
        grammask.compile(SpecialToken("<go>"), byte_vocabulary())


@pytest.mark.parametrize(
    ("tags", "options", "message"),
    [
        ([], {}, "no tags"),
        ([Tag("", grammask.Text())], {}, "begins with"),
        ([Tag("<a", grammask.Text()), Tag("<ab", grammask.Text())], {}, "contains the trigger"),
        ([Tag("<a", grammask.Text(), trigger="b")], {}, "not the first part"),
        ([ADD], {"at_least": 2, "at_most": 1}, "counts"),
    ],
)
def test_faults(tags: list[Tag], options: dict[str, int], message: str) -> None:
    with pytest.raises(grammask.ConstraintSyntaxError, match=message):
        Triggered(tags, **options)  # type: ignore[arg-type]
