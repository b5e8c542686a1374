"""Tables for the terminal (Rich where it is installed, else plain) and as Markdown."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """Rows of cells; the first column is text, the others are figures. ``note`` stands below."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    note: str = ""

    def markdown(self) -> str:
        """With the title as a bold line."""
        lines = [f"**{self.title}**", "", _row(self.columns), _row(["---", *["---:"] * (len(self.columns) - 1)])]
        lines += [_row([cell.replace("|", "\\|") for cell in row]) for row in self.rows]
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines) + "\n"

    def plain(self) -> str:
        """Columns aligned with blanks."""
        cells = [list(self.columns), *[list(row) for row in self.rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [self.title]
        for row in cells:
            first, *others = (
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join([first, *others]).rstrip())
        if self.note:
            lines.append(self.note)
        return "\n".join(lines) + "\n"

    def show(self) -> None:
        """Prints to standard output."""
        if importlib.util.find_spec("rich") is None:
            print(self.plain())
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table as RichTable

        table = RichTable(box=SIMPLE_HEAD)
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        wide = None if sys.stdout.isatty() else 160
        console = Console(width=wide, highlight=False, markup=False)
        console.print(self.title, style="bold")
        console.print(table)
        if self.note:
            console.print(self.note, "\n")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def figure(value: float | None) -> str:
    """A time in microseconds with three digits, thousands separated; an en dash for nothing."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times_faster(value: float | None) -> str:
    """A ratio, such as 12.3×."""
    return "–" if value is None else f"{figure(value)}×"


def percent(part: int, whole: int) -> str:
    """A share, such as 83.6 %."""
    return f"{100 * part / whole:.1f} %" if whole else "–"
