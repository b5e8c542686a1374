"""What a request to vLLM says about its constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammask.engine.errors import ConstraintError
from grammask.integrations.compiling import check_constraint
from grammask.integrations.vocabularies import vocabulary_of
from grammask.integrations.wire import constraint_from_wire

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary

KEY = "grammask"
"""The name in ``SamplingParams.extra_args`` and ``vllm_xargs``. The value is a description as in
``grammask.integrations.wire``, as an object or as JSON text (``vllm_xargs`` holds no objects)."""


def description_of(params: Any) -> Any | None:
    """The description in a request's ``SamplingParams``, or None."""
    return (getattr(params, "extra_args", None) or {}).get(KEY)


def stop_ids_of(params: Any) -> set[int]:
    """Every id at which vLLM ends the output of a request."""
    return set(getattr(params, "all_stop_token_ids", None) or ()) | set(params.stop_token_ids or ())


def validate(params: Any) -> None:
    """Checks a request before it is admitted.

    Raises:
        ValueError: the constraint cannot be enforced, or other parameters contradict it.
    """
    description = description_of(params)
    if description is None:
        return
    try:
        constraint = constraint_from_wire(description)
    except ConstraintError as error:
        raise ValueError(f"{KEY}: {error}") from error
    if getattr(params, "structured_outputs", None) is not None:
        raise ValueError(f"a request has one constraint: {KEY} in extra_args, or structured_outputs, not both")
    if params.min_tokens:
        raise ValueError(f"min_tokens and {KEY} exclude each other: a constrained output ends where it must")
    try:
        check_constraint(constraint)
    except ConstraintError as error:
        if "special token" not in str(error):
            raise ValueError(f"{KEY}: {error}") from error


def vocabulary_of_engine(vllm_config: Any, tokenizer: Any = None) -> Vocabulary:
    """The vocabulary of the model that an engine runs, ending where vLLM ends.

    Raises:
        VocabularyError: there is no tokenizer, or its tokens have no exact bytes, or do not fit the logits.
    """
    from vllm.tokenizers import cached_tokenizer_from_config

    model = vllm_config.model_config
    tokenizer = tokenizer if tokenizer is not None else cached_tokenizer_from_config(model_config=model)
    declared = (model.try_get_generation_config() or {}).get("eos_token_id")
    ends = declared if isinstance(declared, list) else [declared]
    return vocabulary_of(tokenizer, model.get_vocab_size(), [token for token in ends if token is not None])
