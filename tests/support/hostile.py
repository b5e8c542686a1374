"""Asks ``hostile_runner`` about rows of hostile constraints, and what a good answer is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from grammask import Constraint

ORDER = {
    "seconds": 30.0,
    "mask_seconds": 0.2,
    "walk_seconds": 0.3,
    # A constraint's two million expressions take 150 MB; the rest is for what reads documents of megabytes.
    "memory": 1 << 30,
    # No limit, but how a hang is noticed, on slow machines as well.
    "killed_after": 60.0,
}
SHORT = 0.3
"""The time limit of rows that may be too large, in seconds. Nothing else is decided by the clock."""
MAX_MESSAGE = 4_000


class HostileRow(Protocol):
    """What tables of hostile constraints hold.

    Attributes:
        make: writes the constraint down.
        constraint: makes it of what was written down.
        answers: how it may end: "compiled", or names of error classes.
        place: what the JSON pointer of an error begins with.
        json: outputs are JSON.
    """

    @property
    def make(self) -> Callable[[], Any]: ...
    @property
    def answers(self) -> frozenset[str]: ...
    @property
    def place(self) -> str: ...
    @property
    def json(self) -> bool: ...
    def constraint(self, made: Any) -> Constraint: ...


class Answers:
    """A running server for the rows of one module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> Answers:
        runner = Path(__file__).with_name("hostile_runner.py")
        self._server = subprocess.Popen(
            [sys.executable, str(runner)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()

    def to(self, row: str, **order: Any) -> dict[str, Any]:
        """What the runner tells about a row; order: other than ORDER."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps({**ORDER, **order, "module": self._module, "row": row}), file=self._server.stdin, flush=True)
        told: dict[str, Any] = json.loads(self._server.stdout.readline())
        return told


def check(answers: Answers, name: str, row: HostileRow) -> None:
    """Asserts that a row is answered as its table says, and that an error names its place and a way out."""
    undecided = "ConstraintTooLarge" in row.answers and len(row.answers) > 1
    told = answers.to(name, seconds=SHORT) if undecided else answers.to(name)
    assert told["answer"] in row.answers, told
    if told["answer"] == "compiled":
        return
    if told["pointer"] is not None:
        assert told["pointer"].startswith(row.place), told
    elif row.json:  # in the text of a schema that is no JSON
        assert told["line"] is not None, told
    assert told["hint"] or told["answer"] in ("ConstraintSyntaxError", "UnsatisfiableConstraint"), told
    assert told["length"] < MAX_MESSAGE, told
