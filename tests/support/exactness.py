"""Judging a matcher by the definition, at every step of random walks."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from grammask import _core
from support.recogniser import Recogniser, Text

Token = bytes | None


class Judge:
    """A compiled constraint over a small vocabulary, and the recogniser that says what is right.

    tokens: the bytes of each id, None for special tokens; the last one is the end of text.
    """

    def __init__(
        self, compiled: _core.Compiled, tokens: Sequence[Token], recogniser: Recogniser, show: object = ""
    ) -> None:
        self._compiled = compiled
        self._tokens = tokens
        self._end = len(tokens) - 1
        self._slow = recogniser
        self._show = show
        singles = {data[0] for data in tokens if data is not None and len(data) == 1}
        self._spells_all = recogniser.byte_values() <= singles
        self._bytes = sorted({byte for token in tokens for byte in token or b""})

    def walk(self, generator: random.Random, steps: int) -> None:
        """Checks every mask along one random output, and goes back now and then."""
        matcher = self._compiled.matcher()
        texts: list[Text] = [()]
        masks = [self.check(matcher, ())]
        for _ in range(steps):
            allowed = [token for token in masks[-1] if token != self._end]
            if not allowed:
                break
            token = generator.choice(allowed)
            copy = matcher.copy()
            assert matcher.accept(token), (self._show, texts[-1], token)
            texts.append(texts[-1] + self._symbols(token))
            masks.append(self.check(matcher, texts[-1]))
            assert list(copy.allowed_token_ids()) == masks[-2], "a copy moved with its original"
            if generator.random() < 0.3:
                back = generator.randint(1, len(texts) - 1)
                matcher.rollback(back)
                del texts[-back:], masks[-back:]
                assert list(matcher.allowed_token_ids()) == masks[-1], "rolling back gave another mask"
        self._check_replay(texts[-1], masks[-1])
        if masks[-1][-1:] == [self._end]:
            assert matcher.accept(self._end)
            assert matcher.is_terminated
            assert not matcher.accept(0)
            assert not matcher.accept_bytes(bytes(self._bytes[:1]))
            matcher.rollback(1)
            assert not matcher.is_terminated
            assert list(matcher.allowed_token_ids()) == masks[-1]

    def check(self, matcher: _core.Matcher, text: Text) -> list[int]:
        """The mask after ``text``, which is checked against the definition."""
        expected = [
            token
            for token in range(len(self._tokens))
            if token != self._end and self._slow.is_prefix(text + self._symbols(token))
        ]
        complete = self._slow.is_word(text)
        if complete:
            expected.append(self._end)
        allowed = matcher.allowed_token_ids().tolist()
        here = (self._show, text)
        assert allowed == expected, (*here, "allowed", self._named(allowed), "right", self._named(expected))
        assert allowed or matcher.next_bytes(), (*here, "a dead end")
        out = np.full((len(self._tokens) + 31) // 32, -1, dtype=np.int32)
        matcher.fill_mask(out)
        bits = np.unpackbits(out.view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == allowed
        assert matcher.is_complete == complete, here
        following = bytes(byte for byte in self._bytes if self._slow.is_prefix((*text, byte)))
        assert bytes(byte for byte in matcher.next_bytes() if byte in self._bytes) == following, here
        for token, data in enumerate(self._tokens):
            if data is not None:
                right = max(n for n in range(len(data) + 1) if self._slow.is_prefix(text + tuple(data[:n])))
                assert matcher.matched_prefix(data) == right, (*here, data)
            if token not in allowed:
                assert not matcher.accept(token), (*here, token)
        assert matcher.forced_bytes(8) == self._forced(text, 8), here
        self._check_completion(matcher, text)
        return allowed

    def _check_completion(self, matcher: _core.Matcher, text: Text) -> None:
        """The shortest completion leads to the end; tokens that spell it exist if every byte is a token."""
        completion = matcher.shortest_completion()
        if completion is None:
            assert not self._spells_all, (self._show, text, "no completion found")
            return
        whole = text + tuple(symbol for token in completion for symbol in self._symbols(token))
        assert self._slow.is_word(whole), (self._show, text, "completed by", self._named(completion))

    def _check_replay(self, text: Text, mask: list[int]) -> None:
        """The same text byte by byte gives the same mask."""
        replay = self._compiled.matcher()
        for symbol in text:
            if isinstance(symbol, int):
                assert replay.accept_bytes(bytes([symbol]))
            else:
                assert isinstance(symbol, tuple)
                assert replay.accept(symbol[1])
        assert replay.allowed_token_ids().tolist() == mask, (self._show, text, "reading it byte by byte differs")

    def _forced(self, text: Text, limit: int) -> bytes:
        forced = b""
        while len(forced) < limit and not self._slow.is_word(text):
            symbols = [*range(256), *(("token", i) for i, data in enumerate(self._tokens) if data is None)]
            following = [symbol for symbol in symbols if self._slow.is_prefix((*text, symbol))]
            if len(following) != 1 or not isinstance(following[0], int):
                break
            forced += bytes([following[0]])
            text = (*text, following[0])
        return forced

    def _symbols(self, token: int) -> Text:
        data = self._tokens[token]
        return (("token", token),) if data is None else tuple(data)

    def _named(self, tokens: Sequence[int]) -> list[Token | str]:
        return ["end" if token == self._end else self._tokens[token] for token in tokens]
