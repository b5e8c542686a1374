"""Running a job in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from grammask.batch.job import Job
from grammask.batch.runner import Runner, make_runner
from grammask.batch.shards import OutputFolder, Summary, write_shard
from grammask.batch.source import input_files, read_records, shards_of

Progress = Callable[[int, int], None]
"""Called with the records that are done and those of them that were done before."""


def run_local(
    job: Job,
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    progress: Progress | None = None,
    runner: Callable[[Job], Runner] = make_runner,
) -> Summary:
    """Answers every record of the input, going on where an earlier run of the same job has stopped.

    Args:
        job: what to ask.
        inputs: files (.jsonl, .ndjson, .csv, .parquet) or folders of them.
        output: a folder for the outcomes.
        progress: told after each shard.
        runner: makes what answers, when the first shard needs it.

    Raises:
        BatchError: input, output folder and job do not fit together.
        ModelError: the model cannot be loaded.
        ConstraintError: the constraint cannot be enforced.
    """
    files = input_files(inputs)
    folder = OutputFolder(Path(output), job.manifest(files), job.format)
    active: Runner | None = None
    sizes: list[int] = []
    earlier = 0
    for shard in shards_of(read_records(files), job.shard_size):
        sizes.append(len(shard.records))
        if folder.is_done(shard.number):
            earlier += len(shard.records)
        else:
            active = active or runner(job)
            write_shard(folder.file(shard.number), active.run(shard))
        if progress is not None:
            progress(sum(sizes), earlier)
    return folder.finish(sizes)
