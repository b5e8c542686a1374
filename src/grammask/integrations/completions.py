"""One completion after the other, for engines that report all tokens so far and have no place for a request's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grammask.integrations.following import Follower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask.engine.compile import CompiledConstraint
    from grammask.engine.vocabulary import Vocabulary


class Completions:
    """Masks for the next token, given all tokens so far.

    Args:
        compiled: the constraint.
        prompt_length: tokens of prompt; None: those of the first call, and again where the tokens are no continuation
            of the prompt of the call before.
        stop_ids: ids at which the engine stops, beside the vocabulary's ends of text.
    """

    def __init__(
        self, compiled: CompiledConstraint, *, prompt_length: int | None = None, stop_ids: Sequence[int] = ()
    ) -> None:
        self._compiled = compiled
        self._given_prompt_length = prompt_length
        self._stop_ids = tuple(stop_ids)
        self._prompt: list[int] | None = None
        self._follower = Follower(compiled, self._stop_ids)
        self._words = np.zeros((compiled.vocabulary.size + 31) // 32, dtype=np.int32)

    @property
    def vocabulary(self) -> Vocabulary:
        """What the constraint was compiled for."""
        return self._compiled.vocabulary

    def allowed(self, tokens: Sequence[int], columns: int) -> NDArray[np.bool_]:
        """Which tokens may come next.

        Args:
            tokens: prompt and output so far.
            columns: of the engine's logits.

        Returns:
            bool [columns].

        Raises:
            VocabularyMismatch: there are fewer columns than tokens in the vocabulary.
            ValueError: the output so far does not satisfy the constraint.
        """
        from grammask.integrations.vocabularies import check_columns

        check_columns(self.vocabulary, columns)
        self._catch_up(list(tokens))
        if self._follower.is_lost:
            raise ValueError("the output so far does not satisfy the constraint: use a new processor, or prompt_length")
        self._follower.fill_mask(self._words)
        known = np.unpackbits(
            self._words.view(np.uint8), count=min(columns, self.vocabulary.size), bitorder="little"
        ).astype(np.bool_)
        return np.concatenate([known, np.zeros(columns - len(known), dtype=np.bool_)])

    def _catch_up(self, tokens: list[int]) -> None:
        prompt = self._prompt
        if prompt is None or tokens[: len(prompt)] != prompt:
            prompt = self._prompt = tokens[: self._given_prompt_length]
            self._follower = Follower(self._compiled, self._stop_ids)
        output = tokens[len(prompt) :]
        common = 0
        for ours, theirs in zip(self._follower.tokens, output, strict=False):
            if ours != theirs:
                break
            common += 1
        self._follower.go_back(common)
        self._follower.read(output[common:])
