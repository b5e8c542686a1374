"""A runner without a model, for tests of batches: the text in capitals."""

from __future__ import annotations

from collections.abc import Callable

from grammask.batch.job import Job
from grammask.batch.runner import failure, in_order, readable, success
from grammask.batch.shards import Outcome
from grammask.batch.source import Record, Shard


class EchoRunner:
    """Writes texts in capitals; those that begin with "fail: " fail."""

    def __init__(
        self,
        job: Job,
        on_shard: Callable[[Shard], object] = lambda shard: None,
        on_record: Callable[[Record], object] = lambda record: None,
    ) -> None:
        self._job = job
        self._on_shard = on_shard
        self._on_record = on_record

    def run(self, shard: Shard) -> list[Outcome]:
        self._on_shard(shard)
        texts, outcomes = readable(shard.records, self._job)
        for record in shard.records:
            self._on_record(record)
        for number, text in texts:
            if text.startswith("fail: "):
                outcomes[number] = failure("Failure", text)
            else:
                outcomes[number] = success(text.upper(), self._job, "stop", {})
        return in_order(shard.records, outcomes, self._job)


def echo_runner(job: Job) -> EchoRunner:
    return EchoRunner(job)
