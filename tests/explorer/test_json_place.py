"""Where the end of an unfinished JSON text is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.explorer.json_place import offset_of, place_in, schemas_at

ROWS = [
    # text, pointer, where
    ("", "", "value"),
    ("  ", "", "value"),
    ("{", "", "key"),
    ('{"a', "", "in key"),
    ('{"a"', "/a", "colon"),
    ('{"a":', "/a", "value"),
    ('{"a": "x', "/a", "in string"),
    ('{"a": "x\\"', "/a", "in string"),
    ('{"a": "x\\\\"', "/a", "after value"),
    ('{"a": "x"', "/a", "after value"),
    ('{"a": 1', "/a", "in number"),
    ('{"a": -', "/a", "in number"),
    ('{"a": 1 ', "/a", "after value"),
    ('{"a": tr', "/a", "in literal"),
    ('{"a": true', "/a", "after value"),
    ('{"a": 1, ', "", "key"),
    ('{"a": [', "/a/0", "value"),
    ('{"a": [1, ', "/a/1", "value"),
    ('{"a": [1, {"b": ', "/a/1/b", "value"),
    ('{"a": [1, {"b": 2}', "/a/1", "after value"),
    ('{"a": [1], "c/d~": ', "/c~1d~0", "value"),
    ('{"a": {"b": 1}}', "", "end"),
    ("[1, 2]", "", "end"),
    ("12", "", "in number"),
]


@pytest.mark.parametrize(("text", "pointer", "where"), ROWS)
def test_places(text: str, pointer: str, where: str) -> None:
    place = place_in(text)
    assert (place.pointer, place.where) == (pointer, where)


def test_keys_of_the_innermost_object() -> None:
    assert place_in('{"a": {"x": 1}, "b": 2, ').keys == ("a", "b")
    assert place_in('{"a": {"x": 1, ').keys == ("x",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_whole_texts(value: object, ascii_only: bool) -> None:
    """The pieces of a text cover it, and a whole value leaves the place at the root."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    place = place_in(text)
    assert place.pointer == ""
    assert place.where == ("in number" if isinstance(value, (int, float)) and not isinstance(value, bool) else "end")
    assert place.lexemes[0].start == 0
    assert place.lexemes[-1].end == len(text)
    for before, after in zip(place.lexemes, place.lexemes[1:], strict=False):
        assert before.end == after.start


@given(JSON, st.data())
def test_every_beginning_has_a_place(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text)))
    place = place_in(text[:cut])
    here = value
    for part in place.path[:-1] if place.where != "key" else place.path:
        here = here[part]  # type: ignore[index]


SCHEMA = {
    "properties": {
        "a": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]},
        "list": {"prefixItems": [{"const": 1}], "items": {"const": 2}},
    },
    "additionalProperties": {"type": "integer"},
    "$defs": {"x": {"properties": {"b/c": {"$ref": "#"}}}},
}


@pytest.mark.parametrize(
    ("path", "pointers"),
    [
        ((), [""]),
        (("a",), ["/properties/a", "/properties/a/anyOf/0", "/$defs/x", "/properties/a/anyOf/1"]),
        (("a", "b/c"), ["/$defs/x/properties/b~1c", ""]),
        (("list", 0), ["/properties/list/prefixItems/0"]),
        (("list", 3), ["/properties/list/items"]),
        (("other",), ["/additionalProperties"]),
        (("other", "deep"), []),
    ],
)
def test_places_in_the_schema(path: tuple[str | int, ...], pointers: list[str]) -> None:
    assert [pointer for pointer, _ in schemas_at(SCHEMA, path)] == pointers


def test_references_that_lead_nowhere() -> None:
    assert schemas_at({"$ref": "#/nowhere"}, ("a",)) == []
    assert [pointer for pointer, _ in schemas_at({"$ref": "#"}, ())] == [""]
    assert schemas_at(True, ("a",)) == []


@given(JSON, st.sampled_from([None, 1]))
def test_offsets_of_pointers(value: object, indent: int | None) -> None:
    """Each value is found where it begins: decoding from there gives the value."""
    text = json.dumps(value, indent=indent)
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        pointer, here = waiting.pop()
        offset = offset_of(text, pointer)
        assert offset is not None
        assert json.JSONDecoder().raw_decode(text, offset)[0] == here
        children = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        for part, child in children:
            waiting.append((f"{pointer}/{str(part).replace('~', '~0').replace('/', '~1')}", child))


def test_offsets_of_what_is_not_there() -> None:
    assert offset_of('{"a": 1}', "/b") is None
    assert offset_of("[1, 2]", "/5") is None
