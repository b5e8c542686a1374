"""White space policies: exactly the layouts that json.dumps writes, under any schema."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.json_schema.indentation import MAX_DEPTH
from grammask.engine.errors import ConstraintTooLarge, UnsatisfiableConstraint

pytest.importorskip("jsonschema_rs")

from support import schema_fuzz

LAYOUTS: dict[Any, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "python": {},
    0: {"indent": 0},
    2: {"indent": 2},
    4: {"indent": 4},
}


def built(schema: Any, vocabulary: _core.Vocabulary, whitespace: Any) -> _core.Compiled | None:
    builder = _core.Builder(vocabulary, max_seconds=600)
    try:
        expression = JsonSchema(schema, property_order="any", whitespace=whitespace).lower(builder)
        return builder.compile(expression)
    except (UnsatisfiableConstraint, ValueError):
        return None


@pytest.mark.parametrize("whitespace", LAYOUTS)
def test_a_layout_is_exactly_what_json_dumps_writes(byte_vocabulary: _core.Vocabulary, whitespace: Any) -> None:
    for seed in range(50):
        random_ = random.Random(seed)
        schema = schema_fuzz.Drawer(random_, schema_fuzz.CURRENT).root()
        flexible = built(schema, byte_vocabulary, "flexible")
        strict = built(schema, byte_vocabulary, whitespace)
        for instance in [schema_fuzz.draw_value(random_, 3) for _ in range(15)]:
            text = json.dumps(instance, **LAYOUTS[whitespace])
            accepted = schema_fuzz.accepts(flexible, json.dumps(instance))
            assert schema_fuzz.accepts(strict, text) == accepted, (seed, text)
            for other in LAYOUTS.keys() - {whitespace}:
                elsewhere = json.dumps(instance, **LAYOUTS[other])
                assert elsewhere == text or not schema_fuzz.accepts(strict, elsewhere), (seed, elsewhere)


def test_empty_containers_stay_on_their_line(acceptor: Callable[..., Any]) -> None:
    compiled = acceptor(True, whitespace=2)
    assert compiled.text('{\n  "a": [],\n  "b": {},\n  "c": [\n    1,\n    [\n      2\n    ]\n  ]\n}')
    assert not compiled.text("[\n]")
    assert not compiled.text("[\n 1\n]")
    assert not compiled.text('{"a": 1}')


def test_an_indent_is_followed_to_a_documented_depth(acceptor: Callable[..., Any]) -> None:
    def nested(depth: int) -> Any:
        value: Any = []
        for _ in range(depth):
            value = [value]
        return value

    compiled = acceptor(True, whitespace=1)
    assert compiled.text(json.dumps(nested(MAX_DEPTH), indent=1))
    assert not compiled.text(json.dumps(nested(MAX_DEPTH + 1), indent=1))
    with pytest.raises(ConstraintTooLarge, match="deeper"):
        acceptor({"const": nested(MAX_DEPTH + 1)}, whitespace=1)


@pytest.mark.parametrize("whitespace", ["pretty", -1, 17, True, 2.0, None])
def test_other_policies_are_refused(whitespace: Any) -> None:
    with pytest.raises(ValueError, match="whitespace is one of"):
        JsonSchema(True, whitespace=whitespace)
