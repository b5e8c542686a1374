"""The native Builder against the reference on random expressions: same words, same emptiness, same nullability."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.builders import make_builder

SPELLINGS = ["utf8", "json", "json-canonical"]

code_point_limits = st.sampled_from(
    [
        0,
        0x09,
        0x1F,
        0x20,
        0x22,
        0x2F,
        0x5C,
        0x61,
        0x7F,
        0x80,
        0x7FF,
        0x800,
        0xD7FF,
        0xD900,
        0xE000,
        0xFFFF,
        0x10000,
        0x10FFFF,
    ]
)
ranges = st.lists(st.tuples(code_point_limits, code_point_limits).map(sorted).map(tuple), max_size=3)

trees = st.recursive(
    st.one_of(
        st.tuples(st.just("literal"), st.binary(max_size=3)),
        st.tuples(st.just("byte_set"), st.lists(st.tuples(st.integers(90, 96), st.integers(97, 99)), max_size=2)),
        st.tuples(st.just("chars"), ranges, st.sampled_from(SPELLINGS)),
        st.tuples(st.just("text"), st.text('a"\\\n/é😀', max_size=2), st.sampled_from(SPELLINGS)),
    ),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["concat", "union", "intersection"]), st.lists(inner, max_size=3)),
        st.tuples(st.sampled_from(["complement", "optional"]), inner),
        st.tuples(st.just("repeat"), inner, st.integers(0, 2), st.sampled_from([None, 2, 3])),
    ),
    max_leaves=8,
)

SPELLED = [
    *(text.encode() for text in ("a", "b", '"', "\\", "/", "é", "\n", "😀", "\ud7ff", "\x7f", "\u0800")),
    *(
        b"\\n",
        b"\\/",
        b'\\"',
        b"\\\\",
        b"\\u0061",
        b"\\u00E9",
        b"\\u000a",
        b"\\uD83D\\uDE00",
        b"\\ud800",
        b"\xff",
        b"\xed\xa0\x80",
    ),
]


def build(builder: Any, tree: tuple[Any, ...]) -> int:
    method, *arguments = tree
    if method in ("concat", "union", "intersection"):
        return getattr(builder, method)([build(builder, part) for part in arguments[0]])
    if method in ("complement", "optional", "repeat"):
        return getattr(builder, method)(build(builder, arguments[0]), *arguments[1:])
    return getattr(builder, method)(*arguments)


@settings(max_examples=300)
@given(tree=trees, samples=st.lists(st.lists(st.sampled_from(SPELLED), max_size=4).map(b"".join), max_size=30))
def test_builders_agree(tree: tuple[Any, ...], samples: list[bytes]) -> None:
    native, reference = make_builder("native"), make_builder("reference")
    expr, expected = build(native, tree), build(reference, tree)
    assert native.is_nullable(expr) == reference.is_nullable(expected)
    assert native.is_empty(expr) == reference.is_empty(expected)
    for data in [*SPELLED, *samples]:
        assert native.matches(expr, data) == reference.matches(expected, data), data
    shortest = native.shortest(expr)
    assert (shortest is None) == reference.is_empty(expected)
    if shortest is not None:
        assert reference.matches(expected, shortest)
