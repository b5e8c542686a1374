"""Prompts that begin alike are read once, and what comes out of the cache is what reading gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grammask import Regex
from grammask.models import FunctionModel, PrefixCache
from grammask.models.function_model import FunctionSession
from grammask.models.prefix_cache import BLOCK, PromptSession
from support.models import byte_vocabulary


class CountingSession(FunctionSession):
    """Tells how many tokens were read in which pass."""

    reads: list[int] = []  # noqa: RUF012 - shared by all sessions on purpose

    def forward(self, token_ids: Sequence[int]) -> Any:
        CountingSession.reads.append(len(token_ids))
        return super().forward(token_ids)

    def fork(self) -> CountingSession:
        twin = CountingSession(self._logits)
        twin._tokens = self._tokens.copy()
        return twin


def new_session() -> CountingSession:
    return CountingSession(lambda tokens: np.array([hash(tuple(tokens)) % 1000]))


def read(cache: PrefixCache | None, prompt: list[int], forced: Sequence[int] = ()) -> tuple[Any, list[int], int]:
    CountingSession.reads = []
    session = PromptSession.cached(new_session, cache, len(prompt))
    row = session.forward([*prompt, *forced])
    cached = session.cached_tokens
    session.close()
    return row, CountingSession.reads, cached


def test_a_prompt_is_read_in_blocks_with_and_without_a_hit() -> None:
    cache = PrefixCache()
    prompt = list(range(3 * BLOCK + 5))
    first, reads, cached = read(cache, prompt, [9, 9])
    assert (reads, cached) == ([BLOCK, BLOCK, BLOCK, 7], 0)
    second, reads, cached = read(cache, prompt, [9, 9])
    assert (reads, cached) == ([7], 3 * BLOCK)
    assert np.array_equal(first, second)
    other = [*prompt[: 2 * BLOCK + 3], *range(1000, 1000 + BLOCK)]
    assert read(cache, other)[1:] == ([BLOCK, 3], 2 * BLOCK)
    assert read(cache, prompt)[1:] == ([5], 3 * BLOCK)  # the first one is still there
    assert (cache.hits, cache.misses) == (3, 1)


def test_at_least_one_token_is_read() -> None:
    cache = PrefixCache()
    prompt = list(range(2 * BLOCK))
    read(cache, prompt)
    assert read(cache, prompt)[1:] == ([BLOCK], BLOCK)


def test_short_prompts_are_not_kept() -> None:
    cache = PrefixCache()
    assert read(cache, [1, 2, 3])[1:] == ([3], 0)
    assert cache.tokens == 0


def test_the_cache_is_bounded() -> None:
    cache = PrefixCache(max_tokens=5 * BLOCK)
    for start in range(0, 40_000, 10_000):
        read(cache, list(range(start, start + 2 * BLOCK + 1)))
        assert cache.tokens <= 5 * BLOCK
    assert read(cache, list(range(30_000, 30_000 + 2 * BLOCK + 1)))[2] == 2 * BLOCK  # the latest
    assert read(cache, list(range(2 * BLOCK + 1)))[2] == 0  # the oldest
    cache.clear()
    assert cache.tokens == 0
    none = PrefixCache(max_tokens=0)
    read(none, list(range(100)))
    assert none.tokens == 0


def test_a_longer_prompt_takes_the_place_of_its_beginning() -> None:
    cache = PrefixCache()
    read(cache, list(range(BLOCK + 1)))
    read(cache, list(range(3 * BLOCK + 1)))
    assert cache.tokens == 3 * BLOCK


def test_a_session_of_the_callers_goes_on_where_it_differs() -> None:
    reads: list[int] = []

    def logits(tokens: Sequence[int]) -> Any:
        reads.append(len(tokens))
        row = np.zeros(258)
        row[ord("a") + len(tokens) % 3] = 9
        return row

    model = FunctionModel(byte_vocabulary(), logits)
    session = model.session()
    first = model.generate("one two", Regex("[a-c]{3}"), session=session)
    assert session.tokens[: len("one two")] == tuple(b"one two")
    again = model.generate("one two" + first.text + "!", Regex("[a-c]{3}"), session=session)
    assert again.usage.cached_tokens == len("one two") + 2  # the last token of an output has not been read
    assert again.text == model.generate("one two" + first.text + "!", Regex("[a-c]{3}")).text
    other = model.generate("one more", Regex("[a-c]{3}"), session=session)
    assert other.usage.cached_tokens == len("one ")
    assert model.generate("one more", Regex("[a-c]{3}"), session=session).usage.cached_tokens == len("one more") - 1
