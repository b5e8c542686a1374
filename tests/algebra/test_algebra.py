"""What the operators on constraints mean, and what they refuse."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammask.constraints.algebra import (
    Complement,
    Exactly,
    Intersection,
    Optional,
    Repeat,
    Sequence,
    Text,
    Union,
)
from grammask.constraints.base import Constraint
from grammask.constraints.choice import Choice
from grammask.constraints.regex import Regex
from grammask.engine.errors import ConstraintError, ConstraintSyntaxError, ConstraintTooLarge, UnsupportedConstraint
from support.builders import BUILDER_NAMES, make_builder

ROWS: list[tuple[Constraint, list[str], list[str]]] = [
    ("Answer: " + Choice(["yes", "no"]) + "\n", ["Answer: yes\n", "Answer: no\n"], ["Answer: yes", "yes\n"]),
    (Choice(["a"]) | "b" | Regex("c+"), ["a", "b", "ccc"], ["", "ab"]),
    ("x" | Choice(["y"]), ["x", "y"], ["xy"]),
    (Regex("[a-z]+") & Text(max_chars=3), ["a", "abc"], ["", "abcd", "1"]),
    ("abc" & Regex("[a-z]+"), ["abc"], ["ab"]),
    (Regex("[a-z]+") & ~Choice(["foo", "bar"]), ["fo", "fooo", "baz"], ["foo", "bar", ""]),
    (~Regex(".*"), ["\n", "a\nb"], ["", "abc"]),
    (~~Choice(["שלום", "سلام"]), ["שלום", "سلام"], ["", "שלו"]),
    (Choice(["汉", "字"]).repeat(2, 3), ["汉字", "汉汉汉"], ["汉", "汉字汉字", ""]),
    (Choice(["a"]).repeat(2), ["aa", "aaaaa"], ["a", ""]),
    (Choice(["a"]).repeat(0, 0), [""], ["a"]),
    (Regex("a").optional() + "b", ["b", "ab"], ["a", "aab"]),
    ((Choice(["a", "b"]) + ",").repeat(0, 100_000) + ".", [".", "a,b,."], ["a.", "a,b"]),
    (Text(), ["", "any\ntext 😀"], []),
    (Text(2, 3), ["שם", "👩\u200d👩"[:3]], ["א", "abcd", ""]),
]


@pytest.mark.parametrize("builder_name", BUILDER_NAMES)
@pytest.mark.parametrize(("constraint", "accepted", "refused"), ROWS, ids=lambda value: str(value)[:60])
def test_row(constraint: Constraint, accepted: list[str], refused: list[str], builder_name: str) -> None:
    builder = make_builder(builder_name)
    expr = constraint.lower(builder)
    assert constraint.is_regular
    assert [text for text in accepted if not builder.matches(expr, text.encode())] == []
    assert [text for text in refused if builder.matches(expr, text.encode())] == []


TEXTS = ["".join(chars) for length in range(5) for chars in itertools.product("ab", repeat=length)]

leaves = st.one_of(
    st.text("ab", max_size=3).map(Exactly),
    st.lists(st.text("ab", max_size=3), min_size=1, max_size=3).map(Choice),
    st.sampled_from(["a*", "(a|b)b?", "[ab]{2}", "^b|a$"]).map(Regex),
    st.builds(Text, st.integers(0, 1), st.integers(1, 3)),
)
constraints = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a: ~a, inner),
        st.builds(lambda a: a.optional(), inner),
        st.builds(lambda a, low, more: a.repeat(low, low + more), inner, st.integers(0, 2), st.integers(0, 2)),
    ),
    max_leaves=6,
)


def words(constraint: Constraint) -> set[str]:
    """The texts over a and b of at most four characters that a constraint allows, by the definition of its nodes."""
    match constraint:
        case Sequence(parts=parts):
            return joined([words(part) for part in parts])
        case Union(parts=parts):
            return set().union(*map(words, parts))
        case Intersection(parts=parts):
            return set(TEXTS).intersection(*map(words, parts))
        case Complement(body=body):
            return set(TEXTS) - words(body)
        case Optional(body=body):
            return words(body) | {""}
        case Repeat(body=body, low=low, high=high):
            assert high is not None
            return set().union(*(joined([words(body)] * count) for count in range(low, high + 1)))
    builder = make_builder("reference")
    expr = constraint.lower(builder)
    return {text for text in TEXTS if builder.matches(expr, text.encode())}


def joined(languages: list[set[str]]) -> set[str]:
    result = {""}
    for language in languages:
        result = {text for text in map("".join, itertools.product(result, language)) if len(text) <= 4}
    return result


@settings(max_examples=100)
@given(constraint=constraints)
def test_operators_mean_what_they_say(constraint: Constraint) -> None:
    builder = make_builder("native")
    expr = constraint.lower(builder)
    assert {text for text in TEXTS if builder.matches(expr, text.encode())} == words(constraint)


class Tree(Constraint):
    """A constraint that is not regular."""

    def lower(self, builder):  # type: ignore[no-untyped-def]
        return builder.call(builder.literal(b"x"))


def test_only_regular_constraints_are_intersected_and_complemented() -> None:
    tree = Tree()
    assert not (tree + "a").is_regular
    assert not (tree | Regex("a")).is_regular
    assert not tree.repeat(1, 2).is_regular
    for build in (lambda: ~tree, lambda: tree & "a", lambda: "a" & tree, lambda: Regex("a") & (tree + "b")):
        with pytest.raises(UnsupportedConstraint, match="regular"):
            build()


def test_values() -> None:
    assert "a" + Regex("b") + "c" == Exactly("a") + Regex("b") + Exactly("c")
    assert hash(Regex("a") | "b") == hash(Regex("a") | "b")
    assert (Regex("a") | "b" | "c") == Union((Regex("a"), Exactly("b"), Exactly("c")))
    assert Regex("a") + "b" != Regex("a") + "c"
    assert repr(~Regex("a")) == "Complement(body=Regex('a'))"


@pytest.mark.parametrize(
    "build",
    [
        lambda: Regex("a") + 1,
        lambda: 1 + Regex("a"),
        lambda: Regex("a") | None,
        lambda: Regex("a") & b"a",
    ],
)
def test_other_operands_are_type_errors(build: object) -> None:
    with pytest.raises(TypeError):
        build()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: Regex("a").repeat(-1), ConstraintSyntaxError),
        (lambda: Regex("a").repeat(3, 2), ConstraintSyntaxError),
        (lambda: Regex("a").repeat(0, 2**31), ConstraintTooLarge),
        (lambda: Text(5, 4), ConstraintSyntaxError),
        (lambda: Regex("a") + "\ud800", ConstraintSyntaxError),
    ],
)
def test_bad_arguments(build: object, error: type[ConstraintError]) -> None:
    with pytest.raises(error):
        build()  # type: ignore[operator]


def nested(levels: int) -> Constraint:
    constraint: Constraint = Regex("a")
    for _ in range(levels):
        constraint = ("(" + constraint + ")") | "b"
    return constraint


def test_deep_compositions_are_refused_and_long_ones_are_not() -> None:
    with pytest.raises(ConstraintTooLarge):
        nested(1000)
    deep = nested(50).lower(make_builder("native"))
    assert make_builder("native").matches(deep, b"(" * 50 + b"a" + b")" * 50)
    long: Constraint = Regex("a")
    for _ in range(1000):
        long = long + "b"
    builder = make_builder("native")
    assert builder.matches(long.lower(builder), b"a" + b"b" * 1000)
