"""Budgets down to the true minimum, which is found by trying every sequence of tokens of a small vocabulary."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammask
from grammask import BudgetTooSmall, JsonSchema, Regex, Sampling
from grammask.decoding import fewest
from support.models import byte_vocabulary, indifferent_model

LETTERS = [b"a", b"b", b"c"]
WORDS = [b"ab", b"ca", b"abc", b"bbb", b"cabc", b"aaaa"]
MARKS = [bytes([byte]) for byte in b'{}[]":,01-abtruefalsn']
PIECES = [b'{"a":', b'":', b'","', b'"}', b"[1", b",1]", b"]}", b"10", b"null", b'{"a', b"[[", b"]]", b'["', b'"b":[']
MOST = 4


def vocabulary_of(tokens: list[bytes]) -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokens([*tokens, None], eos_token_ids=[len(tokens)])


ABC = vocabulary_of([*LETTERS, *WORDS])
JSON = vocabulary_of([*dict.fromkeys(MARKS), *PIECES])


def least_for_regex(pattern: str) -> int:
    """The fewest tokens of a text that Python's own engine matches; MOST + 1 if more than MOST are needed."""
    for count in range(MOST + 1):
        for tokens in itertools.product([*LETTERS, *WORDS], repeat=count):
            if re.fullmatch(pattern, b"".join(tokens).decode()):
                return count
    return MOST + 1


def least_for_schema(schema: Any) -> int:
    """The same for a schema; the matcher is asked about beginnings only, every sequence of tokens is walked."""
    matcher = grammask.compile(JsonSchema(schema), JSON).matcher()

    def reaches(left: int) -> bool:
        if matcher.is_complete:
            return True
        for token_id in matcher.allowed_token_ids().tolist() if left else []:
            matcher.accept(token_id)
            found = reaches(left - 1)
            matcher.rollback(1)
            if found:
                return True
        return False

    return next((count for count in range(MOST + 1) if reaches(count)), MOST + 1)


def check(
    vocabulary: grammask.Vocabulary, constraint: Any, least: int, is_valid: Callable[[str], Any], draw: st.DataObject
) -> None:
    """Every budget from the least on gives a valid output; below it there is an error."""
    model = indifferent_model(vocabulary)
    seed = draw.draw(st.integers(0, 2**32))
    sampling = Sampling(temperature=draw.draw(st.sampled_from([0.0, 1.0])))
    for limit in range(1, MOST + 1):
        if limit < least:
            with pytest.raises(BudgetTooSmall) as caught:
                model.generate("a", constraint, max_tokens=limit)
            assert not caught.value.exhausted
            assert "took too long" not in str(caught.value)
            continue
        for strategy in (None, "beam"):
            options: dict[str, Any] = {} if strategy else {"sampling": sampling, "seed": seed}
            result = model.generate("a", constraint, max_tokens=limit, strategy=strategy, **options)
            assert result.complete, (result.text, limit, strategy)
            assert len(result.tokens) <= limit
            assert is_valid(result.text), (result.text, limit, strategy)


def regexes() -> st.SearchStrategy[str]:
    letters = st.sampled_from(["a", "b", "c", "[ab]", "[a-c]", "abc", "bb"])

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(inner, inner)
        counts = st.tuples(inner, st.integers(1, 5), st.integers(0, 2))
        return (
            pairs.map("".join)
            | pairs.map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
            | counts.map(lambda row: f"(?:{row[0]}){{{row[1]},{row[1] + row[2]}}}")
        )

    return st.recursive(letters, grow, max_leaves=5)


@given(regexes(), st.data())
def test_regexes_at_every_budget(pattern: str, draw: st.DataObject) -> None:
    is_valid = re.compile(pattern).fullmatch
    check(ABC, Regex(pattern), least_for_regex(pattern), is_valid, draw)


def schemas() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from(
        [{"enum": ["a", "ba", 10]}, {"const": None}, {"type": "integer", "minimum": 5}, {"type": "boolean"}]
    )

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        arrays = st.tuples(inner, st.integers(0, 2)).map(
            lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1], "maxItems": 2}
        )
        objects = st.tuples(inner, inner, st.booleans()).map(
            lambda row: {
                "type": "object",
                "properties": {"a": row[0], "b": row[1]},
                "required": ["a", "b"] if row[2] else ["b"],
                "additionalProperties": False,
            }
        )
        return arrays | objects

    return st.recursive(leaves, grow, max_leaves=3)


@given(schemas(), st.data())
def test_schemas_at_every_budget(schema: Any, draw: st.DataObject) -> None:
    def is_valid(text: str) -> bool:
        jsonschema.validate(json.loads(text), schema)
        return True

    check(JSON, JsonSchema(schema), least_for_schema(schema), is_valid, draw)


@pytest.mark.parametrize(
    ("pattern", "least"),
    [("[a-c]{5}", 2), ("[a-c]{12}", 3), ("a{12}|b{2}", 2), ("(?:aaaa){3}|a{13}c", 3), ("ccc|abcabc", 2)],
)
def test_a_longer_text_of_fewer_tokens(pattern: str, least: int) -> None:
    matcher = grammask.compile(Regex(pattern), ABC).matcher()
    found = fewest.fewest_tokens(matcher.copy(), least, ABC).tokens
    assert found is not None
    assert len(found) <= least
    assert all(matcher.accept(token_id) for token_id in found)
    assert matcher.is_complete
    below = fewest.fewest_tokens(grammask.compile(Regex(pattern), ABC).matcher(), least - 1, ABC)
    assert below == fewest.Search(None, exhausted=False)


def test_a_search_that_is_given_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewest, "MOST_TOKENS_TRIED", 30)
    model = indifferent_model(byte_vocabulary())
    with pytest.raises(BudgetTooSmall, match="there may be one of fewer") as caught:
        model.generate("p", Regex("[a-z]{40}"), max_tokens=20)
    assert (caught.value.needed, caught.value.exhausted) == (40, True)
