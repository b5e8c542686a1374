"""A logits processor for llama-cpp-python.

    from llama_cpp import Llama, LogitsProcessorList
    llm = Llama("model.gguf")
    processor = ConstraintLogitsProcessor(grammask.compile(constraint, vocabulary_of(llm)))
    llm.create_completion(prompt, logits_processor=LogitsProcessorList([processor]))

Tested with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.engine.vocabulary import Vocabulary
from grammask.integrations.completions import Completions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask.engine.compile import CompiledConstraint


class ConstraintLogitsProcessor:
    """Masks the logits of one completion after the other.

    Args:
        compiled: the constraint, compiled for the model's vocabulary.
        prompt_length: as for ``Completions``.
    """

    def __init__(self, compiled: CompiledConstraint, *, prompt_length: int | None = None) -> None:
        self._completions = Completions(compiled, prompt_length=prompt_length)

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
        scores[~self._completions.allowed(np.asarray(input_ids).tolist(), len(scores))] = -np.inf
        return scores


def vocabulary_of(llama: Any) -> Vocabulary:
    """The vocabulary of a model that llama-cpp-python has loaded, from its file.

    Raises:
        VocabularyError: the file's tokenizer has no exact bytes.
    """
    return Vocabulary.from_gguf(os.fspath(llama.model_path), size=int(llama.n_vocab()))
