"""llguidance through ``LLMatcher``, writing masks straight into memory (what its ``fill_next_token_bitmask`` wraps).

A matcher is compiled once per constraint and reset for each sequence, so that its lexer's states stay warm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark

from benchmarks.engines.base import Engine, EngineOptions, Refused, Session


class LLGuidanceEngine(Engine[LLMatcher]):
    """Default options: flexible whitespace, the tokenizer's general slices (the same as its JSON slices)."""

    def __init__(self, options: EngineOptions) -> None:
        self.tokenizer = LLTokenizer(options.tokenizer.read_text("utf-8"), eos_token=options.eos_token_id)
        self.allocate(self.tokenizer.vocab_size)
        self._address = (self.mask.ctypes.data, self.mask.nbytes)

    def _matcher(self, grammar: str) -> LLMatcher:
        matcher = LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise Refused(kind_of(matcher.get_error()), matcher.get_error())
        return matcher

    def json_schema(self, schema: str) -> LLMatcher:
        try:
            grammar = LLMatcher.grammar_from_json_schema(schema)
        except ValueError as error:
            raise Refused("ValueError", str(error)) from None
        return self._matcher(grammar)

    def regex(self, pattern: str) -> LLMatcher:
        return self._matcher(LLMatcher.grammar_from_regex(pattern))

    def compiler(self, kind: str, source: str) -> Callable[[], LLMatcher]:
        if kind == "gbnf":
            try:
                return partial(self._lark, gbnf_to_lark(source))
            except Exception as error:  # of a class that the converter keeps to itself: it does not know all escapes
                return partial(refuse, Refused(type(error).__name__, str(error)))
        return super().compiler(kind, source)

    def _lark(self, text: str) -> LLMatcher:
        return self._matcher(LLMatcher.grammar_from_lark(text))

    def session(self, compiled: LLMatcher) -> Session:
        if not compiled.reset():
            raise RuntimeError(f"the matcher cannot be reset: {compiled.get_error()}")
        return Session(
            partial(compiled.unsafe_compute_mask_ptr, *self._address),
            compiled.consume_token,
            compiled.compute_ff_tokens,
            compiled.get_error,
        )


def refuse(refusal: Refused) -> NoReturn:
    raise refusal


def kind_of(message: str) -> str:
    """A message with its names and numbers taken out."""
    line = message.strip().splitlines()[0] if message.strip() else "no message"
    return re.sub(r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]|\d+", "_", line)[:80]
