"""One model for many threads: whatever they ask for at the same time is read in one pass.

``ConcurrentModel(model)`` is a Model like any other, whose sessions may be used from as many threads as there are
requests. A session's ``forward`` leaves its tokens with a single worker and waits; the worker takes all that is
waiting, reads it together (``SequenceBatch``) and goes on. So requests join and leave between passes, and nothing else,
neither the decoding loop nor its caller, needs to know.

* A long prompt is read in pieces, one piece of one prompt per pass, so that it does not hold up the others.
* After a pass, the worker waits a moment for the sequences that were in it to come back, instead of starting with the
  first of them alone.
* Passes are invariant where the batch is: what a request is answered does not depend on the others, bit for bit.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grammask.models.base import Model, Prompt
from grammask.models.batch import SequenceBatch, check_truncation, sequence_batch
from grammask.models.prefix_cache import PrefixCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grammask.engine.vocabulary import Vocabulary

LINGER_SECONDS = 0.005
"""How long the worker waits for the sequences of the last pass to come back."""


@dataclass(eq=False)
class _Reading:
    """Tokens that a session waits for."""

    slot: int
    token_ids: Sequence[int]
    row: Future[NDArray[np.float32]]


class ConcurrentModel(Model):
    """A model whose sessions may be used from many threads at once; they share forward passes.

    Args:
        model: the model. Everything that is not about sessions is its own.
        prompt_piece: how many tokens of a long prompt are read between two steps of the other sequences, at least 1.

    ``close`` ends the worker thread. The model can also be used as a context manager, which closes it.
    """

    def __init__(self, model: Model, *, prompt_piece: int = 256) -> None:
        if prompt_piece < 1:
            raise ValueError(f"prompt_piece is {prompt_piece}: use at least 1")
        self._model = model
        batch = sequence_batch(model)
        self._invariant = batch.invariant
        self._prefix_cache = None if model.prefix_cache is None else PrefixCache()
        self._worker = _Worker(batch, prompt_piece)

    @property
    def model(self) -> Model:
        """The model behind it."""
        return self._model

    @property
    def invariant(self) -> bool:
        """The logits of a sequence do not depend on what is read beside it, bit for bit."""
        return self._invariant

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def vocabulary(self) -> Vocabulary:
        return self._model.vocabulary

    @property
    def context_length(self) -> int | None:
        return self._model.context_length

    @property
    def prefix_cache(self) -> PrefixCache | None:
        """Of its own, since sessions of the model behind it are others; None where that keeps none."""
        return self._prefix_cache

    @property
    def has_chat_template(self) -> bool:
        return self._model.has_chat_template

    def encode(self, prompt: Prompt) -> list[int]:
        return self._model.encode(prompt)

    def session(self) -> ConcurrentSession:
        """A new, empty sequence.

        Raises:
            RuntimeError: the model was closed.
        """
        return ConcurrentSession(self._worker)

    def close(self) -> None:
        """Ends the worker when it has done what is waiting. Sessions cannot be used any more."""
        self._worker.close()

    def __enter__(self) -> ConcurrentModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """What is special to the model behind it, such as ``module`` and ``render``."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)


class ConcurrentSession:
    """One sequence of a ConcurrentModel. One thread at a time; its slot is freed by ``close`` or with the object."""

    def __init__(self, worker: _Worker, slot: int | None = None, tokens: Sequence[int] = ()) -> None:
        self._worker = worker
        self._slot: int = worker.call(lambda batch: batch.add()) if slot is None else slot
        self._tokens = list(tokens)
        self._closing = weakref.finalize(self, worker.remove, self._slot)
        self._closing.atexit = False

    @property
    def length(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        if not len(token_ids):
            raise ValueError("a forward pass needs at least one token")
        row = self._worker.read(self._slot, token_ids)
        self._tokens.extend(token_ids)
        return row

    def forward_all(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """As of every session; read alone."""
        rows: NDArray[np.float32] = self._worker.call(lambda batch: batch.forward_all(self._slot, token_ids))
        self._tokens.extend(token_ids)
        return rows

    def truncate(self, length: int) -> None:
        check_truncation(len(self._tokens), length)
        self._worker.call(lambda batch: batch.truncate(self._slot, length))
        del self._tokens[length:]

    def fork(self) -> ConcurrentSession:
        return ConcurrentSession(self._worker, self._worker.call(lambda batch: batch.fork(self._slot)), self._tokens)

    def close(self) -> None:
        """Frees what the sequence holds. Closing twice is closing once."""
        self._closing()


class _Worker:
    """The thread that owns the batch."""

    def __init__(self, batch: SequenceBatch, piece: int) -> None:
        self._batch = batch
        self._piece = piece
        self._orders: queue.SimpleQueue[_Reading | Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="grammask-forward", daemon=True)
        self._thread.start()

    # -- from any thread

    def call(self, function: Callable[[SequenceBatch], Any]) -> Any:
        """Has the worker do something with the batch between passes, and waits for its result."""
        result: Future[Any] = Future()

        def run() -> None:
            try:
                result.set_result(function(self._batch))
            except Exception as error:  # handed to the thread that asked
                result.set_exception(error)

        self._order(run)
        return result.result()

    def read(self, slot: int, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Has tokens read with the next pass, and waits for the logits."""
        reading = _Reading(slot, token_ids, Future())
        self._order(reading)
        return reading.row.result()

    def remove(self, slot: int) -> None:
        """Frees a slot, without waiting: also called while objects are collected."""
        if not self._closed:
            self._orders.put(lambda: self._batch.remove(slot))

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._orders.put(None)
        self._thread.join()

    def _order(self, order: _Reading | Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError("the model was closed: its sessions cannot be used any more")
            self._orders.put(order)

    # -- the thread

    def _run(self) -> None:
        waiting: list[_Reading] = []
        expected = 0
        while True:
            self._collect(waiting, expected)
            if not waiting:
                return
            answered = self._pass(waiting)
            expected = len(answered)
            waiting = [reading for reading in waiting if reading not in answered]

    def _collect(self, waiting: list[_Reading], expected: int) -> None:
        """Takes orders until there is something to read and those who may come back have come, or time is up.

        Nothing is waiting afterwards only if the worker was told to end.
        """
        deadline = time.monotonic() + LINGER_SECONDS
        come = 0
        while True:
            left = deadline - time.monotonic() if come < expected else 0.0
            try:
                if waiting or self._ended:
                    order = self._orders.get(timeout=left) if left > 0 else self._orders.get_nowait()
                else:
                    order = self._orders.get()
            except queue.Empty:
                return
            if order is None:
                self._ended = True
            elif isinstance(order, _Reading):
                waiting.append(order)
                come += 1
            else:
                order()

    def _pass(self, waiting: Sequence[_Reading]) -> list[_Reading]:
        """Reads all short runs and one piece of the first long one; returns the readings that are done."""
        short = [reading for reading in waiting if len(reading.token_ids) <= self._piece]
        unread = {reading.slot: reading.token_ids for reading in short}
        long = next((reading for reading in waiting if len(reading.token_ids) > self._piece), None)
        if long is not None:
            unread[long.slot] = long.token_ids[: self._piece]
            long.token_ids = long.token_ids[self._piece :]
        try:
            rows = self._batch.forward(unread)
        except Exception as error:  # handed to the threads that wait
            failed = [*short, *([long] if long is not None else [])]
            for reading in failed:
                reading.row.set_exception(error)
            return failed
        for reading in short:
            reading.row.set_result(rows[reading.slot])
        return short
