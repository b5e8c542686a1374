"""Checking a request where the engine's configuration and tokenizer are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grammask.engine.errors import ConstraintError
from grammask.engine.vocabulary import VocabularyError
from grammask.integrations.compiling import Compilations
from grammask.integrations.vllm.parameters import KEY, description_of, vocabulary_of_engine
from grammask.integrations.wire import canonical, constraint_from_wire


class Admission:
    """Refuses requests whose constraint this engine would ignore, or could not compile for its model.

    Args:
        vllm_config: the engine's.
        tokenizer: gives its tokenizer.
        before: vLLM's own check, which comes first.
    """

    def __init__(self, vllm_config: Any, tokenizer: Callable[[], Any], before: Callable[[Any], None]) -> None:
        self._config = vllm_config
        self._before = before
        self._compilations = Compilations(lambda: vocabulary_of_engine(vllm_config, tokenizer()))

    def __call__(self, params: Any) -> None:
        """
        Raises:
            VLLMValidationError: over HTTP, an answer with status 400.
        """
        from vllm.exceptions import VLLMValidationError

        self._before(params)
        description = description_of(params)
        if description is None:
            return
        reason = self._why_ignored()
        if reason is not None:
            raise VLLMValidationError(f"{KEY} in extra_args would be ignored: {reason}")
        try:
            self._compilations.start(canonical(description), lambda: constraint_from_wire(description)).result()
        except (ConstraintError, VocabularyError) as error:
            raise VLLMValidationError(f"{KEY}: {error}") from error

    def _why_ignored(self) -> str | None:
        config = self._config
        if getattr(config, "use_v2_model_runner", False):
            return None
        if config.speculative_config is not None:
            return (
                "vLLM's first model runner takes no logits processors with speculative decoding; use "
                "structured_outputs or response_format with GRAMMASK_VLLM_BACKEND=all"
            )
        if config.scheduler_config.async_scheduling and not config.model_config.logits_processors:
            return (
                "with asynchronous scheduling, start vLLM with "
                "--logits-processors grammask.integrations.vllm.processor:ConstraintLogitsProcessor"
            )
        return None
