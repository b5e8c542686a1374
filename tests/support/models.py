"""Small models for tests: one that wants to write a given text, one that wants nothing in particular."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import grammask
from grammask.models import FunctionModel

END = 256
"""End of text in ``byte_vocabulary``."""
TURN = 257
"""A second special token there, an end of turn that the vocabulary does not count as an end of text."""


def byte_vocabulary(words: Sequence[bytes] = ()) -> grammask.Vocabulary:
    """The 256 single bytes, END, TURN, and then some longer tokens."""
    single: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    return grammask.Vocabulary.from_tokens(
        [*single, None, None, *words], eos_token_ids=[END], special_token_ids={"<turn>": TURN}
    )


class WritingModel(FunctionModel):
    """Gives most of its probability to the longest token that goes on with ``text`` after the prompt, and to END behind
    it; once the output has left the text, every token is equally likely.

    Attributes:
        reads: the number of tokens of the sequence at each forward pass.
    """

    def __init__(
        self,
        text: str,
        vocabulary: grammask.Vocabulary | None = None,
        *,
        end: int = END,
        context_length: int | None = None,
    ) -> None:
        vocabulary = vocabulary or byte_vocabulary()
        self.reads: list[int] = []
        self._prompt: list[int] = []
        self._goal = text.encode()
        self._end = end
        super().__init__(
            vocabulary,
            self._next,
            chat=lambda messages: "".join(f"{message['role']}: {message['content']}\n" for message in messages),
            context_length=context_length,
            name="writer",
        )

    def encode(self, prompt: grammask.models.Prompt) -> list[int]:
        self._prompt = super().encode(prompt)
        return self._prompt

    def _next(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        self.reads.append(len(tokens))
        logits = np.zeros(self.vocabulary.size, dtype=np.float32)
        written = self.vocabulary.decode(tokens[len(self._prompt) :])
        if written == self._goal:
            logits[self._end] = 20
        elif self._goal.startswith(written):
            rest = self._goal[len(written) :]
            for token in range(self.vocabulary.size):
                data = self.vocabulary.token_bytes(token)
                if data is not None and rest.startswith(data):
                    logits[token] = 20 + len(data)
        return logits


def indifferent_model(vocabulary: grammask.Vocabulary | None = None, spread: float = 2.0) -> FunctionModel:
    """Logits that are a fixed random function of the tokens before."""
    vocabulary = vocabulary or byte_vocabulary()

    def logits(tokens: Sequence[int]) -> NDArray[np.float64]:
        return np.random.default_rng(list(tokens)).normal(scale=spread, size=vocabulary.size)

    return FunctionModel(vocabulary, logits, name="indifferent")
