"""Cases and their selection."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast


@dataclass(frozen=True, slots=True)
class Instance:
    """An output. For a JSON Schema, what ``json.dumps`` writes by default, but with non-ASCII characters raw."""

    valid: bool
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """``kind`` is json_schema, regex or gbnf; ``source`` is the text that every engine starts from."""

    id: str
    kind: str
    source: str
    instances: tuple[Instance, ...]


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file of JSON lines (``id``, ``schema``, ``tests`` of ``valid`` and ``data``), gzipped or not.

    Raises:
        ValueError: a line is not such an object; the message says which.
    """
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield case_of(json.loads(line))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}:{number} is no case: {type(error).__name__}: {error}") from error


def case_of(record: dict[str, Any]) -> Case:
    """A case from its object. Raises KeyError or TypeError when parts are missing."""
    return Case(
        id=str(record["id"]),
        kind="json_schema",
        source=json.dumps(record["schema"], ensure_ascii=False),
        instances=tuple(
            Instance(bool(test["valid"]), json.dumps(test["data"], ensure_ascii=False)) for test in record["tests"]
        ),
    )


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8"))
    return path.open(encoding="utf-8")


def select(
    cases: Iterable[Case],
    *,
    every: int = 1,
    sample: int | None = None,
    seed: int = 0,
    containing: str = "",
    limit: int | None = None,
) -> list[Case]:
    """The cases to run, in the order of the file.

    containing: what the id must contain; every: each n-th of those; sample: that many of them, drawn by seed; limit:
    the first of what is left.
    """
    chosen = [case for case in cases if containing in case.id][::every]
    if sample is not None and sample < len(chosen):
        kept = sorted(random.Random(seed).sample(range(len(chosen)), sample))
        chosen = [chosen[i] for i in kept]
    return chosen[:limit]


def spread(total: int, count: int | None) -> set[int]:
    """``count`` of the positions 0 .. total - 1, evenly spread; all of them for None."""
    if count is None or count >= total:
        return set(range(total))
    return {i * total // count for i in range(count)}
