"""The plot of the README, drawn from the figures on the benchmark page: cases passed, and the time of a mask.

    python -m benchmarks.proof

It reads docs/benchmarks.md, so it shows what is published there and nothing else.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "images" / "proof.svg"

NAMES = {"grammask": "grammask", "grammask-any": "grammask, any order"}


_STYLE = (
    "<style>text{font:13px system-ui,sans-serif;fill:#1f2937}.soft{fill:#5b6b7b}.head{font-weight:600}"
    ".ours{fill:#0f766e;stroke:#0f766e}.peer{fill:#94a3b8;stroke:#94a3b8}.grid{stroke:#cbd5e1;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#e5e7eb}.soft{fill:#9fb0c0}.grid{stroke:#374151}"
    ".ours{fill:#2dd4bf;stroke:#2dd4bf}.peer{fill:#64748b;stroke:#64748b}}</style>"
)


@dataclass(frozen=True)
class Engine:
    """One engine's figures: cases passed in per cent, number of cases, median and p99 of a mask in µs (CPU)."""

    name: str
    passed: float
    cases: int
    p50: float | None
    p99: float | None


def engines(page: str) -> list[Engine]:
    """What the page's tables say, in their order."""
    page = page.partition("<!-- begin maskbench -->")[2].partition("<!-- end maskbench -->")[0]
    found = []
    for name, _, cases, passed in re.findall(r"^\| ([\w-]+) ([\d.]+) \| ([\d,]+) \| ([\d.]+) % \|", page, re.MULTILINE):
        times = re.search(rf"^\| mask \| {re.escape(name)} \| CPU \|(.+)\|$", page, re.MULTILINE)
        numbers = [float(cell.strip().replace(",", "")) for cell in times[1].split("|")] if times else []
        p50, p99 = (numbers[1], numbers[3]) if numbers else (None, None)
        found.append(Engine(name, float(passed), int(cases.replace(",", "")), p50, p99))
    return found


def picture(found: list[Engine]) -> str:
    """An SVG that suits light and dark pages."""
    row, top = 30, 52
    height = top + row * len(found) + 34
    label = escape(spoken(found))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {height}" role="img" aria-label="{label}">',
        _STYLE,
        '<text class="head" x="170" y="20">JSON Schemas enforced as they mean</text>',
        '<text class="soft" x="170" y="38">MaskBench cases with every instance judged right</text>',
        '<text class="head" x="530" y="20">Time of a mask</text>',
        '<text class="soft" x="530" y="38">µs of CPU, median to 99th percentile</text>',
    ]
    low, high = -1.0, 3.0

    def x(microseconds: float) -> float:
        return 530 + 300 * (min(high, max(low, math.log10(microseconds))) - low) / (high - low)

    for power in range(-1, 4):
        place = x(10.0**power)
        lines.append(f'<path class="grid" d="M{place:.1f} {top - 4}V{height - 26}"/>')
        lines.append(
            f'<text class="soft" x="{place:.1f}" y="{height - 10}" text-anchor="middle">{10.0**power:,g}</text>'
        )
    for index, engine in enumerate(found):
        y = top + row * index
        kind = "ours" if engine.name in NAMES else "peer"
        width = 2.1 * engine.passed
        lines.append(f'<text x="160" y="{y + 18}" text-anchor="end">{NAMES.get(engine.name, engine.name)}</text>')
        lines.append(f'<rect class="{kind}" x="170" y="{y + 5}" width="{width:.1f}" height="17" rx="2"/>')
        few = f" of {engine.cases}" if engine.cases < found[0].cases else ""
        lines.append(f'<text x="{178 + width:.1f}" y="{y + 18}">{engine.passed:g} %{few}</text>')
        if engine.p50 is not None and engine.p99 is not None:
            left, right = x(engine.p50), x(engine.p99)
            lines.append(f'<path class="{kind}" d="M{left:.1f} {y + 13.5}H{right:.1f}" stroke-width="3"/>')
            for place in (left, right):
                lines.append(f'<circle class="{kind}" cx="{place:.1f}" cy="{y + 13.5}" r="5"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def spoken(found: list[Engine]) -> str:
    """The same in words."""
    return "; ".join(
        f"{NAMES.get(engine.name, engine.name)}: {engine.passed:g} % of {engine.cases} cases passed"
        + (f", masks {engine.p50:g} to {engine.p99:g} µs" if engine.p50 is not None else "")
        for engine in found
    )


def main() -> None:
    """Draws it."""
    PICTURE.write_text(picture(engines(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
