"""What an experiment hands over: numbers, and how to show them, without a drawing or terminal library.

An experiment returns a ``Result``: a dataclass of plain numbers with ``findings``, ``tables`` and ``plots`` made from
them. Terminal, Markdown, HTML and image files are then made in ``grammask.lab.render`` and ``grammask.lab.drawing``.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows under column titles. Numbers are shown with a few digits, None as a dash."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def texts(self) -> list[list[str]]:
        """The cells as they are shown."""
        return [[text_of(cell) for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Series:
    """One line, or one bar of each group."""

    name: str
    x: tuple[float, ...] | tuple[str, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Plot:
    """A picture; ``name`` is unique within its result and becomes part of a file name."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Literal["line", "bar"] = "line"
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Setup:
    """With what an experiment ran.

    Attributes:
        model: its name.
        fingerprint: ``system_fingerprint``.
        components: what the fingerprint was made from.
        steps: decoding steps per prompt. seed: of all random numbers.
    """

    model: str
    fingerprint: str
    components: dict[str, str]
    steps: int
    seed: int


@dataclass(frozen=True)
class Result(ABC):
    """The outcome of one experiment; its other fields are the experiment's own."""

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    METHOD: ClassVar[str]
    """What was done, in a paragraph."""

    setup: Setup

    @abstractmethod
    def findings(self) -> list[str]:
        """What the numbers say, a sentence each, with the numbers in it."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """The numbers."""

    def plots(self) -> list[Plot]:
        """The pictures."""
        return []

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values, with the experiment's name."""
        plain: dict[str, Any] = _plain({"experiment": self.NAME, **dataclasses.asdict(self)})
        return plain


def text_of(cell: Cell) -> str:
    """A cell as it is shown."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        if cell == 0 or not math.isfinite(cell):
            return f"{cell:g}"
        return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(share: float) -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return math.fsum(values) / len(values) if values else math.nan


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
