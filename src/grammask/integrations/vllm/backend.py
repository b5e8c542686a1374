"""grammask as vLLM's structured-output backend.

vLLM's scheduler compiles a request's constraint on a thread while the request waits, asks for bit masks while the
forward pass runs, and for the validity of drafted tokens; the masks go to the sampler of either model runner.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm.exceptions import VLLMValidationError
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key

from grammask.engine.errors import ConstraintError, ConstraintSyntaxError
from grammask.integrations.compiling import Compilations, check_constraint
from grammask.integrations.following import Follower
from grammask.integrations.structural_tags import structural_tag
from grammask.integrations.vllm.parameters import vocabulary_of_engine

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.constraints.json_schema.whitespace import Whitespace


@dataclass
class GrammaskBackend(StructuredOutputBackend):  # type: ignore[misc]  # vLLM is not there where types are checked
    """One per engine; vLLM makes it when the first constrained request arrives."""

    def __post_init__(self) -> None:
        self._vocabulary = vocabulary_of_engine(self.vllm_config, self.tokenizer)
        self._compilations = Compilations(lambda: self._vocabulary)
        config = self.vllm_config.structured_outputs_config
        if config.disable_additional_properties:
            raise ValueError("grammask enforces schemas as they are: disable_additional_properties is not supported")
        self._whitespace: Whitespace = "compact" if config.disable_any_whitespace else "flexible"

    @staticmethod
    def is_tokenizer_supported(tokenizer: Any) -> bool:
        """vLLM asks this of the backend that it calls guidance. Tokenizers whose tokens have no exact bytes are refused
        with the first request."""
        return True

    def compile_grammar(self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None) -> Any:
        key = f"{request_type.name} {grammar_spec}"
        constraint = lambda: constraint_of(request_type, grammar_spec, self._whitespace)  # noqa: E731
        compiled = self._compilations.start(key, constraint).result()
        return GrammaskGrammar(Follower(compiled, stop_token_ids or ()))

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        import torch

        return torch.full((max_num_seqs, (self._vocabulary.size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        self._compilations.close()


class GrammaskGrammar(StructuredOutputGrammar):  # type: ignore[misc]  # vLLM is not there where types are checked
    """The state of one request."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        follower = self._follower
        start = follower.length
        follower.read(tokens)
        if follower.is_lost:
            follower.go_back(start)
            return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        follower = self._follower
        start = follower.length
        valid = 0
        for token in tokens:
            if follower.has_ended or token < 0:
                break
            follower.read([token])
            if follower.is_lost:
                break
            valid += 1
        follower.go_back(start)
        return tokens[:valid]

    def rollback(self, num_tokens: int) -> None:
        self._follower.go_back(self._follower.length - num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        self._follower.fill_mask(bitmask.numpy()[batch_index])

    def is_terminated(self) -> bool:
        return self._follower.has_ended

    def reset(self) -> None:
        self._follower.go_back(0)


def validate_request(sampling_params: Any, tokenizer: Any = None) -> None:
    """Checks the structured output of a request before it is admitted. The arguments are those that vLLM passes to its
    own backends' functions; what needs the model's special tokens is found when the request is compiled.

    Raises:
        VLLMValidationError: the constraint cannot be enforced.
    """
    params = sampling_params.structured_outputs
    if params is None:
        return
    if params.whitespace_pattern is not None:
        raise VLLMValidationError("grammask takes no whitespace_pattern: use disable_any_whitespace or a grammar")
    if params.disable_additional_properties:
        raise VLLMValidationError("grammask enforces schemas as they are: write additionalProperties into the schema")
    try:
        check_constraint(constraint_of(*get_structured_output_key(params)))
    except ConstraintError as error:
        raise VLLMValidationError(str(error)) from error


def constraint_of(kind: Any, text: str, whitespace: Whitespace = "flexible") -> Constraint:
    """The constraint of one of vLLM's structured outputs.

    Raises:
        ConstraintError: it is malformed, or of a kind that is not known.
    """
    from grammask.constraints.choice import Choice
    from grammask.constraints.grammar import Grammar
    from grammask.constraints.json_schema import JsonSchema
    from grammask.constraints.regex import Regex

    if kind == StructuredOutputOptions.JSON:
        return JsonSchema(text, whitespace=whitespace)
    if kind == StructuredOutputOptions.JSON_OBJECT:
        return JsonSchema({"type": "object"}, whitespace=whitespace)
    if kind == StructuredOutputOptions.REGEX:
        return Regex(text)
    if kind == StructuredOutputOptions.CHOICE:
        return Choice(json.loads(text))
    if kind == StructuredOutputOptions.GRAMMAR:
        return Grammar.gbnf(text) if "::=" in text else Grammar.lark(text)
    if kind == StructuredOutputOptions.STRUCTURAL_TAG:
        return structural_tag(text, whitespace)
    raise ConstraintSyntaxError(f"there is no structured output of the kind {kind}")
