"""What a benchmark asks of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Compiled = TypeVar("Compiled")


class Refused(Exception):
    """The engine refuses a constraint. ``kind`` groups refusals in reports."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class EngineOptions:
    """What all engines are built from.

    Attributes:
        tokenizer: path of a Hugging Face ``tokenizer.json``.
        eos_token_id: the token that ends the output.
        settings: options of single engines, such as ``whitespace`` for grammask.
    """

    tokenizer: Path
    eos_token_id: int
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """One sequence. The callables go straight into the engine, so that timing them adds next to nothing.

    Attributes:
        fill: computes the mask of the next token into ``Engine.mask``.
        accept: takes a token; its result is not looked at (the mask has told).
        forced: the tokens that are certain to come next, or None where the engine cannot say.
        error: why the engine gave up in the middle, "" if it did not.
    """

    fill: Callable[[], object]
    accept: Callable[[int], object]
    forced: Callable[[], list[int]] | None
    error: Callable[[], str]


def no_error() -> str:
    """For engines that raise."""
    return ""


class Engine(ABC, Generic[Compiled]):
    """An engine with one vocabulary loaded."""

    mask: NDArray[np.int32]
    """int32, one bit a token: bit ``t % 32`` of word ``t // 32`` is token ``t``."""

    def allocate(self, vocabulary_size: int) -> None:
        """Makes the mask that every session of this engine writes."""
        self.mask = np.zeros((vocabulary_size + 31) // 32, dtype=np.int32)
        self._bits = self.mask.data.cast("B")

    def allows(self, token_id: int) -> bool:
        """Whether the mask written last allows the token."""
        return bool(self._bits[token_id >> 3] >> (token_id & 7) & 1)

    @abstractmethod
    def json_schema(self, schema: str) -> Compiled:
        """Compiles a schema from its JSON text.

        Raises:
            Refused: the engine does not take this schema.
        """

    @abstractmethod
    def regex(self, pattern: str) -> Compiled:
        """Compiles a regular expression for the whole output. Raises Refused."""

    def grammar(self, text: str) -> Compiled:
        """Compiles a context-free grammar in llama.cpp's notation (GBNF). Raises Refused."""
        raise Refused("no grammars", f"no grammar can be compiled, such as {text[:40]!r}")

    def compiler(self, kind: str, source: str) -> Callable[[], Compiled]:
        """What compiles a ``source`` of a kind ("json_schema", "regex", "gbnf") when called, which may raise Refused.

        What an engine needs to have translated into its own notation is translated here, before any clock runs.
        """
        if kind == "json_schema":
            return partial(self.json_schema, source)
        if kind == "regex":
            return partial(self.regex, source)
        if kind == "gbnf":
            return partial(self.grammar, source)
        raise ValueError(f"no kind {kind!r}")

    @abstractmethod
    def session(self, compiled: Compiled) -> Session:
        """A sequence at the start of the output."""
