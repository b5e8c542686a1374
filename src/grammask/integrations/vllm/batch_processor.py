"""The processor for vLLM's first model runner, whose batch is a list of rows that are added, moved and removed.

A row comes with a reference to its request's list of output tokens, which grows by itself. A request that was preempted
is added anew with the tokens it had. So a follower and that list are all the state there is, and any reordering is a
reordering of these pairs.

Masks are filled on another thread while the model's forward pass runs: ``update_state`` is called before it, ``apply``
after it.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from vllm.logger import init_logger
from vllm.v1.sample.logits_processor import LogitsProcessor, MoveDirectionality

from grammask.integrations.compiling import Compilations
from grammask.integrations.following import Follower, fill_rows
from grammask.integrations.masking import apply_masks_to_rows_
from grammask.integrations.vllm.parameters import description_of, stop_ids_of, vocabulary_of_engine
from grammask.integrations.vocabularies import check_columns
from grammask.integrations.wire import canonical, constraint_from_wire

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask.engine.compile import CompiledConstraint

logger = init_logger(f"vllm.{__name__}")

PLACEHOLDER = -1
"""Stands in vLLM's lists of output tokens for one that was sampled but has not arrived on the host."""


class _Row:
    """One constrained request: its constraint, perhaps still compiling, and its output tokens."""

    def __init__(self, compiling: Future[CompiledConstraint], stop_ids: set[int], output: list[int]) -> None:
        self._compiling = compiling
        self._stop_ids = stop_ids
        self._output = output
        self._follower: Follower | None = None

    @property
    def is_waiting(self) -> bool:
        """The last token has not arrived yet."""
        return bool(self._output) and self._output[-1] == PLACEHOLDER

    def caught_up(self) -> Follower:
        """The follower, after all output tokens. Waits for the compiler."""
        if self._follower is None:
            self._follower = Follower(self._compiling.result(), self._stop_ids)
        follower = self._follower
        if follower.length > len(self._output):
            follower.go_back(len(self._output))
        was_lost = follower.is_lost
        follower.read(self._output[follower.length :])
        if follower.is_lost and not was_lost:
            logger.error("a request left its constraint: something after grammask changed the logits of its tokens")
        return follower


class BatchProcessor(LogitsProcessor):  # type: ignore[misc]  # vLLM is not there where types are checked
    """See the module; arguments and methods are those of vLLM's interface."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        self._compilations = Compilations(
            lambda: vocabulary_of_engine(vllm_config),
            on_error=lambda error: logger.error("a request ends at once, its constraint cannot be compiled: %s", error),
        )
        self._rows: dict[int, _Row] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="grammask-masks")
        self._filling: Future[tuple[list[int], NDArray[np.int32]]] | None = None
        self._columns = vllm_config.model_config.get_vocab_size()

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: Any) -> None:
        if batch_update is not None:
            for index in batch_update.removed:
                self._rows.pop(index, None)
            for index, params, _, output in batch_update.added:
                self._add(index, params, output)
            for first, second, direction in batch_update.moved:
                self._move(first, second, swap=direction == MoveDirectionality.SWAP)
        self._filling = None
        if self._rows and not any(row.is_waiting for row in self._rows.values()):
            self._filling = self._pool.submit(self._fill)

    def apply(self, logits: Any) -> Any:
        if not self._rows:
            return logits
        if self._filling is None:
            if any(row.is_waiting for row in self._rows.values()):
                raise RuntimeError(
                    "vLLM does not tell this processor which tokens were sampled: with asynchronous scheduling, name "
                    "it in logits_processors as well"
                )
            self._filling = self._pool.submit(self._fill)
        rows, words = self._filling.result()
        self._filling = None
        return apply_masks_to_rows_(logits, rows, words)

    def _add(self, index: int, params: Any, output: list[int]) -> None:
        self._rows.pop(index, None)
        description = description_of(params)
        if description is not None:
            future = self._compilations.start(canonical(description), lambda: constraint_from_wire(description))
            self._rows[index] = _Row(future, stop_ids_of(params), output)

    def _move(self, first: int, second: int, *, swap: bool) -> None:
        moved, other = self._rows.pop(first, None), self._rows.pop(second, None)
        if moved is not None:
            self._rows[second] = moved
        if swap and other is not None:
            self._rows[first] = other

    def _fill(self) -> tuple[list[int], NDArray[np.int32]]:
        rows = sorted(self._rows)
        followers = [self._rows[row].caught_up() for row in rows]
        vocabulary = followers[0].vocabulary
        check_columns(vocabulary, self._columns)
        words = np.empty((len(rows), (vocabulary.size + 31) // 32), dtype=np.int32)
        fill_rows(followers, words)
        return rows, words
