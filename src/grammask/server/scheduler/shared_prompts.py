"""The n outputs of a job begin with the same tokens: one of them reads these, the others go on from copies.

What is read once is what each would have read, in the same parts, so every output gets the bits it would have got by
itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammask.models.batch import SequenceBatch

if TYPE_CHECKING:
    from grammask.server.scheduler.job import Job
    from grammask.server.scheduler.sequence import OutputSequence


@dataclass
class _Prompt:
    """The beginning of a job's outputs.

    Attributes:
        tokens: the prompt, and what is certain after it.
        reader: the output that reads it; None when it has been read.
        joined: how many of the outputs have come.
        followers: those of them that wait for it to be read.
        slot: a copy of what was read, for outputs that are still to come.
        logits: after the last token, for the same.
    """

    tokens: list[int]
    reader: OutputSequence | None
    joined: int = 1
    followers: list[OutputSequence] = field(default_factory=list)
    slot: int | None = None
    logits: NDArray[np.float32] | None = None


class SharedPrompts:
    """Who reads for whom. Belongs to the scheduler's thread.

    Args:
        batch: where the sequences are.
    """

    def __init__(self, batch: SequenceBatch) -> None:
        self._batch = batch
        self._prompts: dict[Job, _Prompt] = {}

    def join(self, sequence: OutputSequence) -> None:
        """An output has got its slot; everything is still unread."""
        job = sequence.job
        if job.n == 1:
            return
        prompt = self._prompts.get(job)
        if prompt is None:
            self._prompts[job] = _Prompt(list(sequence.unread), sequence)
            return
        prompt.joined += 1
        if prompt.tokens == sequence.unread:
            prompt.followers.append(sequence)

    def leave(self, sequence: OutputSequence) -> None:
        """An output is over. If it was the reader, another one takes its place."""
        prompt = self._prompts.get(sequence.job)
        if prompt is None:
            return
        if sequence in prompt.followers:
            prompt.followers.remove(sequence)
        elif prompt.reader is sequence:
            prompt.reader = prompt.followers.pop(0) if prompt.followers else None
        self._drop_unless_needed(sequence.job, prompt)

    def waits(self, sequence: OutputSequence) -> bool:
        """Whether an output has nothing to read by itself."""
        prompt = self._prompts.get(sequence.job)
        return prompt is not None and sequence in prompt.followers

    def due(self, complete: Collection[OutputSequence]) -> list[OutputSequence]:
        """Outputs that wait for nothing any more, once those in ``complete`` have read everything."""
        return [
            follower
            for prompt in self._prompts.values()
            if prompt.slot is not None or prompt.reader in complete
            for follower in prompt.followers
        ]

    def hand_on(self, complete: Collection[OutputSequence], rows: dict[int, NDArray[np.float32]]) -> None:
        """Gives what was read to those who waited for it.

        Args:
            complete: outputs that have read everything, and have not written yet.
            rows: slot to logits; those of the followers are added.
        """
        for job, prompt in list(self._prompts.items()):
            if prompt.reader is not None and prompt.reader in complete:
                source = prompt.reader.slot
                assert source is not None
                prompt.reader, prompt.logits = None, rows[source].copy()
                if prompt.joined < job.n:
                    prompt.slot = self._batch.fork(source)
            elif prompt.slot is not None:
                source = prompt.slot
            else:
                continue
            for follower in prompt.followers:
                assert follower.slot is not None
                assert prompt.logits is not None
                self._batch.remove(follower.slot)
                follower.slot = self._batch.fork(source)
                follower.unread.clear()
                rows[follower.slot] = prompt.logits.copy()
            prompt.followers.clear()
            self._drop_unless_needed(job, prompt)

    def keep_only(self, jobs: Iterable[Job]) -> None:
        """Forgets what was read for jobs of which no output is to come any more.

        Args:
            jobs: those of the outputs that wait in the queue.
        """
        if any(prompt.slot is not None for prompt in self._prompts.values()):
            coming = set(jobs)
            for job, prompt in list(self._prompts.items()):
                if prompt.reader is None and not prompt.followers and job not in coming:
                    self._drop(job, prompt)

    def _drop_unless_needed(self, job: Job, prompt: _Prompt) -> None:
        if prompt.reader is None and not prompt.followers and (prompt.slot is None or prompt.joined == job.n):
            self._drop(job, prompt)

    def _drop(self, job: Job, prompt: _Prompt) -> None:
        del self._prompts[job]
        if prompt.slot is not None:
            self._batch.remove(prompt.slot)
