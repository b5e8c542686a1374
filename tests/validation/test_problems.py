"""Problems, checks, and the exact judgement of JSON values."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammask import JsonSchema
from grammask.validation import CheckError, Problem, across, exists_in, field
from grammask.validation.checks import run_check
from grammask.validation.json_problems import JsonProblems, read_json, write_json
from grammask.validation.pinning import pin

ORDER = {
    "$ref": "#/$defs/Order",
    "$defs": {
        "Order": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "pattern": "^[0-9]{3}$"},
                "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "maxItems": 3},
                "total": {"type": "number", "minimum": 0},
                "note": {"type": ["string", "null"]},
            },
            "required": ["id", "items"],
            "additionalProperties": False,
        },
        "Item": {
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 1}, "count": {"type": "integer", "minimum": 1}},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
}
"""A record behind a reference, as types make it."""

GOOD: dict[str, Any] = {"id": "123", "items": [{"name": "a", "count": 2}], "total": 3.5}


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({}, []),
        ({"id": "12"}, ["/id"]),
        ({"id": "12", "total": -1}, ["/id", "/total"]),
        ({"items": [{"name": "a"}, {"name": ""}, {"count": 0}]}, ["/items/1/name", "/items/2/count", "/items/2"]),
        ({"extra": 1}, [""]),
        ({"id": 5, "extra": 1}, ["/id", ""]),
        ({"items": [{"name": "a"}] * 4}, ["/items"]),
    ],
)
def test_problems_have_places(change: dict[str, Any], pointers: list[str]) -> None:
    found = JsonProblems(JsonSchema(ORDER)).find({**GOOD, **change})
    assert [problem.pointer for problem in found] == pointers


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "123", 'é\n"']),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "items", "name", "count", "total", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(VALUES)
def test_the_verdict_is_that_of_jsonschema(value: Any) -> None:
    judge, oracle = JsonProblems(JsonSchema(ORDER)), jsonschema.Draft202012Validator(ORDER)
    assert (judge.find(value) == []) == oracle.is_valid(value)


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_values_are_written_as_they_were_read(text: str, number: float) -> None:
    written = json.dumps({"text": text, "number": number, "list": [1, None, True]})
    assert json.loads(write_json(read_json(written))) == json.loads(written)


def test_no_digit_is_lost_before_the_check() -> None:
    judge = JsonProblems(JsonSchema({"type": "number", "multipleOf": 0.01}))
    assert judge.find(read_json("0.1234567890123456789")) != []
    assert judge.find(read_json("12345678901234567890.12")) == []


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "NaN", "[1,", "", "{'a': 1}"])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the library's
        read_json(text)


# -- checks


def test_what_a_check_may_say() -> None:
    def even(value: int) -> bool:
        """the number must be even"""
        return value % 2 == 0

    def raising(value: int) -> None:
        raise CheckError("one", Problem("two", ("a",)))

    assert run_check(even, 2) == []
    assert run_check(even, 3) == [Problem("the number must be even")]
    assert run_check(lambda value: None, 3) == []
    assert run_check(lambda value: "wrong", 3) == [Problem("wrong")]
    assert [str(problem) for problem in run_check(raising, 3)] == ["one", "/a: two"]


def test_fields_and_rules_across_them() -> None:
    value = {"items": [{"n": 1}, {"n": 2}, {"n": 3}], "total": 7}
    odd = field("items.*.n", lambda n: n % 2 == 1, "must be odd")
    assert [problem.pointer for problem in run_check(odd, value)] == ["/items/1/n"]
    total = across(["total", "items"], lambda v: v["total"] == sum(i["n"] for i in v["items"]), "must add up")
    (problem,) = run_check(total, value)
    assert problem.places == (("total",), ("items",))
    assert run_check(field("absent.place", lambda v: False), value) == []


def test_a_look_up_offers_what_there_is() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE orders(id TEXT); INSERT INTO orders VALUES ('90-13388'), ('12-00001');")
    check = exists_in(database, "orders", "id", name="order")
    assert run_check(check, {"order": "90-13388"}) == []
    (problem,) = run_check(check, {"order": "90-1338"})
    assert problem.pointer == "/order"
    assert "'90-13388'" in problem.message
    with pytest.raises(ValueError, match="no plain name"):
        exists_in(database, "orders; DROP TABLE orders", "id")


# -- narrowing


PINNED: list[Any] = [
    ([Problem("x", ("id",))], {"id": "456"}, {"id": "123"}),
    (
        [Problem("x", ("items", 0, "count"))],
        {"items": [{"name": "a", "count": 9}]},
        {"items": [{"name": "b", "count": 9}]},
    ),
    ([Problem("x", ("total",), (("id",),))], {"id": "456", "total": 0}, {"items": []}),
]


@pytest.mark.parametrize(("problems", "good", "bad"), PINNED)
def test_what_was_right_is_forced(problems: list[Problem], good: dict[str, Any], bad: dict[str, Any]) -> None:
    narrowed, kept = pin(ORDER, GOOD, problems)
    oracle = jsonschema.Draft202012Validator(narrowed)
    assert kept
    assert oracle.is_valid({**GOOD, **good})
    assert not oracle.is_valid({**GOOD, **bad})


@settings(max_examples=200)
@given(VALUES, st.sampled_from(["id", "items", "total"]))
def test_narrowing_only_narrows(value: Any, place: str) -> None:
    narrowed, _ = pin(ORDER, GOOD, [Problem("x", (place,))])
    for candidate in (value, {**GOOD, place: value}):
        if JsonProblems(JsonSchema(narrowed)).find(candidate) == []:
            assert JsonProblems(JsonSchema(ORDER)).find(candidate) == []


def test_a_problem_without_a_place_keeps_nothing() -> None:
    assert pin(ORDER, GOOD, [Problem("x")]) == (ORDER, [])
