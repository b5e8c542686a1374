"""Running a job on a Ray cluster, with Ray Data.

Shards that are missing become the rows of a dataset, and a pool of actors, each with its own model, writes them into
the output folder, which all machines must share. When an actor or its machine dies, Ray gives its shard to another one.
Whether the dead one had written the file makes no difference: it is the same file.
"""

from __future__ import annotations

import importlib.util
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from grammask.batch.job import Job
from grammask.batch.local import Progress
from grammask.batch.runner import Runner, make_runner
from grammask.batch.shards import OutputFolder, Summary, shard_file, write_shard
from grammask.batch.source import Shard, input_files, read_records, shards_of
from grammask.models.errors import MissingDependency

WINDOW = 1024
"""Shards that are handed to Ray Data at once, which bounds how much of the input is in memory."""


class ShardWriter:
    """An actor of the pool: a model, and the folder to write to.

    Args:
        job: what to ask.
        folder: the output folder, as this machine sees it.
        runner: makes what answers.
    """

    def __init__(self, job: Job, folder: str, runner: Callable[[Job], Runner]) -> None:
        self._job = job
        self._folder = Path(folder)
        self._runner = runner(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """
        Args:
            batch: ``shard``, pickled shards.

        Returns:
            ``number`` and ``records`` of each.
        """
        numbers, counts = [], []
        for packed in batch["shard"]:
            shard: Shard = pickle.loads(packed)
            path = shard_file(self._folder, shard.number, self._job.format)
            if not path.exists():
                write_shard(path, self._runner.run(shard))
            numbers.append(shard.number)
            counts.append(len(shard.records))
        return {"number": numbers, "records": counts}


def run_ray(
    job: Job,
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    workers: int = 1,
    resources: dict[str, Any] | None = None,
    progress: Progress | None = None,
    runner: Callable[[Job], Runner] = make_runner,
) -> Summary:
    """Like ``run_local``, on the Ray cluster that this process is connected to, or on a local one.

    Args:
        workers: actors, each with a model of its own.
        resources: what Ray reserves for each: ``num_cpus``, ``num_gpus`` ...

    Raises:
        MissingDependency: Ray is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingDependency("--engine ray needs Ray", hint='pip install "grammask[ray]"')
    import ray
    import ray.data

    files = input_files(inputs)
    folder = OutputFolder(Path(output).absolute(), job.manifest(files), job.format)
    sizes: list[int] = []
    earlier: list[int] = []
    missing = _missing(shards_of(read_records(files), job.shard_size), folder, sizes, earlier)
    done = 0
    while window := list(itertools.islice(missing, WINDOW)):
        rows = ray.data.from_items(
            [{"shard": pickle.dumps(shard)} for shard in window], override_num_blocks=len(window)
        )
        answered = rows.map_batches(
            ShardWriter,
            fn_constructor_args=(job, str(folder.path), runner),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(window))),
            **(resources or {"num_cpus": 1}),
        )
        for row in answered.iter_rows():
            done += int(row["records"])
            if progress is not None:
                progress(sum(earlier) + done, sum(earlier))
    return folder.finish(sizes)


def _missing(shards: Iterator[Shard], folder: OutputFolder, sizes: list[int], earlier: list[int]) -> Iterator[Shard]:
    """The shards that have no file yet. The sizes of all that were looked at are noted, and of those that have one."""
    for shard in shards:
        sizes.append(len(shard.records))
        if folder.is_done(shard.number):
            earlier.append(len(shard.records))
        else:
            yield shard
