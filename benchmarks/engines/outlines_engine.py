"""outlines-core: a regular expression, and an index of it over the whole vocabulary."""

from __future__ import annotations

from functools import partial

from outlines_core import Guide, Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema

import grammask
from benchmarks.engines.base import Engine, EngineOptions, Refused, Session, no_error


class OutlinesEngine(Engine[Index]):
    """The bytes of the tokens are those that grammask reads: this library's own reader needs a hub id."""

    def __init__(self, options: EngineOptions) -> None:
        vocabulary = grammask.Vocabulary.from_tokenizers(options.tokenizer, eos_token_ids=[options.eos_token_id])
        tokens: dict[bytes, list[int]] = {}
        for token_id in range(vocabulary.size):
            data = vocabulary.token_bytes(token_id)
            if data:
                tokens.setdefault(data, []).append(token_id)
        self._vocabulary = Vocabulary(options.eos_token_id, tokens)
        self.allocate(vocabulary.size)
        self._address = (self.mask.ctypes.data, self.mask.size, self.mask.itemsize)

    def json_schema(self, schema: str) -> Index:
        try:
            pattern = build_regex_from_schema(schema)
        except Exception as error:  # its errors have no common base
            raise Refused(type(error).__name__, str(error)) from None
        return self.regex(pattern)

    def regex(self, pattern: str) -> Index:
        try:
            return Index(pattern, self._vocabulary)
        except Exception as error:
            raise Refused(type(error).__name__, str(error)) from None

    def session(self, compiled: Index) -> Session:
        guide = Guide(compiled)
        return Session(partial(guide.write_mask_into, *self._address), partial(_advance, guide), None, no_error)


def _advance(guide: Guide, token_id: int) -> None:
    guide.advance(token_id, False)
