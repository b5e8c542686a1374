"""Tokens as chips, coloured by a share from 0 to 1, in HTML and for a terminal."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

MAX_CHIPS = 2000
"""Tokens that are shown; more are only counted."""

_SCALE = ((220, 60, 48), (224, 172, 38), (20, 150, 132))
"""Red, yellow, teal, at 0, a half and 1. With the opacity below, text on it is readable on light and dark pages."""

_OPACITY = 0.26

_MARKS = str.maketrans({"\n": "⏎\n", "\t": "⇥", "\r": "␍"})


@dataclass(frozen=True)
class Chip:
    """One token.

    Attributes:
        text: bytes that are no characters by themselves as ``\\xNN``.
        share: what it is coloured by; None for no colour.
        forced: nothing else was possible.
        note: what to say about it on request.
    """

    text: str
    share: float | None = None
    forced: bool = False
    note: str = ""


def colour(share: float) -> tuple[int, int, int]:
    """Red, green and blue of a share from 0 to 1."""
    share = min(1.0, max(0.0, share))
    low, high = (_SCALE[0], _SCALE[1]) if share < 0.5 else (_SCALE[1], _SCALE[2])
    part = 2 * share if share < 0.5 else 2 * share - 1
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return red, green, blue


def chips_html(chips: Sequence[Chip]) -> str:
    """The chips in a row that wraps, line breaks where the text has them."""
    shown = "".join(map(_chip_html, chips[:MAX_CHIPS]))
    rest = f"<span> … and {len(chips) - MAX_CHIPS:,} more tokens</span>" if len(chips) > MAX_CHIPS else ""
    return f'<div style="font-family:monospace;line-height:1.75;overflow-wrap:anywhere">{shown}{rest}</div>'


def _chip_html(chip: Chip) -> str:
    style = "border-radius:3px;padding:1px 2px;margin:0 1px 0 0;white-space:pre-wrap;"
    if chip.forced:
        style += "border:1px dashed currentColor;opacity:.8;"
    elif chip.share is not None:
        red, green, blue = colour(chip.share)
        style += f"background:rgba({red},{green},{blue},{_OPACITY});"
    text = html.escape(chip.text.translate(_MARKS).replace("\n", ""))
    title = html.escape(chip.note, quote=True)
    after = "<br>" * chip.text.count("\n")
    return f'<span style="{style}" title="{title}">{text}</span>{after}'


def chips_text(chips: Sequence[Chip]) -> Text:
    """The chips as one text of a terminal: coloured by their share, forced ones underlined."""
    from rich.text import Text

    text = Text()
    for chip in chips[:MAX_CHIPS]:
        style = ""
        if chip.forced:
            style = "dim underline"
        elif chip.share is not None:
            red, green, blue = colour(chip.share)
            style = f"#{red:02x}{green:02x}{blue:02x}"
        text.append(_printable(chip.text), style)
    if len(chips) > MAX_CHIPS:
        text.append(f" … and {len(chips) - MAX_CHIPS:,} more tokens", "dim")
    return text


def _printable(text: str) -> str:
    """The text without characters that would steer the terminal; line breaks and tabs stay."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\x{ord(character):02x}"
        for character in text
    )
