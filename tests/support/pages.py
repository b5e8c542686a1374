"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

_SETUP = "<!-- setup"
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+)(?P<language>[\w+-]*)[^\n]*$")
_MARK = re.compile(r"<!-- not run: (?P<reason>.+?) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: the file.
        line: of its first line of code, from 1.
        language: what follows the fence; may be empty.
        code: without the indentation of the fence.
        not_run: the reason in a comment ``<!-- not run: reason -->`` just before it, if there is one.
    """

    page: Path
    line: int
    language: str
    code: str
    not_run: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order.

    A comment ``<!-- setup`` with code up to a line ``-->`` is a Python block as well: it defines what the page uses
    without showing where it comes from.
    """
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        if lines[number].strip() == _SETUP:
            end = lines.index("-->", number)
            yield Block(page, number + 2, "python", "\n".join(lines[number + 1 : end]) + "\n", None)
            number = end + 1
            continue
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        indent, fence = opening["indent"], opening["fence"]
        end = number + 1
        while end < len(lines) and lines[end].strip() != fence:
            end += 1
        code = "\n".join(line.removeprefix(indent) for line in lines[number + 1 : end]) + "\n"
        before = " ".join(lines[max(0, number - 2) : number])
        mark = _MARK.search(before)
        yield Block(page, number + 2, opening["language"], code, mark and mark["reason"])
        number = end + 1


def name(page: Path) -> str:
    """A page's path in the checkout."""
    return page.relative_to(ROOT).as_posix()
