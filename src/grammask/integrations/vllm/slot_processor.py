"""The processor for vLLM's second model runner, whose requests keep one slot each while rows change with every step.

Tokens live on the device. A row of logits says which slot it belongs to, and at which position the token stands that
the model has just read: the last of those that the next one follows. So a follower is told of a row's token, after it
was taken back or brought forward to that position. Rows of drafted tokens follow each other within their slot, and the
follower walks along them; a rejected draft is taken back with the next step.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
from vllm.logger import init_logger
from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor

from grammask.integrations.compiling import Compilations
from grammask.integrations.following import Follower, fill_rows
from grammask.integrations.masking import apply_masks_to_rows_
from grammask.integrations.vllm.parameters import description_of, stop_ids_of, vocabulary_of_engine
from grammask.integrations.vocabularies import check_columns
from grammask.integrations.wire import canonical, constraint_from_wire

if TYPE_CHECKING:
    from grammask.engine.compile import CompiledConstraint

logger = init_logger(f"vllm.{__name__}")


class SlotProcessor(LogitsProcessor):  # type: ignore[misc]  # vLLM is not there where types are checked
    """See the module; arguments and methods are those of vLLM's interface."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self._state = req_states
        self._compilations = Compilations(
            lambda: vocabulary_of_engine(vllm_config),
            on_error=lambda error: logger.error("a request ends at once, its constraint cannot be compiled: %s", error),
        )
        self._compiling: dict[int, tuple[Future[CompiledConstraint], set[int]]] = {}
        self._followers: dict[int, Follower] = {}

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        self._followers.pop(req_idx, None)
        self._compiling.pop(req_idx, None)
        description = description_of(sampling_params)
        if description is None:
            return False
        future = self._compilations.start(canonical(description), lambda: constraint_from_wire(description))
        self._compiling[req_idx] = (future, stop_ids_of(sampling_params))
        return True

    def apply(self, logits: Any, ctx: Any) -> Any:
        if not any(slot in self._compiling for slot in ctx.idx_mapping_np.tolist()):
            return logits
        slots = ctx.expanded_idx_mapping.tolist()
        positions = ctx.pos.tolist()
        tokens = ctx.input_ids.tolist()
        rows: list[int] = []
        followers: list[Follower] = []
        for row, (slot, position, token) in enumerate(zip(slots, positions, tokens, strict=True)):
            if slot not in self._compiling:
                continue
            follower = self._caught_up(slot, position, token)
            if follower is not None:
                rows.append(row)
                followers.append(follower)
        if not rows:
            return logits
        vocabulary = followers[0].vocabulary
        check_columns(vocabulary, logits.shape[1])
        words = np.empty((len(rows), (vocabulary.size + 31) // 32), dtype=np.int32)
        fill_rows(followers, words)
        return apply_masks_to_rows_(logits, rows, words)

    def _caught_up(self, slot: int, position: int, token: int) -> Follower | None:
        """A copy of the slot's follower after the token at ``position``; None for a row inside the prompt, whose
        outcome is thrown away."""
        prompt_length = int(self._state.prompt_len.np[slot])
        count = position + 1 - prompt_length
        if count < 0:
            return None
        follower = self._followers.get(slot)
        if follower is None:
            future, stop_ids = self._compiling[slot]
            follower = self._followers[slot] = Follower(future.result(), stop_ids)
        if count == 0:
            follower.go_back(0)
            return follower.copy()
        if follower.length < count - 1:
            # A request that was preempted comes back with the tokens it had.
            known = self._state.all_token_ids.gpu[slot, prompt_length : prompt_length + count - 1].tolist()
            follower.read(known[follower.length :])
        follower.go_back(count - 1)
        follower.read([token])
        return follower.copy()
