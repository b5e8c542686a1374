"""Results as text for a terminal, as Markdown and as one HTML page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grammask.lab.report import Result, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

Pictures = Mapping[str, str]
"""Name of a plot to what shows it: the file's name for Markdown, SVG text for HTML."""

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;"
    "background:#fff}table{border-collapse:collapse;margin:1rem 0}caption{text-align:left;font-weight:600}"
    "td,th{padding:.25rem .75rem;border-bottom:1px solid #ddd;text-align:left}"
    "td+td,th+th{text-align:right}svg{max-width:100%;height:auto}"
)


def rich_result(result: Result) -> list[RenderableType]:
    """What to print, in order."""
    import rich.table
    from rich.markup import escape

    shown: list[Any] = [f"[bold]{escape(result.TITLE)}[/]"]
    for table in result.tables():
        drawn = rich.table.Table(title=escape(table.title), title_justify="left")
        for number, column in enumerate(table.columns):
            drawn.add_column(escape(column), justify="right" if number else "left", overflow="fold")
        for row in table.texts():
            drawn.add_row(*map(escape, row))
        shown.append(drawn)
    shown.extend(f"• {escape(finding)}" for finding in result.findings())
    return shown


def markdown(results: Sequence[Result], pictures: Mapping[str, Pictures], command: str) -> str:
    """A page; ``pictures`` by experiment."""
    parts = [f"# Lab results\n\n{_intro(results, command)}\n"]
    for result in results:
        parts.append(f"## {result.TITLE}\n\n`grammask lab {result.NAME}`: {result.METHOD}\n")
        parts.append("".join(f"- {finding}\n" for finding in result.findings()))
        for plot in result.plots():
            if plot.name in pictures.get(result.NAME, {}):
                parts.append(f"![{plot.title}]({pictures[result.NAME][plot.name]})\n")
        parts.extend(_markdown_table(table) for table in result.tables())
    return "\n".join(parts)


def web_page(results: Sequence[Result], pictures: Mapping[str, Pictures], command: str) -> str:
    """The same as one HTML file without anything else."""
    parts = [f"<h1>Lab results</h1><p>{html.escape(_intro(results, command))}</p>"]
    for result in results:
        parts.append(f"<h2>{html.escape(result.TITLE)}</h2><p>{html.escape(result.METHOD)}</p>")
        parts.append("<ul>" + "".join(f"<li>{html.escape(f)}</li>" for f in result.findings()) + "</ul>")
        parts.extend(
            pictures[result.NAME][plot.name] for plot in result.plots() if plot.name in pictures.get(result.NAME, {})
        )
        parts.extend(_html_table(table) for table in result.tables())
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Lab results</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def _intro(results: Sequence[Result], command: str) -> str:
    setup = results[0].setup
    components = ", ".join(f"{name} {value}" for name, value in sorted(setup.components.items()))
    return (
        f"Model {setup.model}, seed {setup.seed}, system fingerprint {setup.fingerprint} ({components}). "
        f"Made by: {command}"
    )


def _markdown_table(table: Table) -> str:
    rows = [list(table.columns), ["---", *["---:"] * (len(table.columns) - 1)], *table.texts()]
    lines = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)
    return f"**{table.title}**\n\n{lines}"


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in table.texts())
    return f"<table><caption>{html.escape(table.title)}</caption><tr>{head}</tr>{rows}</table>"
