"""A model given by a Python function: for tests, for toy models whose distribution is known, and for other engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grammask.models.base import Message, Model, Prompt
from grammask.models.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from grammask.engine.vocabulary import Vocabulary


class FunctionModel(Model):
    """A model whose logits come from a function of all tokens so far.

    Args:
        vocabulary: what the tokens mean.
        logits: from the tokens of the sequence (prompt and output) to ``vocabulary.size`` numbers.
        chat: from chat messages to the text of the prompt; None for a model without a chat template.
        context_length: how many tokens a sequence may hold; None is any number.
        name: how messages call it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        logits: Callable[[Sequence[int]], ArrayLike],
        *,
        chat: Callable[[Sequence[Message]], str] | None = None,
        context_length: int | None = None,
        name: str = "function",
    ) -> None:
        self._vocabulary = vocabulary
        self._logits = logits
        self._chat = chat
        self._context_length = context_length
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def context_length(self) -> int | None:
        return self._context_length

    @property
    def has_chat_template(self) -> bool:
        return self._chat is not None

    def encode(self, prompt: Prompt) -> list[int]:
        if not isinstance(prompt, str):
            if self._chat is None:
                raise ModelError(f"{self._name} has no chat template, so it takes no list of messages")
            prompt = self._chat(prompt)
        return self._vocabulary.encode(prompt) or self._vocabulary.eos_token_ids[:1]

    def session(self) -> FunctionSession:
        return FunctionSession(self._logits)


class FunctionSession:
    """The tokens of one sequence."""

    def __init__(self, logits: Callable[[Sequence[int]], ArrayLike]) -> None:
        self._logits = logits
        self._tokens: list[int] = []

    @property
    def length(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        if not token_ids:
            raise ValueError("a forward pass needs at least one token")
        self._tokens.extend(token_ids)
        return np.array(self._logits(tuple(self._tokens)), dtype=np.float32)

    def forward_all(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        if not token_ids:
            raise ValueError("a forward pass needs at least one token")
        return np.stack([self.forward([token_id]) for token_id in token_ids])

    def fork(self) -> FunctionSession:
        twin = FunctionSession(self._logits)
        twin._tokens = self._tokens.copy()
        return twin

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self._tokens):
            raise ValueError(f"cannot truncate a sequence of {len(self._tokens)} tokens to {length}")
        del self._tokens[length:]
