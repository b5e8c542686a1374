"""Input that is too deep, too large, malformed or out of place is answered with errors, never a crash or a hang."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from grammask import _core

END = 256
TOKENS: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), None, b'","', b"\xff\xfe", b"\xe2\x80", b"aaaa"]
SIZE = len(TOKENS)
WORDS = (SIZE + 31) // 32


@pytest.fixture(scope="module")
def vocabulary() -> _core.Vocabulary:
    return _core.Vocabulary(TOKENS, [END], SIZE)


@pytest.fixture
def b(vocabulary: _core.Vocabulary) -> _core.Builder:
    return _core.Builder(vocabulary)


def marks(b: _core.Builder) -> dict[str, int]:
    return {"open": b.literal(b"{"), "colon": b.literal(b":"), "comma": b.literal(b","), "close": b.literal(b"}")}


def array_marks(b: _core.Builder) -> dict[str, int]:
    return {"open": b.literal(b"["), "comma": b.literal(b","), "close": b.literal(b"]")}


def nested_arrays(b: _core.Builder) -> int:
    value = b.rule("value")
    b.define(value, b.union([b.literal(b"1"), b.concat([b.literal(b"["), b.optional(value), b.literal(b"]")])]))
    return value


# -- depth


def test_a_text_nested_100_000_deep(b: _core.Builder) -> None:
    depth = 100_000
    matcher = b.compile(nested_arrays(b)).matcher()
    assert matcher.accept_bytes(b"[" * depth)
    assert bytes(matcher.next_bytes()) == b"1[]"
    assert matcher.allowed_token_ids().tolist() == list(b"1[]")
    assert not matcher.is_complete
    copy = matcher.copy()
    assert matcher.forced_bytes() == b""
    assert matcher.accept_bytes(b"1")
    assert matcher.forced_bytes(depth + 5) == b"]" * depth
    assert matcher.accept_bytes(b"]" * depth)
    assert matcher.is_complete
    matcher.rollback(3)
    assert matcher.next_bytes() == b"1["
    assert len(copy.stack()) > 100
    assert copy.accept_bytes(b"]" * depth)


def test_frames_that_may_all_end_at_once(b: _core.Builder) -> None:
    """Each of the nested frames may return, so that the way out is as long as the text."""
    rule = b.rule("r")
    b.define(rule, b.concat([b.literal(b"a"), b.optional(rule), b.optional(b.literal(b"b"))]))
    matcher = b.compile(rule).matcher()
    assert matcher.accept_bytes(b"a" * 3_000)
    assert matcher.is_complete
    assert matcher.allowed_token_ids().tolist() == [*b"ab", END, TOKENS.index(b"aaaa")]
    assert matcher.accept_bytes(b"b" * 3_000)
    assert matcher.is_complete
    assert matcher.next_bytes() == b""


def test_two_ways_back_from_every_frame(b: _core.Builder) -> None:
    rule = b.rule("r")
    ways = [b.concat([rule, b.optional(b.literal(mark))]) for mark in (b"b", b"c")]
    b.define(rule, b.concat([b.literal(b"a"), b.optional(b.union(ways))]))
    matcher = b.compile(rule).matcher()
    assert matcher.accept_bytes(b"a" * 1_000)
    assert matcher.is_complete
    assert matcher.next_bytes() == b"abc"


def deep(b: _core.Builder, kind: str, levels: int) -> int:
    e = b.literal(b"x")
    for _ in range(levels):
        if kind == "concat":
            e = b.concat([b.literal(b"a"), e, b.literal(b"b")])
        elif kind == "repeat":
            e = b.repeat(b.concat([b.literal(b"a"), e]), 0, 3)
        elif kind == "complement":
            e = b.complement(b.concat([b.literal(b"a"), e]))
        elif kind == "call":
            e = b.call(b.concat([b.literal(b"a"), e]))
        elif kind == "object":
            e = b.object([(b'"a"', False, [(b.call(e), 0)])], **marks(b))
        else:
            e = b.unique_array(e, **array_marks(b))
    return e


@pytest.mark.parametrize("kind", ["repeat", "complement", "call", "object", "unique"])
def test_expressions_nested_100_000_deep(kind: str, b: _core.Builder) -> None:
    with pytest.raises(_core.ConstraintTooLargeError, match="nested"):
        deep(b, kind, 100_000)


@pytest.mark.parametrize("kind", ["concat", "repeat", "call", "object", "unique"])
def test_expressions_nested_as_deep_as_allowed(kind: str, b: _core.Builder) -> None:
    levels = {"unique": 60, "object": 900}.get(kind, 1_900)
    matcher = b.compile(deep(b, kind, levels)).matcher()
    assert matcher.next_bytes()
    assert len(matcher.allowed_token_ids())


def test_long_chains_are_not_deep(b: _core.Builder) -> None:
    parts = [b.call(b.byte_set([(97, 98)])) if i % 2 else b.byte_set([(99, 100)]) for i in range(200_000)]
    matcher = b.compile(b.concat(parts)).matcher()
    assert matcher.accept_bytes(b"cadb" * 100)
    assert matcher.next_bytes() == b"cd"
    unique = b.unique_array(b.concat(parts), **array_marks(b))
    assert b.compile(unique).matcher().next_bytes() == b"["


# -- size


def test_a_million_repetitions(b: _core.Builder) -> None:
    char = b.chars([(0x20, 0x21), (0x23, 0x10FFFF)])
    for low, high in [(0, 10**6), (10**6, 10**6), (5, None), (10**6, None)]:
        matcher = b.compile(b.concat([b.repeat(char, low, high), b.literal(b'"')])).matcher()
        assert matcher.accept_bytes("aé\u200c🙂".encode() * 50)
        assert (0x22 in matcher.next_bytes()) == (low <= 200)
        assert TOKENS.index(b"aaaa") in matcher.allowed_token_ids()


def test_counts_beyond_32_bits(b: _core.Builder) -> None:
    matcher = b.compile(b.repeat(b.literal(b"a"), 2**40, 2**60)).matcher()
    assert matcher.accept_bytes(b"a" * 100)
    assert not matcher.is_complete


def test_nested_counts_within_limits(vocabulary: _core.Vocabulary) -> None:
    b = _core.Builder(vocabulary, max_expressions=50_000, max_seconds=600)
    e = b.byte_set([(97, 98)])
    for _ in range(5):
        e = b.repeat(b.concat([e, b.optional(b.literal(b"a"))]), 0, 100_000)
    assert b.compile(e).matcher().accept_bytes(b"ab")


@pytest.mark.parametrize("ordered", [True, False])
def test_objects_of_thousands_of_members(ordered: bool, b: _core.Builder) -> None:
    count = 3_000 if ordered else 1_000
    value = b.call(b.literal(b"1"))
    members: list[Any] = [(f'"k{i:04}"'.encode(), i % 2 == 0, [(value, 0)]) for i in range(count)]
    matcher = b.compile(b.object(members, ordered=ordered, **marks(b))).matcher()
    text = "{" + ",".join(f'"k{i:04}":1' for i in range(0, count, 2)) + "}"
    assert matcher.accept_bytes(text[:-1].encode())
    assert (0x7D in matcher.next_bytes()) is True
    assert matcher.accept_bytes(b"}")
    assert matcher.is_complete


def test_limits_are_kept(vocabulary: _core.Vocabulary) -> None:
    b = _core.Builder(vocabulary, max_expressions=1_000)
    with pytest.raises(_core.ConstraintTooLargeError, match="expressions"):
        b.union([b.literal(f"never seen before {i}".encode()) for i in range(1_000)])
    b = _core.Builder(vocabulary, max_seconds=0.0)
    with pytest.raises(_core.ConstraintTooLargeError, match="time"):
        b.union([b.literal(f"nor at any time {i}".encode()) for i in range(10_000)])


def test_caches_level_off(vocabulary: _core.Vocabulary) -> None:
    """2,000 different constraints on one vocabulary: a generation is dropped when it has outgrown the budget."""
    small = _core.Vocabulary(TOKENS, [END], SIZE)
    small.cache_budget = 2 << 20
    most = 0
    for i in range(2_000):
        b = _core.Builder(small)
        key = b.concat([b.literal(b'"'), b.repeat(b.byte_set([(97, 122)]), 1, 8), b.literal(b'"')])
        members: list[Any] = [
            (f'"name {i} {k}"'.encode(), k == 0, [(b.call(b.literal(b"%d" % (i + k))), 0)]) for k in range(5)
        ]
        matcher = b.compile(b.object([*members, (key, False, [(b.literal(b"1"), 0)])], **marks(b))).matcher()
        assert matcher.accept_bytes(b'{"name %d 0":%d' % (i, i))
        assert len(matcher.allowed_token_ids())
        most = max(most, small.memory_bytes()["shared_caches"])
    assert most < 2 * small.cache_budget


# -- malformed arguments


def test_tokens_that_are_no_text(vocabulary: _core.Vocabulary, b: _core.Builder) -> None:
    """Tokens of invalid UTF-8 fit where bytes may be anything, and not where characters are asked for."""
    invalid = TOKENS.index(b"\xff\xfe")
    half = TOKENS.index(b"\xe2\x80")
    anything = b.compile(b.repeat(b.byte_set([(0, 255)]), 0, None)).matcher()
    assert {invalid, half} <= set(anything.allowed_token_ids().tolist())
    text = b.compile(b.repeat(b.chars([(0, 0x10FFFF)]), 0, None)).matcher()
    assert invalid not in text.allowed_token_ids()
    assert text.accept(half)
    assert not text.is_complete
    assert END not in text.allowed_token_ids()
    assert text.next_bytes() == bytes(range(0x80, 0xC0))


def test_vocabularies_out_of_range() -> None:
    with pytest.raises(ValueError, match="more tokens"):
        _core.Vocabulary([b"a", b"b"], [], 1)
    with pytest.raises(ValueError, match="out of range"):
        _core.Vocabulary([b"a"], [1], 1)
    with pytest.raises(ValueError, match="out of range"):
        _core.Vocabulary([b"a"], [-1], 1)
    with pytest.raises(ValueError, match="negative"):
        _core.Vocabulary([b"a"], [], -1)
    with pytest.raises(ValueError, match="at most"):
        _core.Vocabulary([b"a"], [], 2**40)
    with pytest.raises(TypeError):
        _core.Vocabulary(["a"], [], 1)  # type: ignore[list-item]
    padded = _core.Vocabulary([b"a", b"", None], [], 40)
    assert [padded.token_bytes(i) for i in (0, 1, 2, 39, 40, -1, 2**40)] == [b"a", None, None, None, None, None, None]
    builder = _core.Builder(padded)
    assert builder.compile(builder.repeat(builder.literal(b"a"), 0, None)).matcher().allowed_token_ids().tolist() == [0]


@pytest.mark.parametrize(
    "mask",
    [
        np.zeros(WORDS + 1, dtype=np.int32),
        np.zeros(WORDS - 1, dtype=np.int32),
        np.zeros(WORDS, dtype=np.int64),
        np.zeros(WORDS, dtype=np.float32),
        np.zeros((1, WORDS), dtype=np.int32),
        np.zeros(2 * WORDS, dtype=np.int32)[::2],
        [0] * WORDS,
        None,
    ],
    ids=["long", "short", "int64", "float32", "matrix", "strided", "list", "none"],
)
def test_masks_of_another_kind(mask: Any, b: _core.Builder) -> None:
    matcher = b.compile(b.literal(b"a")).matcher()
    with pytest.raises((TypeError, ValueError)):
        matcher.fill_mask(mask)
    with pytest.raises((TypeError, ValueError)):
        _core.fill_masks([matcher, matcher.copy()], mask)


def test_a_read_only_mask(b: _core.Builder) -> None:
    matcher = b.compile(b.literal(b"a")).matcher()
    out = np.zeros(WORDS, dtype=np.int32)
    out.flags.writeable = False
    with pytest.raises((TypeError, ValueError)):
        matcher.fill_mask(out)
    assert not out.any()


def test_batches_of_another_shape(b: _core.Builder) -> None:
    matcher = b.compile(b.literal(b"a")).matcher()
    out = np.zeros((2, WORDS), dtype=np.int32)
    with pytest.raises(ValueError, match="row"):
        _core.fill_masks([matcher], out)
    with pytest.raises(ValueError, match="twice"):
        _core.fill_masks([matcher, matcher], out)
    with pytest.raises(TypeError):
        _core.fill_masks([matcher, None], out)  # type: ignore[list-item]
    _core.fill_masks([], np.zeros((0, WORDS), dtype=np.int32))


def test_foreign_expressions(b: _core.Builder) -> None:
    a = b.literal(b"a")
    for wrong in (2**31, 2**32 - 1):
        for use in (
            lambda e: b.concat([a, e]),
            lambda e: b.union([a, e]),
            lambda e: b.intersection([a, e]),
            b.complement,
            b.call,
            b.optional,
            lambda e: b.repeat(e, 0, 1),
            lambda e: b.define(b.rule("r"), e),
            lambda e: b.define(e, a),
            b.is_empty,
            b.show,
            b.compile,
            lambda e: b.object([(b'"a"', False, [(e, 0)])], **marks(b)),
            lambda e: b.object([(e, False, [(a, 0)])], **marks(b)),
            lambda e: b.unique_array(e, **array_marks(b)),
            lambda e: b.matches(e, b""),
            lambda e: b.count_words(e, 1),
            b.shortest,
        ):
            with pytest.raises(ValueError, match="not an expression"):
                use(wrong)
    for wrong in (-1, 2**32, "a", None, 1.5):
        with pytest.raises(TypeError):
            b.call(wrong)  # type: ignore[arg-type]


def test_malformed_arguments_of_builders(b: _core.Builder) -> None:
    a = b.literal(b"a")
    with pytest.raises(ValueError, match="above"):
        b.repeat(a, 3, 2)
    with pytest.raises(TypeError):
        b.repeat(a, -1, 2)
    with pytest.raises(ValueError, match="byte"):
        b.byte_set([(0, 256)])
    with pytest.raises(ValueError, match="spelling"):
        b.text("a", "utf-7")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="surrogate"):
        b.text("\ud800")
    with pytest.raises(ValueError, match="out of range"):
        b.special_token(SIZE)
    with pytest.raises((TypeError, ValueError)):
        b.special_token(-1)
    with pytest.raises(ValueError, match="calls"):
        b.object([(b.call(a), False, [(a, 0)])], **marks(b))
    with pytest.raises(ValueError, match="literal members"):
        b.object([(b'"a"', False, [(a, 0)])], dependencies=[(0, [1])], **marks(b))
    with pytest.raises(_core.ConstraintTooLargeError):
        b.object([(b'"a"', False, [(a, 0)])], obligations=17, **marks(b))
    for question in (b.shortest, lambda e: b.matches(e, b"a"), lambda e: b.count_words(e, 9)):
        with pytest.raises(ValueError, match="calls"):
            question(b.call(a))
    for wrong in (b"", b"1.", b"--1", b"nan", b"Infinity", b"0x10", b"1e99999999999"):
        with pytest.raises((ValueError, _core.ConstraintTooLargeError)):
            b.decimal(minimum=wrong.decode())


def test_rules_that_are_not_there(b: _core.Builder) -> None:
    rule = b.rule("forgotten")
    with pytest.raises(ValueError, match="'forgotten' is not defined"):
        b.compile(b.concat([b.literal(b"a"), rule]))
    b.define(rule, b.concat([b.literal(b"a"), rule]))
    with pytest.raises(ValueError, match="empty"):
        b.compile(rule)
    with pytest.raises(ValueError, match="already"):
        b.define(rule, b.literal(b"a"))
    with pytest.raises(ValueError, match="not a rule"):
        b.define(b.literal(b"a"), b.literal(b"b"))


def test_languages_that_turn_out_empty(b: _core.Builder) -> None:
    star = b.repeat(b.literal(b"a"), 1, None)
    nothing = b.intersection([star, b.concat([b.repeat(b.literal(b"a"), 0, None), b.literal(b"b")])])
    one = b.literal(b"1")
    assert b.is_empty(nothing)
    assert b.call(nothing) == b.empty
    assert b.is_empty(b.object([(b'"a"', True, [(nothing, 0)])], **marks(b)))
    assert b.is_empty(b.object([(b'"a"', False, [(one, 0)])], min_members=2, **marks(b)))
    assert b.is_empty(b.object([(b'"a"', False, [(one, 0)])], obligations=1, **marks(b)))
    assert b.is_empty(b.unique_array(nothing, min_items=1, **array_marks(b)))
    assert b.is_empty(b.unique_array(one, min_items=2, **array_marks(b)))
    assert b.is_empty(b.unique_array(b.decimal(), min_items=3, max_items=2, **array_marks(b)))
    with pytest.raises(ValueError, match="empty"):
        b.compile(nothing)


# -- matchers


def test_moves_that_are_not_possible(b: _core.Builder) -> None:
    matcher = b.compile(b.repeat(b.literal(b"a"), 0, None)).matcher()
    with pytest.raises(IndexError):
        matcher.rollback(1)
    with pytest.raises(IndexError):
        matcher.rollback(-1)
    for token in (-1, SIZE, 2**31, 2**32, 2**62, -(2**62), ord("b")):
        assert not matcher.accept(token)
    assert matcher.accept(ord("a"))
    assert not matcher.accept_bytes(b"ab")
    assert matcher.matched_prefix(b"aaab") == 3
    assert matcher.accept(END)
    assert matcher.is_terminated
    assert not matcher.accept(ord("a"))
    assert matcher.next_bytes() == b""
    assert matcher.forced_tokens() == []
    with pytest.raises(IndexError):
        matcher.rollback(3)
    matcher.rollback(2)
    assert not matcher.is_terminated
    assert matcher.allowed_token_ids().tolist() == [ord("a"), END, TOKENS.index(b"aaaa")]


def busy_constraint(b: _core.Builder) -> _core.Compiled:
    """Strings with bounds, free keys, recursion: every kind of mask."""
    char = b.chars([(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)])
    quote = b.literal(b'"')
    value = b.rule("value")
    string = b.concat([quote, b.repeat(char, 0, 30), quote])
    key = b.concat([quote, b.repeat(char, 1, None), quote])
    inner = b.object(
        [
            (b'"id"', False, [(value, 0)]),
            (b.intersection([key, b.complement(b.literal(b'"id"'))]), False, [(value, 0)]),
        ],
        ordered=False,
        **marks(b),
    )
    unique = b.unique_array(b.union([string, b.decimal()]), **array_marks(b))
    b.define(value, b.union([b.call(string), b.call(unique), b.call(inner), b.decimal()]))
    return b.compile(value)


TEXTS = [
    b'{"id":[1,"a",22],"name":{"x":"y","z":-1.5e3}}',
    b'["a","ab",1,2]',
    '{"ש":"می\u200c","🙂":{}}'.encode(),
    b"12",
]


def masks_along(compiled: _core.Compiled, text: bytes) -> list[bytes]:
    matcher = compiled.matcher()
    out = np.zeros(WORDS, dtype=np.int32)
    masks = []
    for byte in text:
        matcher.fill_mask(out)
        masks.append(out.tobytes())
        assert matcher.accept(byte)
    return masks


def test_sixteen_threads_share_a_constraint(vocabulary: _core.Vocabulary) -> None:
    alone = busy_constraint(_core.Builder(_core.Vocabulary(TOKENS, [END], SIZE)))
    expected = [masks_along(alone, text) for text in TEXTS]
    fresh = _core.Vocabulary(TOKENS, [END], SIZE)
    shared = busy_constraint(_core.Builder(fresh))
    barrier = threading.Barrier(16)

    def work(number: int) -> bool:
        barrier.wait()
        order = [(number + k) % len(TEXTS) for k in range(len(TEXTS))]
        mine = busy_constraint(_core.Builder(fresh)) if number % 4 == 0 else shared
        return all(masks_along(mine, TEXTS[i]) == expected[i] for i in order)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


@pytest.mark.parametrize("threads", [None, 1, 3, 16, 0, -1])
def test_batches_equal_single_masks(threads: int | None) -> None:
    """Cold caches, filled from several threads at once, without the interpreter's lock."""
    compiled = busy_constraint(_core.Builder(_core.Vocabulary(TOKENS, [END], SIZE)))
    matchers = []
    for text in TEXTS:
        for length in range(len(text)):
            matcher = compiled.matcher()
            assert matcher.accept_bytes(text[:length])
            matchers.append(matcher)
    out = np.full((len(matchers), WORDS), -1, dtype=np.int32)
    _core.fill_masks(matchers, out, threads)
    for matcher, row in zip(matchers, out, strict=True):
        single = np.zeros(WORDS, dtype=np.int32)
        matcher.fill_mask(single)
        assert (single == row).all()
