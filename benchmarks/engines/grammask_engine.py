"""grammask, as a user calls it."""

from __future__ import annotations

from functools import partial

import grammask
from benchmarks.engines.base import Engine, EngineOptions, Refused, Session, no_error
from grammask.constraints.json_schema.constraint import JsonSchema, PropertyOrder


class GrammaskEngine(Engine[grammask.CompiledConstraint]):
    """Properties in the order of the schema, grammask's default. ``settings``: ``whitespace``."""

    order: PropertyOrder = "schema"

    def __init__(self, options: EngineOptions) -> None:
        self.vocabulary = grammask.Vocabulary.from_tokenizers(options.tokenizer, eos_token_ids=[options.eos_token_id])
        self._whitespace = options.settings.get("whitespace", "flexible")
        self.allocate(self.vocabulary.size)

    def _compile(self, constraint: grammask.Constraint) -> grammask.CompiledConstraint:
        try:
            return grammask.compile(constraint, self.vocabulary)
        except grammask.ConstraintError as error:
            raise Refused(type(error).__name__, str(error)) from None

    def json_schema(self, schema: str) -> grammask.CompiledConstraint:
        try:
            constraint = JsonSchema(schema, property_order=self.order, whitespace=self._whitespace)
        except grammask.ConstraintError as error:
            raise Refused(type(error).__name__, str(error)) from None
        return self._compile(constraint)

    def regex(self, pattern: str) -> grammask.CompiledConstraint:
        try:
            constraint = grammask.Regex(pattern)
        except grammask.ConstraintError as error:
            raise Refused(type(error).__name__, str(error)) from None
        return self._compile(constraint)

    def grammar(self, text: str) -> grammask.CompiledConstraint:
        try:
            constraint = grammask.Grammar.gbnf(text)
        except grammask.ConstraintError as error:
            raise Refused(type(error).__name__, str(error)) from None
        return self._compile(constraint)

    def session(self, compiled: grammask.CompiledConstraint) -> Session:
        matcher = compiled.matcher()
        return Session(partial(matcher.fill_mask, self.mask), matcher.accept, matcher.forced_tokens, no_error)


class AnyOrderEngine(GrammaskEngine):
    """Properties in any order."""

    order = "any"
