"""Random patterns against Python's ``re`` and the ``regex`` package: all short texts are judged alike."""

from __future__ import annotations

import itertools
import json
import re
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammask.constraints.regex import lower_pattern
from grammask.engine.errors import UnsupportedConstraint
from support.builders import BUILDER_NAMES, make_builder
from support.regex_patterns import compositions, patterns

ALPHABET = "ab-"
TEXTS = ["".join(chars) for length in range(6) for chars in itertools.product(ALPHABET, repeat=length)]


def expect_same_texts(pattern: str, oracle: ModuleType, builder_name: str) -> None:
    try:
        compiled = oracle.compile(pattern)
    except oracle.error:  # re: a look-behind of variable width
        return
    for search in (False, True):
        builder = make_builder(builder_name)
        try:
            expr = lower_pattern(pattern, builder, search=search)
        except UnsupportedConstraint:
            assert "(?=" in pattern or "(?!" in pattern
            return
        matching = compiled.search if search else compiled.fullmatch
        for text in TEXTS:
            if not text and r"\B" in pattern:  # before Python 3.14 \B did not match in the empty text
                continue
            assert builder.matches(expr, text.encode()) == bool(matching(text)), (pattern, text, search)


@pytest.mark.parametrize("builder_name", BUILDER_NAMES)
@settings(max_examples=100)
@given(pattern=patterns)
def test_same_texts_as_re(builder_name: str, pattern: str) -> None:
    expect_same_texts(pattern, re, builder_name)


@settings(max_examples=150)
@given(pattern=patterns)
def test_same_texts_as_regex_with_look_behinds_of_any_width(pattern: str) -> None:
    oracle = pytest.importorskip("regex", reason="the regex package is not installed")
    expect_same_texts(pattern, oracle, "native")


@settings(max_examples=60)
@given(pattern=patterns.map(lambda pattern: pattern.replace("b", r"\n")), flags=st.sampled_from(["m", "s", "ms", "i"]))
def test_same_texts_as_re_across_lines(pattern: str, flags: str) -> None:
    python_flags = sum(getattr(re, letter.upper()) for letter in flags)
    # Python's $ also matches before a last newline, and its . stops at \n only: \Z where not in multiline mode.
    python_pattern = pattern if "m" in flags else pattern.replace("$", r"\Z")
    try:
        compiled = re.compile(python_pattern, python_flags)
    except re.error:
        return
    builder = make_builder("native")
    try:
        expr = lower_pattern(pattern, builder, search=True, flags=flags)
    except UnsupportedConstraint:
        return
    for text in ("".join(chars) for length in range(1, 5) for chars in itertools.product("aA\n", repeat=length)):
        assert builder.matches(expr, text.encode()) == bool(compiled.search(text)), (pattern, text, flags)


spelled_characters = {
    '"': ['\\"', "\\u0022"],
    "\\": ["\\\\", "\\u005c", "\\u005C"],
    "\n": ["\\n", "\\u000a", "\\u000A"],
    "\x01": ["\\u0001"],
    "/": ["/", "\\/", "\\u002f"],
    "a": ["a", "\\u0061"],
    "é": ["é", "\\u00e9", "\\u00E9"],
    "😀": ["😀", "\\ud83d\\ude00", "\\uD83D\\uDE00"],
}


@pytest.mark.parametrize("builder_name", BUILDER_NAMES)
@settings(max_examples=60)
@given(
    pattern=st.recursive(
        st.sampled_from(["a", "é", '"', r"\\", r"\n", "[^a]", "[^]", r"\W", "/", "😀", r"\x01", "^", "$", r"\b"]),
        compositions,
        max_leaves=6,
    ),
    text=st.lists(st.sampled_from(sorted(spelled_characters)), max_size=6),
    data=st.data(),
)
def test_spelled_in_json(builder_name: str, pattern: str, text: list[str], data: st.DataObject) -> None:
    """Inside a JSON string a pattern means the same: every spelling of a text is accepted, or none is."""
    builder = make_builder(builder_name)
    try:
        plain = lower_pattern(pattern, builder, search=True)
        spelled = lower_pattern(pattern, builder, spelling="json", search=True)
        canonical = lower_pattern(pattern, builder, spelling="json-canonical", search=True)
    except UnsupportedConstraint:
        return
    expected = builder.matches(plain, "".join(text).encode())
    spelling = "".join(data.draw(st.sampled_from(spelled_characters[char])) for char in text)
    assert json.loads(f'"{spelling}"') == "".join(text)
    assert builder.matches(spelled, spelling.encode()) == expected
    canonical_spelling = json.dumps("".join(text), ensure_ascii=False)[1:-1]
    assert builder.matches(canonical, canonical_spelling.encode()) == expected
    if spelling != canonical_spelling:
        assert not builder.matches(canonical, spelling.encode())
