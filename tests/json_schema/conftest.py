"""Acceptance of texts under a JSON Schema, one byte a token."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import ConstraintTooLarge, UnsatisfiableConstraint


class Acceptor:
    """One compiled schema."""

    def __init__(self, compiled: _core.Compiled) -> None:
        self._compiled = compiled

    def text(self, text: str | bytes) -> bool:
        """Whether the whole text is a valid output."""
        data = text.encode("utf-8") if isinstance(text, str) else text
        matcher = self._compiled.matcher()
        return matcher.accept_bytes(data) and matcher.is_complete

    def value(self, value: Any) -> bool:
        """Whether the text that json.dumps writes for a value is a valid output."""
        return self.text(json.dumps(value, ensure_ascii=False))

    def matcher(self) -> _core.Matcher:
        return self._compiled.matcher()


@pytest.fixture(scope="session")
def byte_vocabulary() -> _core.Vocabulary:
    """A token for every byte, and an end of text."""
    return _core.Vocabulary([bytes([byte]) for byte in range(256)] + [None], [256], 257)


@pytest.fixture(scope="session")
def acceptor(byte_vocabulary: _core.Vocabulary) -> Callable[..., Acceptor]:
    """``acceptor(schema, **options)`` compiles a schema; options as for JsonSchema."""

    def build(schema: Any, **options: Any) -> Acceptor:
        builder = _core.Builder(byte_vocabulary)
        expression = JsonSchema(schema, **options).lower(builder)
        try:
            return Acceptor(builder.compile(expression))
        except _core.ConstraintTooLargeError as error:
            raise ConstraintTooLarge(str(error)) from error
        except ValueError as error:
            raise UnsatisfiableConstraint(str(error), pointer="") from error

    return build
