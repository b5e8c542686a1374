"""Every mask is what the definition says: a token is allowed if and only if the text with it begins a valid output.

The definition is computed by a slow recogniser (``support/recogniser.py``) for random expressions over random small
vocabularies whose tokens span several bytes, frames and characters.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grammask import _core
from support.exactness import Judge
from support.expressions import Expression, compile_native, recognise

# GRAMMASK_EXAMPLES=20 looks twenty times as long.
EXAMPLES = 10 * int(os.environ.get("GRAMMASK_EXAMPLES", "1"))
PLACES = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def judge(
    root: Expression, rules: dict[str, Expression], tokens: list[bytes | None], seed: int, walks: int = 3
) -> None:
    """Walks at random through the language of an expression over a vocabulary."""
    alphabet = sorted({byte for token in tokens for byte in token or b""})
    recogniser = recognise(root, rules, alphabet)
    texts = [*tokens, None]
    vocabulary = _core.Vocabulary(texts, [len(tokens)], len(texts))
    if recogniser.is_empty:
        with pytest.raises(ValueError, match="empty"):
            compile_native(vocabulary, root, rules)
        return
    compiled = compile_native(vocabulary, root, rules)
    checker = Judge(compiled, texts, recogniser, (root, rules, tokens))
    generator = random.Random(seed)
    for _ in range(walks):
        checker.walk(generator, 5)


def tokens_over(alphabet: str, longest: int = 4) -> st.SearchStrategy[list[bytes | None]]:
    """All single letters, and some longer tokens."""
    single: list[bytes | None] = [letter.encode() for letter in alphabet]
    longer = st.lists(st.text(alphabet, min_size=2, max_size=longest).map(str.encode), max_size=8)
    return longer.map(lambda tokens: [*single, *tokens])


# -- regular expressions

_counts = st.sampled_from([(0, 1), (0, None), (1, None), (0, 2), (2, 2), (1, 3), (3, None), (0, 7), (5, 9)])


def _regular(leaf: st.SearchStrategy[Expression], boolean: bool = True) -> st.SearchStrategy[Expression]:
    def grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        options = [
            st.tuples(st.just("concat"), several),
            st.tuples(st.just("union"), several),
            st.builds(lambda e, count: ("repeat", e, *count), inner, _counts),
        ]
        if boolean:
            options += [st.tuples(st.just("intersection"), several), st.tuples(st.just("complement"), inner)]
        return st.one_of(options)

    return st.recursive(leaf, grown, max_leaves=7)


ab_leaves: st.SearchStrategy[Expression] = st.one_of(
    st.text("abc", max_size=3).map(lambda text: ("literal", text.encode())),
    st.sampled_from([("set", ((97, 98),)), ("set", ((97, 99),)), ("set", ((99, 99), (97, 97)))]),
)


@given(_regular(ab_leaves), tokens_over("abc"), st.integers(0, 99))
@PLACES
def test_regular_expressions(root: Expression, tokens: list[bytes | None], seed: int) -> None:
    judge(root, {}, tokens, seed)


@given(_regular(ab_leaves), _regular(ab_leaves), tokens_over("abc"), st.integers(0, 99))
@PLACES
def test_calls_between_regular_expressions(
    first: Expression, second: Expression, tokens: list[bytes | None], seed: int
) -> None:
    """A token may leave one frame and enter the next; both may be empty."""
    # Complements range over calls too; what is meant here are texts.
    texts: Expression = ("repeat", ("set", ((97, 99),)), 0, None)
    first, second = ("intersection", (texts, first)), ("intersection", (texts, second))
    judge(("concat", (("call", first), ("call", ("concat", (second, ("call", first)))), second)), {}, tokens, seed)


# -- characters

_CODE_POINTS = [0x61, 0x0A, 0x22, 0x5C, 0x2F, 0xE9, 0x5D0, 0x200D, 0x4E2D, 0x1F600, 0xDC00]
_spelling = st.sampled_from(["utf8", "json", "json-canonical"])
character_leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(
        lambda points, spelling: ("chars", tuple(points), spelling),
        st.lists(st.sampled_from(_CODE_POINTS), min_size=1, max_size=3),
        _spelling,
    ),
    st.builds(
        lambda points, spelling: ("text", "".join(map(chr, points)), spelling),
        st.lists(st.sampled_from(_CODE_POINTS[:-1]), max_size=2),
        _spelling,
    ),
)
_split = [
    b"a",
    b'"',
    b"\\",
    b"\n",
    b"/",
    b"n",
    b"u",
    b"\xd7",
    b"\x90",
    b"\xe2\x80",
    b"\x8d",
    b"\xf0\x9f\x98\x80",
    b"\xf0\x9f",
]
_split += [
    b"\x98",
    b"\x80",
    b"0",
    b"d83d",
    b"\\u",
    b"5D0",
    b"e9",
    b"00",
    b"\\ud83d\\uDe0",
    b"\xc3",
    b"\xa9",
    b'\xa9"',
    b"\xe4\xb8\xada",
]


@given(
    _regular(character_leaves, boolean=False),
    st.lists(st.sampled_from(_split), max_size=8, unique=True),
    st.integers(0, 9),
)
@PLACES
def test_spellings_split_into_tokens(root: Expression, extra: list[bytes], seed: int) -> None:
    judge(root, {}, [*_split[:12], *(token for token in extra if token not in _split[:12])], seed, walks=2)


# -- recursion


@st.composite
def grammars(draw: st.DrawFn) -> tuple[Expression, dict[str, Expression]]:
    """A root and rules that call one another in every way: left, right, hidden and nullable recursion."""
    names = ["r", "s", "t"][: draw(st.integers(1, 3))]
    letters = st.sampled_from([("rule", name) for name in names])
    leaf = st.one_of(ab_leaves, letters, letters)
    bodies = {name: draw(_with_calls(leaf)) for name in names}
    return draw(_with_calls(leaf)), bodies


def _with_calls(leaf: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.tuples(st.just("concat"), several),
            st.tuples(st.just("union"), several),
            st.builds(
                lambda e, count: ("repeat", e, *count), inner, st.sampled_from([(0, 1), (0, None), (1, None), (1, 2)])
            ),
            st.tuples(st.just("call"), inner),
        )

    return st.recursive(leaf, grown, max_leaves=5)


@given(grammars(), tokens_over("abc"), st.integers(0, 99))
@PLACES
def test_recursive_rules(
    grammar: tuple[Expression, dict[str, Expression]], tokens: list[bytes | None], seed: int
) -> None:
    judge(*grammar, tokens, seed)


@pytest.mark.parametrize(
    "rules",
    [
        {"r": ("union", (("concat", (("rule", "r"), ("literal", b"a"))), ("literal", b"b")))},
        {"r": ("union", (("concat", (("literal", b"a"), ("rule", "r"))), ("literal", b"b")))},
        {
            "r": (
                "union",
                (
                    ("concat", (("repeat", ("literal", b"c"), 0, 1), ("rule", "r"), ("literal", b"a"))),
                    ("literal", b"b"),
                ),
            )
        },
        {"r": ("union", (("repeat", ("rule", "r"), 1, 3), ("literal", b"a")))},
        {"r": ("union", (("rule", "s"), ("literal", b"a"))), "s": ("union", (("rule", "r"), ("literal", b"b")))},
        {"r": ("repeat", ("rule", "s"), 0, None), "s": ("concat", (("rule", "r"), ("literal", b"a"), ("rule", "r")))},
        {"r": ("concat", (("literal", b"a"), ("repeat", ("rule", "r"), 0, 1), ("repeat", ("literal", b"b"), 0, 1)))},
        {
            "r": ("union", (("concat", (("rule", "s"), ("rule", "r"), ("literal", b"a"))), ("literal", b"b"))),
            "s": ("repeat", ("literal", b"c"), 0, None),
        },
    ],
    ids=["left", "right", "hidden-left", "unit-cycle", "two-cycle", "nullable", "middle", "nullable-prefix"],
)
def test_kinds_of_recursion(rules: dict[str, Expression]) -> None:
    tokens: list[bytes | None] = [b"a", b"b", b"c", b"ab", b"ba", b"aab", b"cb", b"bbb", b"aaaa", b"abab"]
    judge(("concat", (("rule", "r"), ("literal", b"c"))), rules, tokens, 1, walks=4)
    judge(("rule", "r"), rules, tokens, 2, walks=4)


# -- boolean operations over the structure


@given(st.data(), tokens_over("abx,"), st.integers(0, 99))
@PLACES
def test_intersections_of_sequences_of_calls(data: st.DataObject, tokens: list[bytes | None], seed: int) -> None:
    """``[items]`` whose items are values A or B, so many of them, with some of them somewhere or nowhere."""
    a: Expression = ("call", ("repeat", ("literal", b"a"), 1, 2))
    b: Expression = ("call", data.draw(_regular(ab_leaves, boolean=False)))
    either: Expression = ("union", (a, b))
    low = data.draw(st.integers(0, 3))
    high = data.draw(st.one_of(st.none(), st.integers(low, 4)))
    comma: Expression = ("literal", b",")

    def listed(item: Expression, low: int, high: int | None) -> Expression:
        more = ("repeat", ("concat", (comma, item)), max(low - 1, 0), None if high is None else max(high - 1, 0))
        some = ("concat", (item, more))
        return ("union", (("literal", b""), some)) if low == 0 else some

    def containing(item: Expression) -> Expression:
        before = ("repeat", ("concat", (either, comma)), 0, None)
        after = ("repeat", ("concat", (comma, either)), 0, None)
        return ("concat", (before, item, after))

    parts = [listed(either, low, high)]
    if data.draw(st.booleans()):
        parts.append(containing(a))
    if data.draw(st.booleans()):
        parts.append(("complement", containing(("concat", (b, comma, b)))))
    root: Expression = ("concat", (("literal", b"x"), ("intersection", tuple(parts)), ("literal", b"x")))
    judge(root, {}, tokens, seed)


# -- special tokens


@given(grammars(), tokens_over("abc"), st.integers(0, 99))
@PLACES
def test_special_tokens_match_by_id_only(
    grammar: tuple[Expression, dict[str, Expression]], tokens: list[bytes | None], seed: int
) -> None:
    root, rules = grammar
    named = ("token", len(tokens))
    other = ("token", len(tokens) + 1)
    rules = {**rules, "special": ("union", (named, ("concat", (other, ("rule", "r")))))}
    root = ("union", (("concat", (root, ("rule", "special"))), ("concat", (named, root)), ("rule", "special")))
    judge(root, rules, [*tokens, None, None, None], seed)


# -- objects

_VALUES: list[Expression] = [
    ("call", ("literal", b"1")),
    ("call", ("union", (("literal", b"1"), ("literal", b"12")))),
    ("call", ("repeat", ("set", ((49, 50),)), 1, None)),
    ("literal", b"2"),
]
_OBJECT_TOKENS: list[bytes | None] = [bytes([byte]) for byte in b'{}:,"abc12']
_OBJECT_TOKENS += [
    b'{"',
    b'":',
    b'":1',
    b'","',
    b'1,"',
    b'":1,"',
    b'a":1,"b":',
    b'"a":1',
    b"1}",
    b'":1}',
    b"}}",
    b'c":12,"',
    b'{"a":',
]
_OBJECT_TOKENS += [b'b":1,"c":1,"a', b'"},{"', b'":2,"bc":1}']


@st.composite
def objects(draw: st.DrawFn) -> Expression:
    """Literal keys, a family of a few keys, and everything that may be asked of their number and company."""
    obligations = draw(st.integers(0, 2))
    values = st.lists(st.tuples(st.sampled_from(_VALUES), st.integers(0, 2**obligations - 1)), min_size=1, max_size=2)
    literals = [b'"a"', b'"b"', b'"c"'][: draw(st.integers(0, 3))]
    members: list[Any] = [(key, draw(st.booleans()), tuple(draw(values))) for key in literals]
    family = draw(st.sampled_from([(), (b'"aa"',), (b'"aa"', b'"ab"'), (b'"bc"', b'"ca"', b'"bb"')]))
    if family:
        members.insert(draw(st.integers(0, len(members))), (family, False, tuple(draw(values))))
    options: dict[str, Any] = {"ordered": draw(st.booleans()), "obligations": obligations}
    options["min_members"] = draw(st.integers(0, 4))
    places = [i for i, (keys, _, _) in enumerate(members) if isinstance(keys, bytes)]
    if options["ordered"] and family:  # dependencies are by index, and families go last when ordered
        members.sort(key=lambda member: not isinstance(member[0], bytes))
        places = list(range(len(literals)))
    if len(places) > 1 and draw(st.booleans()):
        pairs = st.tuples(st.sampled_from(places), st.lists(st.sampled_from(places), max_size=2).map(tuple))
        options["dependencies"] = draw(st.lists(pairs, min_size=1, max_size=2))
    elif draw(st.booleans()):
        options["max_members"] = draw(st.integers(options["min_members"], 5))
    return ("object", tuple(members), tuple(options.items()))


@given(objects(), st.booleans(), st.integers(0, 99))
@settings(PLACES, max_examples=2 * EXAMPLES)
def test_objects(root: Expression, nested: bool, seed: int) -> None:
    if nested:
        _, members, options = root
        inner_members = ((b'"a"', False, ((_VALUES[0], 0),)), ((b'"b"', b'"c"'), False, ((_VALUES[1], 0),)))
        inner: Expression = ("object", inner_members, ())
        members = ((b'"b"', False, ((inner, 3),)), *(m for m in members if m[0] != b'"b"'))
        root = ("object", members, tuple(option for option in options if option[0] != "dependencies"))
    judge(root, {}, _OBJECT_TOKENS, seed, walks=2)


# -- arrays of different values

_ITEMS = [
    b"1",
    b"1.0",
    b"2",
    b"12",
    b"true",
    b'"a"',
    b'"\\u0061"',
    b"[1]",
    b"[1.0]",
    b'{"a":1,"b":2}',
    b'{"b":2,"a":1}',
]
_ARRAY_TOKENS: list[bytes | None] = [bytes([byte]) for byte in b'[]{},:".012abetru\\6']
_ARRAY_TOKENS += [
    b"[1",
    b"1,",
    b",1",
    b"1,2",
    b"1]",
    b"],[",
    b'","',
    b'"a",',
    b"1.0,1",
    b"[[1",
    b'},{"',
    b"2,12,1",
    b"true]",
]

_item = st.lists(st.sampled_from(_ITEMS), max_size=4, unique=True).map(
    lambda texts: ("union", tuple(("literal", text) for text in texts))
)


@given(_item, st.lists(_item, max_size=2), st.integers(0, 4), st.integers(0, 2), st.booleans(), st.integers(0, 99))
@settings(PLACES, max_examples=2 * EXAMPLES)
def test_arrays_of_different_values(
    item: Expression, prefix: list[Expression], low: int, more: int, bounded: bool, seed: int
) -> None:
    options = (("min_items", low), *([("max_items", low + more)] if bounded else []))
    judge(("unique", item, tuple(prefix), options), {}, _ARRAY_TOKENS, seed)


# -- arrays whose items are compared and counted

_EQUAL_ITEMS = [_ITEMS[0:2], _ITEMS[2:3], _ITEMS[4:5], _ITEMS[5:7], _ITEMS[7:9], _ITEMS[9:11]]


@st.composite
def _counted(draw: st.DrawFn) -> Expression:
    kinds: list[list[bytes]] = [[], [], []]
    for texts in draw(st.lists(st.sampled_from(_EQUAL_ITEMS), min_size=1, max_size=5, unique_by=tuple)):
        kinds[draw(st.integers(0, 2))] += texts
    counts = draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, 0, 1])), max_size=2))
    bounds = [(low, None if more is None else low + more) for low, more in counts]
    choice = st.tuples(st.integers(0, 2), st.integers(0, 2 ** len(bounds) - 1))
    position = st.lists(choice, max_size=3, unique_by=lambda item: item[0])
    positions = draw(st.lists(position, min_size=1, max_size=3))
    low, repeats = draw(st.integers(0, 3)), draw(st.booleans())
    high = low + draw(st.integers(0, 2)) if repeats else draw(st.sampled_from([None, low, low + 2]))
    options = (
        ("counts", tuple(bounds)),
        ("repeats", repeats),
        ("min_items", low),
        ("max_items", high if high is None else min(high, 4)),
    )
    unions = tuple(("union", tuple(("literal", text) for text in texts)) for texts in kinds)
    return ("counted", unions, tuple(tuple(position) for position in positions), options)


@given(_counted(), st.integers(0, 99))
@settings(PLACES, max_examples=3 * EXAMPLES)
def test_arrays_with_counts_of_different_or_equal_values(array: Expression, seed: int) -> None:
    judge(array, {}, _ARRAY_TOKENS, seed)
