"""Partial values: every beginning of a text parses, members come in order, and the end is the whole value."""

from __future__ import annotations

import datetime
import enum
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammask
from grammask import PartialText
from grammask.decoding import partial_json, partial_reader
from support.models import WritingModel

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def is_beginning(partial: Any, whole: Any) -> bool:
    """Whether a partial value is what one can know of the whole while it is being written."""
    if isinstance(partial, PartialText):
        return isinstance(whole, str) and whole.startswith(partial)
    if isinstance(partial, dict) and isinstance(whole, dict):
        names = list(whole)
        return list(partial) == names[: len(partial)] and all(
            is_beginning(partial[name], whole[name]) for name in partial
        )
    if isinstance(partial, list) and isinstance(whole, list):
        return len(partial) <= len(whole) and all(map(is_beginning, partial, whole))
    return type(partial) is type(whole) and partial == whole


@given(JSON_VALUES, st.sampled_from([None, 2]), st.booleans())
def test_every_beginning_parses(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for end in range(len(text) + 1):
        partial = partial_json(text[:end])
        assert partial is None or is_beginning(partial, value), text[:end]
    assert partial_json(text + " ") == value  # the blank tells that a number has ended


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("{", {}),
        ('{"na', {}),
        ('{"name"', {}),
        ('{"name": ', {}),
        ('{"name": "A', {"name": "A"}),
        ('{"name": "A\\', {"name": "A"}),
        ('{"name": "A\\u00e', {"name": "A"}),
        ('{"name": "A\\u00e9', {"name": "Aé"}),
        ('{"emoji": "\\ud83d\\ude8', {"emoji": ""}),
        ('{"emoji": "\\ud83d\\ude80', {"emoji": "🚀"}),
        ('{"n": 12', {}),
        ('{"n": 12,', {"n": 12}),
        ('{"t": tru', {}),
        ('{"t": true', {"t": True}),
        ("[1, [2, 3", [1, [2]]),
        ("[1, [2, 3]", [1, [2, 3]]),
        ("nonsense", None),
        ('{"a": 1 "b"', {"a": 1}),
    ],
)
def test_table(text: str, value: Any) -> None:
    assert partial_json(text) == value


def test_what_is_being_written_is_told_apart() -> None:
    assert isinstance(partial_json('["whole", "par')[1], PartialText)
    assert not isinstance(partial_json('["whole", "par')[0], PartialText)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Item:
    name: str
    size: Size


@dataclass
class Order:
    day: datetime.date
    kind: Literal["gift", "own"]
    items: list[Item]
    note: str | None = None
    extra: dict[str, int] = field(default_factory=dict)


ORDER = (
    '{"day": "2024-02-29", "kind": "gift", "items": [{"name": "pot", "size": "large"}], '
    '"note": "soon", "extra": {"a": 1}}'
)


def test_dataclasses_lack_what_has_not_been_written() -> None:
    read = partial_reader(Order)
    value = read('{"day": "2024-02-29", "kind": "gi')
    assert isinstance(value, Order)
    assert value.day == datetime.date(2024, 2, 29)
    assert repr(value) == "Order(day=datetime.date(2024, 2, 29))"
    for name in ("kind", "items", "note", "extra"):
        assert not hasattr(value, name)
    deeper = read(ORDER[: ORDER.index("large")])
    assert deeper.items[0].name == "pot"
    assert not hasattr(deeper.items[0], "size")
    assert read(ORDER).items == [Item("pot", Size.LARGE)]
    assert read(ORDER) == grammask.typed_output(Order).parse(ORDER)
    assert read(ORDER[: ORDER.index('n", "extra')]).note == "soo"


@pytest.mark.parametrize("end", range(len(ORDER) + 1))
def test_typed_values_at_every_beginning(end: int) -> None:
    value = partial_reader(Order)(ORDER[:end])
    assert value is None or isinstance(value, Order)
    repr(value)


class Point(NamedTuple):
    x: int
    y: int


class Shape(TypedDict, total=False):
    points: Annotated[list[Point], {"minItems": 1}]
    label: str


def test_other_types() -> None:
    read = partial_reader(Shape)
    assert read('{"points": [{"x": 1, "y": 2}, {"x": 3') == {"points": [{"x": 1, "y": 2}, {}]}
    assert partial_reader(tuple[int, str])('[1, "a') == [1, "a"]
    assert partial_reader(int | list[str])('["a", "b') == ["a", "b"]
    assert partial_reader(None)("free te") == "free te"
    assert partial_reader(grammask.Choice(["yes"]))("ye") == "ye"
    assert partial_reader(grammask.JsonValue())('{"a": [') == {"a": []}


def test_pydantic_models() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        when: datetime.date
        count: int = 3

    class Outer(pydantic.BaseModel):
        title: str = pydantic.Field(alias="theTitle")
        inner: Inner

    value = partial_reader(Outer)('{"theTitle": "A", "inner": {"when": "2024-02-29", "cou')
    assert isinstance(value, Outer)
    assert isinstance(value.inner, Inner)
    assert (value.title, value.inner.when) == ("A", datetime.date(2024, 2, 29))
    assert value.inner.model_fields_set == {"when"}
    assert not hasattr(value.inner, "count")


def test_a_stream_yields_partial_values() -> None:
    stream = WritingModel('{"name": "Ada", "size": "small"}').stream("p", Item)
    values = list(stream.values())
    assert [getattr(value, "name", None) for value in values][:5] == [None, "", "A", "Ad", "Ada"]
    assert values[-1] == stream.result.value == Item("Ada", Size.SMALL)
    assert type(values[-1]) is Item
    assert stream.partial == values[-1]
