"""The scheduler: one thread that owns the model and drives all outputs, step by step.

In each step every running output reads its next token, a new one reads a part of its prompt, and all of it is one pass
of the model. The masks are computed by a second thread during the pass: both are native code that leaves Python free.
A long prompt is read in parts of a fixed size, at most one part's worth of tokens in each step, so that it neither
stalls the others nor depends on them. The n outputs of a request read their prompt once (``shared_prompts``).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from grammask._core import ConstraintTooLargeError, fill_masks
from grammask.decoding.forced import CertainText
from grammask.engine.vocabulary import Vocabulary
from grammask.models.batch import SequenceBatch
from grammask.sampling import Sampler
from grammask.server.errors import ConstraintTooSlow, timed_out
from grammask.server.metrics import Metrics
from grammask.server.scheduler.job import Event, Failed, Job
from grammask.server.scheduler.queue import FairQueue, QueueFull
from grammask.server.scheduler.sequence import OutputSequence
from grammask.server.scheduler.shared_prompts import SharedPrompts

Deliver = Callable[[list[tuple[Job, Event]]], None]
"""Called from the scheduler's thread with what happened in a step."""

SHORT = 16
"""So many tokens (those drawn, and what is certain after them) are read in every step; more have to take turns."""

SLOW_MASKS = 0.05
"""Seconds of processor time in one step (waiting for a lock is not counted). After a step that took longer, the masks
of the next one are filled one by one, which shows whose they are."""

log = logging.getLogger("grammask.server")


