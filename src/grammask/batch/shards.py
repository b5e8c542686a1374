"""The output folder: the job's manifest, one file for each shard, and a summary at the end."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grammask.batch.job import BatchError, Format
from grammask.batch.source import require_pyarrow

MANIFEST = "job.json"
SUMMARY = "summary.json"

Outcome = dict[str, Any]
"""``record``, ``id`` if asked for, and either ``value``, ``text``, ``finish_reason`` and ``usage``, or ``error`` with
``kind`` and ``message`` (and ``text`` if there is one)."""


@dataclass(frozen=True)
class Summary:
    """What came of a job.

    Attributes:
        records: how many the input has; each has one outcome.
        succeeded: complete outputs.
        failed: outcomes with an error.
        shards: files.
        errors: failures by kind.
    """

    records: int
    succeeded: int
    failed: int
    shards: int
    errors: dict[str, int]


class OutputFolder:
    """The output of one job.

    Args:
        path: a folder that does not exist, is empty, or holds the unfinished output of the same job.
        manifest: of the job and its input.
        format: of the shards' files.

    Raises:
        BatchError: the folder holds something else.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any], format: Format) -> None:
        self.path = path
        self.format = format
        path.mkdir(parents=True, exist_ok=True)
        known = path / MANIFEST
        if known.exists():
            differences = _differences(json.loads(known.read_text(encoding="utf-8")), dict(manifest))
            if differences:
                raise BatchError(
                    f"{path} holds the output of another job, which differs in {', '.join(differences)}: use another "
                    "folder"
                )
        elif any(path.iterdir()):
            raise BatchError(f"{path} is not empty and holds no {MANIFEST}: use another folder")
        else:
            write_whole(known, json.dumps(manifest, indent=2, ensure_ascii=False).encode())

    def file(self, number: int) -> Path:
        """Where the outcomes of a shard are, or will be."""
        return shard_file(self.path, number, self.format)

    def is_done(self, number: int) -> bool:
        """Whether a shard's outcomes are there."""
        return self.file(number).exists()

    def finish(self, sizes: Sequence[int]) -> Summary:
        """Reads all shards, checks that every record has exactly one outcome, and writes the summary.

        Args:
            sizes: records of each shard.

        Raises:
            BatchError: a shard is missing, or its outcomes are not those of its records.
        """
        errors: dict[str, int] = {}
        succeeded = expected = 0
        for number, size in enumerate(sizes):
            outcomes = read_shard(self.file(number))
            if [outcome["record"] for outcome in outcomes] != list(range(expected, expected + size)):
                raise BatchError(
                    f"{self.file(number)} does not hold the outcomes of its records: delete it and run again"
                )
            expected += size
            for outcome in outcomes:
                error = outcome.get("error")
                if error is None:
                    succeeded += 1
                else:
                    errors[error["kind"]] = errors.get(error["kind"], 0) + 1
        surplus = [
            path.name for path in self.path.glob("part-*") if int(re.findall(r"\d+", path.name)[0]) >= len(sizes)
        ]
        if surplus:
            raise BatchError(f"{self.path} holds more shards than the input has: {', '.join(sorted(surplus)[:3])}")
        summary = Summary(expected, succeeded, expected - succeeded, len(sizes), errors)
        write_whole(self.path / SUMMARY, json.dumps(asdict(summary), indent=2).encode())
        return summary


def shard_file(folder: Path, number: int, format: Format) -> Path:
    """The file of a shard."""
    return folder / f"part-{number:06d}.{format}"


def write_shard(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Writes a shard's outcomes, whole or not at all."""
    if path.suffix == ".jsonl":
        lines = "".join(json.dumps(outcome, ensure_ascii=False) + "\n" for outcome in outcomes)
        write_whole(path, lines.encode())
        return
    require_pyarrow("writing Parquet")
    import pyarrow
    import pyarrow.parquet

    columns = {
        "record": pyarrow.array([outcome["record"] for outcome in outcomes], pyarrow.int64()),
        "id": _json_column([outcome.get("id") for outcome in outcomes]),
        "value": _json_column([outcome.get("value") for outcome in outcomes]),
        "text": pyarrow.array([outcome.get("text") for outcome in outcomes], pyarrow.string()),
        "finish_reason": pyarrow.array([outcome.get("finish_reason") for outcome in outcomes], pyarrow.string()),
        "usage": _json_column([outcome.get("usage") for outcome in outcomes]),
        "error": _json_column([outcome.get("error") for outcome in outcomes]),
    }
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    write_whole(path, sink.getvalue().to_pybytes())


def read_shard(path: Path) -> list[Outcome]:
    """The outcomes of a shard.

    Raises:
        BatchError: the file is not there.
    """
    if not path.exists():
        raise BatchError(f"{path} is missing")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(path).to_pylist()
    for row in rows:
        for name in ("id", "value", "usage", "error"):
            row[name] = None if row[name] is None else json.loads(row[name])
    return list(rows)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that appears under its name only when it is whole and on disk."""
    descriptor, name = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _json_column(values: Sequence[Any]) -> Any:
    import pyarrow

    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return pyarrow.array(texts, pyarrow.string())


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    ours = json.loads(json.dumps(ours))
    return sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
