"""A Result in a notebook and in a terminal."""

from __future__ import annotations

import html
import json
import math
import pprint
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grammask.display.chips import Chip, chips_html, chips_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from grammask.decoding import Result

_BADGE = "display:inline-block;border-radius:9px;padding:0 8px;margin-right:6px;font-size:85%;border:1px solid"


def result_html(result: Result[Any]) -> str:
    """A result as HTML that stands alone, for light and dark pages."""
    good = result.complete
    colour = "#0f9d76" if good else "#d0443e"
    parts = [
        f'<span style="{_BADGE} {colour};color:{colour}">{"complete" if good else "not complete"}</span>',
        f"<span style='opacity:.75'>{html.escape('; '.join(facts(result)))}</span>",
    ]
    body = [f"<div>{''.join(parts)}</div>"]
    if result.error:
        body.append(_pre(result.error))
    if result.value is not None and result.value != result.text:
        body.append(_pre(value_text(result.value)))
    chips, measure = token_chips(result)
    if chips:
        body.append(f"<div style='opacity:.75;font-size:85%'>coloured by {measure}; dashed: forced</div>")
        body.append(chips_html(chips))
    elif result.value is None or result.value == result.text:
        body.append(_pre(result.text))
    body += [_details(title, text) for title, text in sections(result)]
    return f'<div style="border-left:3px solid {colour};padding:4px 0 4px 12px">{"".join(body)}</div>'


def result_rich(result: Result[Any]) -> RenderableType:
    """A result for a terminal."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    chips, measure = token_chips(result)
    shown: list[RenderableType] = []
    if result.error:
        shown.append(Text(result.error, style="red"))
    if result.value is not None and result.value != result.text:
        shown += [Text(value_text(result.value), style="bold"), Text()]
    shown.append(chips_text(chips) if chips else Text(result.text))
    if chips:
        shown.append(Text(f"coloured by {measure}; underlined: forced", style="dim"))
    for title, text in sections(result):
        shown += [Text(), Text(title, style="bold"), Text(text)]
    title = "complete" if result.complete else f"not complete ({result.finish_reason})"
    style = "green" if result.complete else "red"
    return Panel(
        Group(*shown),
        title=Text(title, style=style),
        subtitle=Text("; ".join(facts(result)), style="dim"),
        expand=False,
    )


def facts(result: Result[Any]) -> list[str]:
    """What a result cost and how it ended, in a few words each."""
    usage = result.usage
    told = [f"finish reason {result.finish_reason}"]
    tokens = f"{usage.completion_tokens:,} tokens"
    told.append(f"{tokens}, {usage.forced_tokens:,} forced" if usage.forced_tokens else tokens)
    if usage.model_calls:
        told.append(f"{usage.model_calls:,} forward passes")
    if result.seconds:
        told.append(f"{result.seconds:.2f} s")
    mass = result.sampling_summary.mask_mass if result.tokens else None
    if mass is not None:
        told.append(f"mass kept {100 * mass:.3g} %")
    if result.limited:
        told.append("shortened by max_tokens")
    return told


def token_chips(result: Result[Any]) -> tuple[list[Chip], str]:
    """The tokens of a result, and what they are coloured by: the model's own probability where it was asked for, else
    that of the draw, and under greedy decoding the mass that the constraint kept."""
    tokens = list(zip(result.tokens, result.pieces, strict=False))
    if any(token.logprob is not None for token, _ in tokens):
        measure = "the model's own probability"
    elif any(not token.report.greedy and not token.report.forced for token, _ in tokens):
        measure = "the probability of the draw"
    else:
        measure = "the mass that the constraint kept"
    chips = []
    for token, piece in tokens:
        report = token.report
        if measure.startswith("the model"):
            share = None if token.logprob is None else math.exp(token.logprob)
        elif measure.endswith("draw"):
            share = math.exp(token.final_logprob)
        else:
            share = report.mask_mass
        chips.append(Chip(piece_text(piece), share, report.forced, _note(token.token_id, share, report.mask_mass)))
    return chips, measure


def piece_text(piece: bytes) -> str:
    """The bytes of a token as text; nothing at all is an end of text."""
    return piece.decode("utf-8", "backslashreplace") if piece else "■"


def value_text(value: Any) -> str:
    """A value on as many lines as it needs: JSON where it is JSON, else as Python writes it."""
    if isinstance(value, (dict, list, str, int, float, bool)):
        try:
            return json.dumps(value, indent=2, ensure_ascii=False)
        except (TypeError, ValueError):
            pass
    return pprint.pformat(value, width=100, sort_dicts=False)


def sections(result: Result[Any]) -> list[tuple[str, str]]:
    """What else there is to show: title and text each."""
    told: list[tuple[str, str]] = []
    if result.reasoning:
        told.append(("reasoning", result.reasoning))
    if result.vote is not None:
        told.append(("vote", str(result.vote)))
    if result.samples:
        told.append((f"{len(result.samples)} samples", "\n".join(_lines(result.samples))))
    if result.history:
        told.append((f"{len(result.history)} earlier attempts", "\n".join(map(_attempt, result.history))))
    return told


def _lines(samples: Sequence[Result[Any]]) -> list[str]:
    return [sample.text if len(sample.text) < 200 else sample.text[:199] + "…" for sample in samples]


def _attempt(attempt: Any) -> str:
    """An earlier output with what was wrong with it."""
    text = str(getattr(attempt, "text", attempt))
    return "\n".join([text, *(f"  ✗ {problem}" for problem in getattr(attempt, "problems", ()))])


def _note(token_id: int, share: float | None, mass: float | None) -> str:
    parts = [f"token {token_id}"]
    if share is not None:
        parts.append(f"{100 * share:.3g} %")
    if mass is not None:
        parts.append(f"mass kept {100 * mass:.3g} %")
    return ", ".join(parts)


def _pre(text: str) -> str:
    return f'<pre style="margin:6px 0;white-space:pre-wrap">{html.escape(text)}</pre>'


def _details(title: str, text: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{_pre(text)}</details>"
