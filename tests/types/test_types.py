"""Python types as constraints, and the way back from text to value."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import sys
import typing
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Union

import pytest

from grammask import _core
from grammask.constraints.types import constraint_for, typed_output
from grammask.engine.errors import UnsupportedConstraint


class Color(enum.Enum):
    RED = "red"
    THREE = 3


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)
    cached: int = dataclasses.field(default=0, init=False)


class Point(NamedTuple):
    x: float
    label: Optional[str] = None  # noqa: UP045 - the old spelling is part of the test


class Movie(typing.TypedDict, total=False):
    year: int
    name: str


class Serial(Movie):
    seasons: int


UserId = NewType("UserId", int)


@dataclasses.dataclass(frozen=True)
class Limit:
    """What an annotated_types object looks like."""

    ge: Any = None
    lt: Any = None
    min_length: Any = None
    max_length: Any = None
    pattern: Any = None


UTC = datetime.timezone.utc

# (type, [(text, value)], refused texts)
CASES: list[tuple[Any, list[tuple[str, Any]], list[str]]] = [
    (None, [("null", None)], ["1"]),
    (bool, [("true", True)], ["1", '"true"']),
    (int, [("12", 12), ("1.0", 1)], ["1.5", "true"]),
    (float, [("1.5", 1.5), ("2", 2.0)], ['"1"']),
    (str, [('"שלום"', "שלום")], ["1"]),
    (Decimal, [("1.10", Decimal("1.10"))], ['"1"']),
    (UserId, [("5", 5)], ['"5"']),
    (Any, [('{"a": [1.5]}', {"a": [1.5]})], []),
    (Literal["a", 1, True, None], [('"a"', "a"), ("1", 1), ("true", True), ("null", None)], ["2", "false"]),
    (Color, [('"red"', Color.RED), ("3", Color.THREE)], ['"RED"']),
    (list[int], [("[1, 2]", [1, 2]), ("[]", [])], ['["a"]']),
    (set[str], [('["a", "b"]', {"a", "b"})], ['["a","a"]']),
    (tuple[int, str], [('[1, "a"]', (1, "a"))], ["[1]", '[1, "a", 2]']),
    (tuple[int, ...], [("[1, 2, 3]", (1, 2, 3))], ['["a"]']),
    (tuple[()], [("[]", ())], ["[1]"]),
    (dict[str, int], [('{"a": 1}', {"a": 1})], ['{"a": "x"}']),
    (dict[Literal["a", "b"], int], [('{"b": 1}', {"b": 1})], ['{"c": 1}']),
    (Optional[int], [("null", None), ("1", 1)], ['"a"']),  # noqa: UP045
    (Union[int, list[str]], [("1", 1), ('["a"]', ["a"])], ['"a"']),  # noqa: UP007
    (Tree, [('{"value": 1, "children": [{"value": 2}]}', Tree(1, [Tree(2)]))], ["{}", '{"value": 1, "cached": 2}']),
    (Point, [('{"x": 1}', Point(1.0)), ('{"x": 1, "label": null}', Point(1.0, None))], ["[1]"]),
    (Movie, [("{}", {}), ('{"year": 1999}', {"year": 1999})], ['{"title": "x"}']),
    (Serial, [('{"seasons": 2}', {"seasons": 2})], ["{}"]),
    (
        datetime.datetime,
        [("\"2024-02-29T10:00:00Z\"", datetime.datetime(2024, 2, 29, 10, tzinfo=UTC))],
        ['"2023-02-29T10:00:00Z"', '"2016-12-31T23:59:60Z"', '"0000-01-01T00:00:00Z"'],
    ),
    (datetime.date, [('"2024-02-29"', datetime.date(2024, 2, 29))], ['"2023-02-29"']),
    (datetime.time, [('"10:00:00.5Z"', datetime.time(10, 0, 0, 500_000, tzinfo=UTC))], ['"25:00:00Z"']),
    (datetime.timedelta, [('"P1DT2H"', datetime.timedelta(days=1, hours=2))], ['"P1Y"', '"P"', '"PT"']),
    (uuid.UUID, [(f'"{uuid.UUID(int=7)}"', uuid.UUID(int=7))], ['"7"']),
    (Path, [('"a/b"', Path("a/b"))], ["1"]),
    (Annotated[int, Limit(ge=0, lt=10)], [("0", 0), ("9", 9)], ["-1", "10"]),
    (Annotated[str, Limit(min_length=2, pattern="^a")], [('"ab"', "ab")], ['"a"', '"bb"']),
    (Annotated[list[int], Limit(max_length=1)], [("[1]", [1])], ["[1, 2]"]),
    (Annotated[str, {"format": "date"}], [('"2024-01-01"', "2024-01-01")], ['"x"']),
]  # fmt: skip


@pytest.fixture(scope="module")
def accepts() -> Any:
    vocabulary = _core.Vocabulary([bytes([byte]) for byte in range(256)] + [None], [256], 257)

    def accepted(constraint: Any, text: str) -> bool:
        builder = _core.Builder(vocabulary)
        matcher = builder.compile(constraint.lower(builder)).matcher()
        return matcher.accept_bytes(text.encode()) and matcher.is_complete

    return accepted


@pytest.mark.parametrize(("python_type", "good", "bad"), CASES, ids=[str(case[0]) for case in CASES])
def test_types(accepts: Any, python_type: Any, good: list[tuple[str, Any]], bad: list[str]) -> None:
    output = typed_output(python_type)
    for text, value in good:
        assert accepts(output.constraint, text), text
        found = output.parse(text)
        assert found == value
        assert type(found) is type(value)
    for text in bad:
        assert not accepts(output.constraint, text), text


def test_parse_refuses_what_does_not_fit() -> None:
    for python_type, text in [(int, "1.5"), (Color, "4"), (tuple[int], "[]"), (Tree, '{"v": 1}'), (int, "true")]:
        with pytest.raises(ValueError, match=r"expected|not one of|not the members"):
            typed_output(python_type).parse(text)


@pytest.mark.parametrize("python_type", [bytes, complex, dict[int, str], object(), typing.Callable])
def test_types_without_a_json_form(python_type: Any) -> None:
    with pytest.raises(UnsupportedConstraint):
        constraint_for(python_type)


def test_metadata_is_no_type_when_pydantic_is_loaded(accepts: Any) -> None:
    pytest.importorskip("pydantic")
    output = typed_output(Annotated[int, Limit(ge=0, lt=10)])
    assert accepts(output.constraint, "9")
    assert not accepts(output.constraint, "10")


def test_pydantic_models(accepts: Any) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Person(pydantic.BaseModel):
        name: str
        age: Annotated[int, pydantic.Field(ge=0, lt=150)]
        friends: list[Person] = []  # noqa: RUF012 - Pydantic copies defaults

    sys.modules[__name__].__dict__["Person"] = Person
    Person.model_rebuild()
    for python_type, value in [
        (Person, Person(name="a", age=3)),
        (list[Person], [Person(name="a", age=3)]),
        (Person | None, None),
    ]:
        output = typed_output(python_type)
        text = pydantic.TypeAdapter(python_type).dump_json(value).decode()
        assert accepts(output.constraint, text)
        assert output.parse(text) == value
    assert not accepts(constraint_for(Person), json.dumps({"name": "a", "age": 150}))


def test_options_are_passed_on(accepts: Any) -> None:
    compact = constraint_for(Tree, whitespace="compact", property_order="any")
    assert accepts(compact, '{"children":[],"value":1}')
    assert not accepts(compact, '{"value": 1}')
