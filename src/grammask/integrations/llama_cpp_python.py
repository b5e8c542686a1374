"""A logits processor for llama-cpp-python.

from llama_cpp import Llama, LogitsProcessorList
llm = Llama("model.gguf")
processor = ConstraintLogitsProcessor(grammask.compile(constraint, vocabulary_of(llm)))
llm.create_completion(prompt, logits_processor=LogitsProcessorList([processor]))
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.engine.vocabulary import Vocabulary
from grammask.integrations.following import Follower, fill_rows
from grammask.integrations.vocabularies import check_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask.engine.compile import CompiledConstraint


class ConstraintLogitsProcessor:
    """Masks the logits of one completion after the other.

    Args:
        compiled: the constraint, compiled for the model's vocabulary.
        prompt_length: tokens of prompt; None: those of the first call, and again when the tokens are no continuation of
            those of the call before.
    """

    def __init__(self, compiled: CompiledConstraint, *, prompt_length: int | None = None) -> None:
        self._compiled = compiled
        self._given_prompt_length = prompt_length
        self._prompt: NDArray[np.int64] | None = None
        self._follower = Follower(compiled)
        self._mask = np.zeros((1, (compiled.vocabulary.size + 31) // 32), dtype=np.int32)

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """
        Args:
            input_ids: int [tokens], prompt and output so far.
            scores: float32 [vocab_size], changed in place.

        Returns:
            ``scores``.

        Raises:
            VocabularyMismatch: the model has fewer tokens than the constraint was compiled for.
            ValueError: the output so far does not satisfy the constraint.
        """
        check_columns(self._compiled.vocabulary, len(scores))
        self._catch_up(np.asarray(input_ids, dtype=np.int64))
        if self._follower.is_lost:
            raise ValueError("the output so far does not satisfy the constraint: use a new processor, or prompt_length")
        fill_rows([self._follower], self._mask, threads=1)
        allowed = np.unpackbits(self._mask.view(np.uint8)[0], count=self._compiled.vocabulary.size, bitorder="little")
        scores[: len(allowed)][allowed == 0] = -np.inf
        scores[len(allowed) :] = -np.inf
        return scores

    def _catch_up(self, tokens: NDArray[np.int64]) -> None:
        prompt = self._prompt
        if prompt is None or not np.array_equal(tokens[: len(prompt)], prompt):
            length = len(tokens) if self._given_prompt_length is None else self._given_prompt_length
            prompt = self._prompt = tokens[:length].copy()
            self._follower = Follower(self._compiled)
        output = tokens[len(prompt) :].tolist()
        common = 0
        for ours, theirs in zip(self._follower.tokens, output, strict=False):
            if ours != theirs:
                break
            common += 1
        self._follower.go_back(common)
        self._follower.read(output[common:])


def vocabulary_of(llama: Any) -> Vocabulary:
    """The vocabulary of a model that llama-cpp-python has loaded, from its file.

    Raises:
        VocabularyError: the file's tokenizer has no exact bytes.
    """
    return Vocabulary.from_gguf(os.fspath(llama.model_path), size=int(llama.n_vocab()))