class Scheduler:
    """Runs jobs on a batch of sequences.

    Args:
        make_batch: makes the batch; called in the scheduler's thread, which alone uses it.
        vocabulary: of the model.
        deliver: where events go.
        max_sequences: outputs that run at the same time.
        max_waiting: outputs that may wait for their turn.
        chunk: prompt tokens read in one step.
        mask_seconds: of processor time, for all masks of one output; an output that takes more fails.
    """

    def __init__(
        self,
        make_batch: Callable[[], SequenceBatch],
        vocabulary: Vocabulary,
        deliver: Deliver,
        metrics: Metrics,
        *,
        max_sequences: int,
        max_waiting: int,
        chunk: int,
        request_timeout: float,
        mask_seconds: float = 2.0,
    ) -> None:
        self._make_batch = make_batch
        self._vocabulary = vocabulary
        self._certain = CertainText(vocabulary)
        self._deliver = deliver
        self._metrics = metrics
        self._max_sequences = max_sequences
        self._max_waiting = max_waiting
        self._chunk = chunk
        self._request_timeout = request_timeout
        self._slow_masks = False
        self._mask_seconds = mask_seconds
        self._queue = FairQueue()
        self._running: list[OutputSequence] = []
        self._wake = threading.Condition()
        self._stopping = False
        self._turn = 0
        self._seconds_per_output = 1.0
        self._events: list[tuple[Job, Event]] = []
        self._masks = np.zeros((max_sequences, (vocabulary.size + 31) // 32), dtype=np.int32)
        self._mask_thread = ThreadPoolExecutor(1, thread_name_prefix="masks")
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        self._ready = threading.Event()
        metrics.running.set_function(lambda: len(self._running))
        metrics.waiting.set_function(lambda: len(self._queue))
        self.failure: BaseException | None = None
        """Why the scheduler died, if it did."""

    # -- from other threads

    def start(self) -> None:
        """Starts the thread and waits for the batch to be made.

        Raises:
            RuntimeError: it cannot be made.
        """
        self._thread.start()
        self._ready.wait()
        if self.failure is not None:
            raise RuntimeError(f"the model cannot be run in a batch: {self.failure}") from self.failure

    def stop(self) -> None:
        """Ends the thread after the current step; outputs that still run are dropped."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
        self._mask_thread.shutdown()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def live_sequences(self) -> int:
        """Outputs that run or wait: each holds a matcher."""
        with self._wake:
            return len(self._running) + len(self._queue)

    def submit(self, job: Job) -> None:
        """Adds a job.

        Raises:
            QueueFull: there is no room.
            BudgetTooSmall: its outputs must not be cut, and none is known to fit.
            ValueError: its sampling does not fit the vocabulary.
        """
        sampler = Sampler(
            job.sampling,
            self._vocabulary.size,
            eos_token_ids=self._vocabulary.eos_token_ids,
            token_bytes=self._vocabulary.token_bytes,
        )
        sequences = [OutputSequence(job, index, sampler, self._vocabulary, self._certain) for index in range(job.n)]
        with self._wake:
            room = self._max_waiting + self._max_sequences - len(self._running) - len(self._queue)
            if self._stopping or len(sequences) > room:
                self._metrics.refused.inc()
                raise QueueFull
            now = time.monotonic()
            for sequence in sequences:
                sequence.queued_at = now
            self._queue.put(sequences)
            self._wake.notify()

    def cancel(self, job: Job) -> None:
        """Ends all outputs of a job before the next step."""
        job.cancelled = True
        with self._wake:
            self._queue.remove(lambda sequence: sequence.job is job)
            self._wake.notify()

    def retry_after(self) -> int:
        """Seconds until there should be room."""
        rounds = 1 + len(self._queue) / self._max_sequences
        return max(1, min(60, round(self._seconds_per_output * rounds / 2)))

    # -- in the scheduler's thread

    def _run(self) -> None:
        try:
            self._batch = self._make_batch()
            self._prompts = SharedPrompts(self._batch)
            self._ready.set()
            while self._wait_for_work():
                self._step()
                self._hand_over()
        except BaseException as error:
            self.failure = error
            log.exception("the scheduler died")
            self._fail_everything(error)
        finally:
            self._ready.set()

    def _wait_for_work(self) -> bool:
        with self._wake:
            self._prompts.keep_only(self._queue.jobs())
            while not self._stopping and not self._running and not len(self._queue):
                self._wake.wait()
            if self._stopping:
                return False
            now = time.monotonic()
            for late in self._queue.remove(lambda sequence: sequence.job.deadline <= now):
                self._fail(late, timed_out(self._request_timeout))
            while len(self._running) < self._max_sequences:
                sequence = self._queue.take()
                if sequence is None:
                    break
                self._metrics.waiting_seconds.observe(now - sequence.queued_at)
                sequence.slot = self._batch.add()
                self._running.append(sequence)
                self._prepare(sequence)
                if sequence.slot is not None:
                    self._prompts.join(sequence)
        return True

    def _step(self) -> None:
        self._drop_unwanted()
        reads, complete = self._next_reads()
        complete += self._prompts.due(complete)
        if not reads and not complete:
            return
        with_mask = [sequence for sequence in complete if sequence.needs_mask]
        masks = self._masks[: len(with_mask)]
        filling = self._mask_thread.submit(self._fill_masks, with_mask, masks)
        start = time.perf_counter()
        slots = {sequence.slot: tokens for sequence, tokens in reads if sequence.slot is not None}
        try:
            rows = self._batch.forward(slots) if slots else {}
        except Exception as error:  # out of memory, for example: what was in this pass is lost, the server is not
            filling.result()
            log.exception("a forward pass failed")
            for sequence, _ in reads:
                self._fail(sequence, error)
                self._remove(sequence)
            return
        passed = time.perf_counter()
        filling.result()
        filled = time.perf_counter()
        row_of = {id(sequence): row for row, sequence in enumerate(with_mask)}
        for sequence, tokens in reads:
            del sequence.unread[: len(tokens)]
        self._prompts.hand_on(complete, rows)
        for sequence in complete:
            assert sequence.slot is not None
            if sequence.mask_seconds > self._mask_seconds:
                self._fail(sequence, ConstraintTooSlow(self._mask_seconds))
                self._remove(sequence)
                continue
            mask = masks[row_of.get(id(sequence), 0)] if with_mask else self._masks[0]
            self._advance(sequence, partial(sequence.choose, rows[sequence.slot], mask))
            if sequence.finish_reason is None:
                self._prepare(sequence)
            else:
                self._conclude(sequence)
        done = time.perf_counter()
        for part, seconds in (("forward", passed - start), ("mask_wait", filled - passed), ("choose", done - filled)):
            self._metrics.step_seconds.labels(part).observe(seconds)
        self._metrics.batch_sequences.observe(len(reads))

    def _next_reads(self) -> tuple[list[tuple[OutputSequence, list[int]]], list[OutputSequence]]:
        """What each sequence reads in this step, and those that have read everything then."""
        self._turn += 1
        reads: list[tuple[OutputSequence, list[int]]] = []
        room = self._chunk
        for sequence in sorted(self._running, key=lambda sequence: sequence.last_turn):
            if self._prompts.waits(sequence):
                continue
            tokens = sequence.unread[: self._chunk]
            if len(tokens) > SHORT:
                if len(tokens) > room:
                    continue
                room -= len(tokens)
                sequence.last_turn = self._turn
            reads.append((sequence, tokens))
        complete = [sequence for sequence, tokens in reads if len(tokens) == len(sequence.unread)]
        return reads, complete

    def _fill_masks(self, sequences: Sequence[OutputSequence], masks: NDArray[np.int32]) -> None:
        if sequences:
            start = time.perf_counter()
            before = time.thread_time()
            if self._slow_masks:
                self._fill_each(sequences, masks)
            else:
                try:
                    fill_masks([sequence.matcher for sequence in sequences], masks, 1)
                except ConstraintTooLargeError:  # of one of them
                    self._fill_each(sequences, masks)
            self._slow_masks = time.thread_time() - before > SLOW_MASKS
            self._metrics.step_seconds.labels("mask").observe(time.perf_counter() - start)

    def _fill_each(self, sequences: Sequence[OutputSequence], masks: NDArray[np.int32]) -> None:
        """One after the other, each on its own account."""
        for row, sequence in enumerate(sequences):
            begun = time.thread_time()
            try:
                fill_masks([sequence.matcher], masks[row : row + 1], 1)
                sequence.mask_seconds += time.thread_time() - begun
            except ConstraintTooLargeError:
                sequence.mask_seconds = math.inf

    def _prepare(self, sequence: OutputSequence) -> None:
        self._advance(sequence, sequence.prepare)
        self._conclude(sequence)

    def _advance(self, sequence: OutputSequence, move: Callable[[], None]) -> None:
        try:
            move()
        except ConstraintTooLargeError:
            self._fail(sequence, ConstraintTooSlow(self._mask_seconds))
            self._remove(sequence)
        except Exception as error:  # one output's trouble is its own
            self._fail(sequence, error)
            self._remove(sequence)

    def _conclude(self, sequence: OutputSequence) -> None:
        """Tells what is new, and takes an output that has ended out."""
        if sequence.slot is None:
            return
        piece = sequence.piece()
        if piece is not None:
            self._events.append((sequence.job, piece))
        if sequence.finish_reason is not None:
            ended = sequence.ended()
            self._events.append((sequence.job, ended))
            self._remove(sequence)
            self._seconds_per_output += 0.1 * (time.monotonic() - sequence.queued_at - self._seconds_per_output)
            self._metrics.output_tokens.labels("forced").inc(ended.forced)
            self._metrics.output_tokens.labels("drawn").inc(len(ended.token_ids) - ended.forced)

    def _drop_unwanted(self) -> None:
        now = time.monotonic()
        for sequence in list(self._running):
            if sequence.job.cancelled:
                self._remove(sequence)
                self._metrics.finished.labels("cancelled", "").inc()
            elif sequence.job.deadline <= now:
                self._fail(sequence, timed_out(self._request_timeout))
                self._remove(sequence)

    def _remove(self, sequence: OutputSequence) -> None:
        if sequence.slot is not None:
            self._prompts.leave(sequence)
            self._batch.remove(sequence.slot)
            sequence.slot = None
            with self._wake:
                self._running.remove(sequence)

    def _fail(self, sequence: OutputSequence, error: Exception) -> None:
        self._events.append((sequence.job, Failed(sequence.index, error)))

    def _hand_over(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self._deliver(events)

    def _fail_everything(self, error: BaseException) -> None:
        with self._wake:
            self._stopping = True
            lost = [*self._running, *self._queue.remove(lambda _: True)]
            self._running = []
        failure = RuntimeError(f"the scheduler died: {error}")
        for sequence in lost:
            self._fail(sequence, failure)
        self._hand_over()
