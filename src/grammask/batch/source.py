"""Records of JSON lines, CSV and Parquet files, in the order of the files."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammask.batch.job import BatchError
from grammask.models.errors import MissingDependency


@dataclass(frozen=True)
class Record:
    """One record of the input.

    Attributes:
        number: its place in the whole input, from 0.
        values: its members; None if it could not be read.
        error: why it could not be read.
    """

    number: int
    values: dict[str, Any] | None
    error: str | None = None


@dataclass(frozen=True)
class Shard:
    """A stretch of the input.

    Attributes:
        number: its place among the shards, from 0.
        records: consecutive records, at least one.
    """

    number: int
    records: tuple[Record, ...]


def input_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files of paths and folders, a folder's by name.

    Raises:
        BatchError: there is no such file, none at all, or one of another kind.
    """
    found: list[Path] = []
    for each in paths:
        path = Path(each)
        if path.is_dir():
            found += sorted(entry for entry in path.iterdir() if entry.suffix in _READERS)
        elif path.is_file():
            found.append(path)
        else:
            raise BatchError(f"there is no file {path}")
    for path in found:
        if path.suffix not in _READERS:
            raise BatchError(f"{path}: the name of an input file ends in {', '.join(_READERS)}")
    if not found:
        raise BatchError("there are no input files")
    return found


def read_records(files: Sequence[Path]) -> Iterator[Record]:
    """All records; one that cannot be read says why and does not stop the others.

    Raises:
        BatchError: a file as a whole cannot be read.
    """
    number = 0
    for path in files:
        try:
            for values, error in _READERS[path.suffix](path):
                yield Record(number, values, error)
                number += 1
        except (OSError, ValueError, csv.Error) as error:
            raise BatchError(f"cannot read {path}: {error}") from error


def shards_of(records: Iterable[Record], size: int) -> Iterator[Shard]:
    """Cuts records into shards of ``size``; the last may be shorter."""
    pending = iter(records)
    for number in itertools.count():
        taken = tuple(itertools.islice(pending, size))
        if not taken:
            return
        yield Shard(number, taken)


def _json_lines(path: Path) -> Iterator[tuple[dict[str, Any] | None, str | None]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except ValueError as error:
                yield None, f"{path.name}, line {number}: no JSON: {error}"
                continue
            if isinstance(value, dict):
                yield value, None
            else:
                yield None, f"{path.name}, line {number}: expected an object, got {type(value).__name__}"


def _csv(path: Path) -> Iterator[tuple[dict[str, Any] | None, str | None]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        for row in reader:
            if None in row:
                yield None, f"{path.name}, line {reader.line_num}: more fields than columns"
            else:
                yield dict(row), None


def _parquet(path: Path) -> Iterator[tuple[dict[str, Any] | None, str | None]]:
    require_pyarrow("reading Parquet")
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1024):
            for row in batch.to_pylist():
                yield row, None


def require_pyarrow(what: str) -> None:
    """
    Raises:
        MissingDependency: pyarrow is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependency(f"{what} needs the package pyarrow", hint='pip install "grammask[batch]"')


_READERS = {".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _csv, ".parquet": _parquet}
