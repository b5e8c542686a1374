"""Generation with ONNX Runtime GenAI, constrained.

ONNX Runtime GenAI calls no hook, but its generator gives and takes the logits of the next token. So the loop is here:

    for token in constrained_tokens(generator, compiled, prompt_ids):
        print(stream.decode(token), end="")

Written after the documented interface (0.18): ``append_tokens``, ``get_logits``, ``set_logits``,
``generate_next_token``, ``get_next_tokens``, ``is_done``. **Never run with a model**; tested with a stand-in for the
generator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.integrations.completions import Completions

if TYPE_CHECKING:
    from grammask.engine.compile import CompiledConstraint


def constrained_tokens(generator: Any, compiled: CompiledConstraint, prompt_ids: Sequence[int]) -> Iterator[int]:
    """Runs a generator to its end and yields each token.

    Args:
        generator: a new ``onnxruntime_genai.Generator`` for one sequence.
        compiled: the constraint, compiled for the model's vocabulary.
        prompt_ids: the prompt, which is appended to the generator here.

    Raises:
        VocabularyMismatch: the model has fewer tokens than the constraint was compiled for.
    """
    completions = Completions(compiled, prompt_length=len(prompt_ids))
    tokens = list(prompt_ids)
    generator.append_tokens(np.asarray([tokens], dtype=np.int32))
    while not generator.is_done():
        logits = np.array(generator.get_logits(), dtype=np.float32)
        logits[..., ~completions.allowed(tokens, logits.shape[-1])] = -np.inf
        generator.set_logits(logits)
        generator.generate_next_token()
        token = int(generator.get_next_tokens()[0])
        tokens.append(token)
        yield token
