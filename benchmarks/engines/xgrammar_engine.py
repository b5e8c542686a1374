"""xgrammar on one thread, without its cache of compiled grammars, since every case is a new schema."""

from __future__ import annotations

from functools import partial

import torch
import xgrammar
from transformers import PreTrainedTokenizerFast

from benchmarks.engines.base import Engine, EngineOptions, Refused, Session, no_error


class XGrammarEngine(Engine[xgrammar.CompiledGrammar]):
    """Any whitespace; ``strict_mode`` off, since it would close every object."""

    def __init__(self, options: EngineOptions) -> None:
        torch.set_num_threads(1)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(options.tokenizer))  # type: ignore[no-untyped-call]
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=len(tokenizer), stop_token_ids=[options.eos_token_id]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.allocate(info.vocab_size)
        self._tensor = torch.from_numpy(self.mask).unsqueeze(0)

    def json_schema(self, schema: str) -> xgrammar.CompiledGrammar:
        try:
            return self._compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)
        except Exception as error:  # its errors have no common base
            raise Refused(type(error).__name__, str(error)) from None

    def regex(self, pattern: str) -> xgrammar.CompiledGrammar:
        try:
            return self._compiler.compile_regex(pattern)
        except Exception as error:
            raise Refused(type(error).__name__, str(error)) from None

    def grammar(self, text: str) -> xgrammar.CompiledGrammar:
        try:
            return self._compiler.compile_grammar(text)
        except Exception as error:
            raise Refused(type(error).__name__, str(error)) from None

    def session(self, compiled: xgrammar.CompiledGrammar) -> Session:
        matcher = xgrammar.GrammarMatcher(compiled)
        return Session(
            partial(matcher.fill_next_token_bitmask, self._tensor, 0),
            matcher.accept_token,
            matcher.find_jump_forward_tokens,
            no_error,
        )
