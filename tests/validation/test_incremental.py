"""Checks while an output is written: which parts are judged, and that every way is found that there is."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from grammask import Choice, FunctionModel, JsonSchema, Regex, sql_constraint
from grammask.models.base import Prompt
from grammask.validation import ChecksFailed, Part, SqlCheck, generate_checked, sql_parts
from grammask.validation.parts import json_values, lines, words
from support.models import END, WritingModel, byte_vocabulary, indifferent_model

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class WishfulModel(FunctionModel):
    """Wants to write one of several texts, the first ones more than the last."""

    def __init__(self, texts: list[str]) -> None:
        self._goals = [text.encode() for text in texts]
        super().__init__(byte_vocabulary(), self._next)

    def encode(self, prompt: Prompt) -> list[int]:
        self._prompt = super().encode(prompt)
        return self._prompt

    def _next(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        logits = np.zeros(self.vocabulary.size, dtype=np.float32)
        written = self.vocabulary.decode(tokens[len(self._prompt) :])
        for rank, goal in enumerate(self._goals):
            if goal.startswith(written):
                token = goal[len(written)] if len(goal) > len(written) else END
                logits[token] = max(logits[token], 30.0 - rank)
        return logits


def values_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """The values of a JSON value with their paths, inner ones first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*itertools.chain.from_iterable(values_of(item, (*path, key)) for key, item in inner), (path, value)]


@given(JSON, st.booleans())
def test_values_of_json(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    parts = json_values(text, True)
    assert [(part.path, part.value) for part in parts] == values_of(value)
    for part in parts:
        assert json.loads(part.text) == part.value
        assert text[part.start : part.end] == part.text


@given(JSON)
def test_beginnings_show_a_beginning_of_the_parts(value: Any) -> None:
    text = json.dumps(value)
    whole = json_values(text, True)
    for length in range(len(text)):
        parts = json_values(text[:length], False)
        assert parts == whole[: len(parts)]
        assert len(parts) <= len([part for part in whole if part.end <= length])


def test_words_and_lines() -> None:
    assert [part.text for part in words("one two thr", False)] == ["one", "two"]
    assert [part.text for part in words("one two thr", True)] == ["one", "two", "thr", "one two thr"]
    assert [part.text for part in lines("a b\nc\nd", False)] == ["a b", "c"]


SCHEMA = JsonSchema(
    {
        "type": "object",
        "properties": {"a": {"enum": [1, 2, 3]}, "b": {"enum": ["x", "y", "z"]}, "c": {"type": "boolean"}},
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    },
    whitespace="compact",
)


@pytest.mark.parametrize("wanted", list(itertools.product([1, 2, 3], "xyz", [False, True])))
def test_the_one_output_that_passes_is_found(wanted: tuple[int, str, bool]) -> None:
    """A check that refuses single values leads to the only output left, whatever the model prefers."""
    expected = dict(zip("abc", wanted, strict=True))
    seen: list[Part] = []

    def check(part: Part) -> bool:
        seen.append(part)
        assert part.path is not None
        return not part.path or part.value == expected[part.path[0]]

    result = generate_checked(WritingModel('{"a":1,"b":"x","c":false}'), "go", SCHEMA, check)
    assert result.value == expected
    assert json.loads(result.text) == expected
    refused = [part for part in seen if part.path and part.value != expected[part.path[0]]]
    assert len(result.history) >= len({part.so_far for part in refused})
    assert (not result.history) == (wanted == (1, "x", False))


@pytest.mark.parametrize("wanted", list(itertools.product([1, 2, 3], "xyz", [False, True]))[::5])
def test_a_check_of_the_whole_finds_it_as_well(wanted: tuple[int, str, bool]) -> None:
    expected = dict(zip("abc", wanted, strict=True))
    result = generate_checked(
        indifferent_model(),
        "go",
        SCHEMA,
        lambda part: part.value == expected if part.path == () else True,
        rejections=400,
        per_part=400,
    )
    assert result.value == expected


def test_each_part_is_judged_once() -> None:
    seen: list[str] = []
    generate_checked(WritingModel("one two three"), "go", None, lambda part: seen.append(part.text), parts="words")
    assert seen == ["one", "two", "three", "one two three"]


def test_nothing_is_lost_when_nothing_is_refused() -> None:
    model = WritingModel('{"a":2,"b":"z","c":true}')
    plain = model.generate("go", SCHEMA)
    reads = list(model.reads)
    model.reads.clear()
    checked = generate_checked(model, "go", SCHEMA, lambda part: None)
    assert checked.text == plain.text
    assert checked.usage.model_calls == len(model.reads) <= len(reads) + 1
    assert checked.usage.forced_tokens > 0


def test_it_gives_up() -> None:
    with pytest.raises(ChecksFailed, match="no such word") as found:
        generate_checked(
            WritingModel("aaa"), "go", Regex("[ab]{3}"), lambda part: "no such word", parts="whole", rejections=5
        )
    assert len(found.value.rejections) == 5
    with pytest.raises(ChecksFailed, match="every way"):
        generate_checked(WritingModel("a"), "go", Choice(["a", "b"]), lambda part: False, parts="whole")


def test_a_way_that_is_too_long_is_given_up() -> None:
    result = generate_checked(
        WritingModel("a" * 40), "go", Regex("a+|b"), lambda part: True, parts="whole", max_tokens=10
    )
    assert len(result.text) <= 10


def test_sql_against_a_database() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT, country TEXT);"
        "INSERT INTO city VALUES (1, 'Bonn', 'DE'), (2, 'Lyon', 'FR'), (3, 'O''Neill', 'US');"
    )
    query = "SELECT name FROM city WHERE country = '{}';"
    model = WishfulModel([query.format(country) for country in ("GE", "GB", "DD", "DE", "FR")])
    result = generate_checked(model, "go", sql_constraint(database), SqlCheck(database), parts=sql_parts)
    assert [rejection.text for rejection in result.history] == ["'GE'", "'GB'", "'DD'"]
    assert database.execute(result.text).fetchall() == [("Bonn",)]
    # Only the value was written again.
    assert all(rejection.taken_back <= 5 for rejection in result.history)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT name FROM city WHERE country = 'DE';", None),
        ("SELECT name FROM city WHERE country = 'XX';", "no row has country 'XX'"),
        ("SELECT name FROM city WHERE name = 'O''Neill' AND id = 3;", None),
        ("SELECT name FROM city WHERE id = 9;", "no row has id 9"),
        ("SELECT name FROM city WHERE id > 9;", "finds nothing"),
        ("SELECT nothing FROM city;", "the query fails"),
        ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n;", "interrupted"),
    ],
)
def test_what_is_wrong_with_a_query(query: str, message: str | None) -> None:
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT, country TEXT);"
        "INSERT INTO city VALUES (1, 'Bonn', 'DE'), (3, 'O''Neill', 'US');"
    )
    check = SqlCheck(database, steps=100_000)
    found = [fault for part in sql_parts(query, True) if (fault := check(part)) is not None]
    assert (not found) if message is None else message in found[0]
