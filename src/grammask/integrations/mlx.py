"""A logits processor for mlx-lm, on Apple's processors.

    from mlx_lm import generate, load
    model, tokenizer = load("mlx-community/...")
    compiled = grammask.compile(constraint, vocabulary_of(tokenizer._tokenizer, size=...))
    generate(model, tokenizer, prompt, logits_processors=[ConstraintLogitsProcessor(compiled)])

Written after mlx-lm's documented interface (0.32): a function of all tokens so far and logits [rows, vocabulary].
**Never run on a machine with MLX**; only what it shares with the other integrations is tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammask.integrations.completions import Completions

if TYPE_CHECKING:
    from grammask.engine.compile import CompiledConstraint


class ConstraintLogitsProcessor:
    """Masks the logits of one generation after the other.

    Args:
        compiled: the constraint, compiled for the model's vocabulary.
        prompt_length: as for ``Completions``.
    """

    def __init__(self, compiled: CompiledConstraint, *, prompt_length: int | None = None) -> None:
        self._completions = Completions(compiled, prompt_length=prompt_length)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """
        Args:
            tokens: mlx array [tokens], prompt and output so far.
            logits: mlx array [1, vocab_size].

        Returns:
            The masked logits.
        """
        import mlx.core as mx

        allowed = mx.array(self._completions.allowed(tokens.tolist(), logits.shape[-1]))
        return mx.where(allowed, logits, mx.array(float("-inf"), dtype=logits.dtype))
