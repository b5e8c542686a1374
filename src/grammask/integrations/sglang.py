"""grammask as SGLang's grammar backend, through SGLang's registry and its entry point for plug-ins.

    python -m sglang.launch_server --model-path org/model --grammar-backend grammask

Written against SGLang 0.5.23. Its classes are tested here; its engine needs an accelerator and is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
    register_grammar_backend,
)

from grammask.engine.compile import compile
from grammask.engine.errors import ConstraintError
from grammask.integrations.following import Follower, fill_rows
from grammask.integrations.masking import apply_masks_
from grammask.integrations.vocabularies import vocabulary_of

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.constraints.json_schema.whitespace import Whitespace

NAME = "grammask"
"""What ``--grammar-backend`` is set to."""


class GrammaskGrammar(BaseGrammarObject):  # type: ignore[misc]  # SGLang is not there where types are checked
    """The state of one request."""

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self._follower = follower

    def accept_token(self, token: int) -> None:
        """
        Raises:
            ValueError: the constraint does not allow the token; SGLang ends the request then.
        """
        self._follower.read([token])
        if self._follower.is_lost:
            self._follower.go_back(self._follower.length - 1)
            raise ValueError(f"the constraint does not allow token {token} after {self._follower.tokens[-8:]}")

    def rollback(self, k: int) -> None:
        self._follower.go_back(self._follower.length - k)

    def is_terminated(self) -> bool:
        return self._follower.has_ended

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        import torch

        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        _fill([(idx, self._follower)], vocab_mask)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[Any], vocab_mask: Any) -> None:
        """All rows at once, on several threads."""
        _fill([(entry.row, entry.grammar._follower) for entry in entries], vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: Any) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        apply_masks_(logits, vocab_mask)

    def copy(self) -> GrammaskGrammar:
        return GrammaskGrammar(self._follower.copy())

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that is certain to come next, as far as it is whole characters."""
        follower = self._follower
        if follower.has_ended or follower.is_lost:
            return None
        data = follower.forced_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            text = data[: error.start].decode()
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """SGLang has tokenized the output with the certain text anew.

        Raises:
            ValueError: the new tokens do not satisfy the constraint.
        """
        common = 0
        for ours, theirs in zip(self._follower.tokens, new_output_ids, strict=False):
            if ours != theirs:
                break
            common += 1
        self._follower.go_back(common)
        self._follower.read(new_output_ids[common:])
        if self._follower.is_lost:
            raise ValueError("the tokens after a jump forward do not satisfy the constraint")


class GrammaskBackend(BaseGrammarBackend):  # type: ignore[misc]  # SGLang is not there where types are checked
    """One per engine.

    Args:
        tokenizer: of transformers.
        vocab_size: columns of the logits.
        eos_token_ids: where the engine ends an output.
        whitespace: blanks in JSON.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
        whitespace: Whitespace = "flexible",
    ) -> None:
        super().__init__()
        self._vocabulary = vocabulary_of(tokenizer, vocab_size, eos_token_ids)
        self._whitespace: Whitespace = whitespace

    def dispatch_json(self, key_string: str) -> Any:
        from grammask.constraints.json_schema import JsonSchema

        # SGLang spells "any JSON object" this way.
        schema: Any = {"type": "object"} if key_string == "$$ANY$$" else key_string
        return self._compiled(lambda: JsonSchema(schema, whitespace=self._whitespace))

    def dispatch_regex(self, key_string: str) -> Any:
        from grammask.constraints.regex import Regex

        return self._compiled(lambda: Regex(key_string))

    def dispatch_ebnf(self, key_string: str) -> Any:
        from grammask.constraints.grammar import Grammar

        notation = Grammar.gbnf if "::=" in key_string else Grammar.lark
        return self._compiled(lambda: notation(key_string))

    def dispatch_structural_tag(self, key_string: str) -> Any:
        from grammask.integrations.structural_tags import structural_tag

        return self._compiled(lambda: structural_tag(key_string, self._whitespace))

    def _compiled(self, constraint: Callable[[], Constraint]) -> Any:
        try:
            return GrammaskGrammar(Follower(compile(constraint(), self._vocabulary)))
        except ConstraintError as error:
            return InvalidGrammarObject(str(error))


def register() -> None:
    """Makes the backend known in this process. SGLang calls it in each of its processes (entry point
    ``sglang.srt.plugins``), possibly several times."""
    from sglang.srt.arg_groups import choices

    register_grammar_backend(NAME, _make)
    if NAME not in choices.GRAMMAR_BACKEND_CHOICES:
        choices.add_grammar_backend_choices([NAME])


def _make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None = None) -> Any:
    compact = bool(getattr(server_args, "constrained_json_disable_any_whitespace", False))
    return GrammaskBackend(tokenizer, vocab_size, eos_token_ids, "compact" if compact else "flexible")


def _fill(rows: list[tuple[int, Follower]], vocab_mask: Any) -> None:
    if not rows:
        return
    target = vocab_mask.numpy()
    dense = np.empty((len(rows), target.shape[1]), dtype=np.int32)
    fill_rows([follower for _, follower in rows], dense)
    target[[row for row, _ in rows]] = dense
