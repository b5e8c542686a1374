"""JSON inside answers: fences, words around it, damage."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammask.hosted.repair import NoJson, find_json
from grammask.validation.json_problems import write_json

pytest.importorskip("json_repair")


@pytest.mark.parametrize(
    ("text", "value", "repaired"),
    [
        ('{"a": 1}', {"a": 1}, False),
        ("  [1, 2]\n", [1, 2], False),
        ('"text"', "text", False),
        ("3", 3, False),
        ('```json\n{"a": 1}\n```', {"a": 1}, False),
        ('```\n{"a": 1}\n```', {"a": 1}, False),
        ('Sure! Here it is:\n```json\n{"a": 1}\n```\nHope that helps.', {"a": 1}, False),
        ('```json\n{"a": 1}\n```\nOh, wrong:\n```json\n{"a": 2}\n```', {"a": 2}, False),
        ('The answer is {"a": {"b": [1]}} as you see.', {"a": {"b": [1]}}, False),
        ('<think>{"a": 0}?</think>{"a": 1}', {"a": 1}, False),
        ("{'a': 1}", {"a": 1}, True),
        ('{"a": 1,}', {"a": 1}, True),
        ('{"a": 1', {"a": 1}, True),
        ('{a: "b"}', {"a": "b"}, True),
        ('{"a": 1} // done', {"a": 1}, False),
        ('```json\n{"a": [1, 2\n```', {"a": [1, 2]}, True),
    ],
)
def test_what_models_write(text: str, value: Any, repaired: bool) -> None:
    assert find_json(text) == (value, repaired)


@pytest.mark.parametrize("text", ["", "I cannot do that.", "```\n```", "{", "[[["])
def test_no_json(text: str) -> None:
    with pytest.raises(NoJson):
        find_json(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{" * 5000,
        '"' * 10_000,
        "```" * 5000,
        '{"a":' * 3000,
        "\x00",
        "[1," * 20_000,
        '{"a" ' * 15,
        "[}" * 4000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_answers_end_soon(text: str) -> None:
    with contextlib.suppress(NoJson):
        find_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["{}", "```json\n{}\n```", "  {}  "]))
def test_json_is_never_changed(value: Any, around: str) -> None:
    text = write_json(value)
    if "```" in text:
        return
    assert find_json(around.replace("{}", text)) == (value, False)
