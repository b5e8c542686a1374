"""A program's trace in a notebook and in a terminal: a tree of steps, indented where the program forked."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from grammask.display.chips import Chip, chips_html, chips_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from grammask.programs.trace import Step, Trace

_SYMBOLS = {"text": "▸", "generation": "✎", "choice": "⎇", "role": "☺", "end": "▪", "tool": "⚒", "check": "✗"}

_ROW = "padding-left:8px;border-left:2px solid rgba(128,128,128,.4)"

MAX_STEPS = 500


def trace_html(trace: Trace) -> str:
    """A trace as HTML that stands alone, for light and dark pages."""
    rows = []
    for index, depth in _tree(trace):
        step = trace.steps[index]
        chips = step_chips(step)
        body = chips_html(chips) if chips else _text_html(step)
        head = html.escape(f"{_SYMBOLS[step.kind]} {label(step)}")
        rows.append(
            f'<div style="margin:3px 0 3px {depth * 1.4:.1f}em;{_ROW}">'
            f'<span style="opacity:.75;font-size:85%">{head}</span>{body}</div>'
        )
    note = f"<div>… and {len(trace.steps) - MAX_STEPS:,} more steps</div>" if len(trace.steps) > MAX_STEPS else ""
    return f'<div><div style="opacity:.75">{html.escape(headline(trace))}</div>{"".join(rows)}{note}</div>'


def trace_rich(trace: Trace) -> RenderableType:
    """A trace for a terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    shown: list[RenderableType] = [Text(headline(trace), style="dim")]
    for index, depth in _tree(trace):
        step = trace.steps[index]
        chips = step_chips(step)
        line = Text(f"{_SYMBOLS[step.kind]} {label(step)}", style="dim")
        body = chips_text(chips) if chips else chips_text([Chip(step.text)])
        if step.kind == "check":
            body.stylize("strike")
        shown.append(Padding(Group(line, body) if step.text else line, (0, 0, 0, 2 * depth)))
    if len(trace.steps) > MAX_STEPS:
        shown.append(Text(f"… and {len(trace.steps) - MAX_STEPS:,} more steps", style="dim"))
    return Group(*shown)


def headline(trace: Trace) -> str:
    """What the whole program cost."""
    usage = trace.usage
    ways = len(trace.leaves)
    told = [f"{trace.model}: {len(trace.steps)} steps", f"{usage.completion_tokens:,} tokens"]
    if usage.forced_tokens:
        told.append(f"{usage.forced_tokens:,} forced")
    if ways > 1:
        told.append(f"{ways} ways")
    return ", ".join(told)


def label(step: Step) -> str:
    """What a step is, in a few words."""
    parts: list[str] = [step.kind]
    if step.role:
        parts.append(step.role)
    if step.name:
        parts.append(f"→ {step.name}")
    if step.constraint:
        parts.append(step.constraint if len(step.constraint) <= 80 else step.constraint[:79] + "…")
    if step.note:
        parts.append(step.note)
    return " · ".join(parts)


def step_chips(step: Step) -> list[Chip]:
    """The tokens of a step, coloured by the probability of the draw."""
    return [
        Chip(
            token.text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") or "■",
            math.exp(token.logprob),
            token.forced,
            f"token {token.id}, {100 * math.exp(token.logprob):.3g} %"
            + ("" if token.mass is None else f", mass kept {100 * token.mass:.3g} %"),
        )
        for token in step.tokens
    ]


def _tree(trace: Trace) -> Iterator[tuple[int, int]]:
    """The steps with their depth: a way of the program goes straight down, and each fork begins an indented one."""
    children: dict[int | None, list[int]] = {}
    for index, step in enumerate(trace.steps):
        children.setdefault(step.parent, []).append(index)
    waiting = [(index, 0) for index in reversed(children.get(None, []))]
    count = 0
    while waiting and count < MAX_STEPS:
        index, depth = waiting.pop()
        yield index, depth
        count += 1
        following = children.get(index, [])
        deeper = depth + (len(following) > 1)
        waiting.extend((child, deeper) for child in reversed(following))


def _text_html(step: Step) -> str:
    style = "margin:2px 0;white-space:pre-wrap;font-family:monospace"
    if step.kind == "check":
        style += ";text-decoration:line-through"
    return f'<div style="{style}">{html.escape(step.text)}</div>' if step.text else ""
