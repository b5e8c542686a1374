"""Puts measured figures into docs/benchmarks.md, and plots beside it.

    python -m benchmarks.publish FOLDER

FOLDER holds some of ``maskbench.json``, ``regex_grammar.json``, ``micro.json`` and ``memory.json``, as ``make bench``
writes them, and ``sampling.json`` (``make bench-sampling``). In the page, what stands between ``<!-- begin NAME -->``
and ``<!-- end NAME -->`` is replaced, so that no figure is typed by hand; sections without a file stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import memory, sampling
from benchmarks.machine import one_line
from benchmarks.maskbench import report
from benchmarks.tables import Table, times_faster

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
NOT_ROWS = {"table", "machine"}
"""What stands beside the rows of a part of ``micro.json``."""
ENOUGH = 10
"""Fewer cases than this say nothing worth a sentence."""
COLOURS = {"grammask": "#00796b", "grammask-any": "#80cbc4", "llguidance": "#d84315", "xgrammar": "#5e35b1"}


NAMES = ("maskbench", "regex_grammar", "micro", "memory", "sampling")
"""Of the files."""


def sections(data: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Section name to its Markdown, for the files that there are."""
    found: dict[str, str] = {}
    distributions = "![Share of compiles and masks by time; memory by cases done](images/benchmarks-distributions.svg)"
    growth = "![Cost by size of the vocabulary and of the constraint](images/benchmarks-growth.svg)"
    if "maskbench" in data:
        maskbench = data["maskbench"]
        found["short"] = in_short(maskbench)
        found["maskbench"] = f"{_comparison(maskbench, _selection(maskbench))}\n{distributions}\n"
    if "regex_grammar" in data:
        found["regex_grammar"] = _comparison(data["regex_grammar"], f"{_cases(data['regex_grammar']):,} constraints")
    if "micro" in data:
        found.update({name: _micro(data["micro"], name) for name in ("calls", "vocabulary", "batch", "sizes")})
        found["growth"] = f"{_micro(data['micro'], 'growth')}\n{growth}\n"
    if "memory" in data:
        plot = "![Memory of a process by the number of schemas compiled](images/benchmarks-memory.svg)"
        table, caption = Table(**data["memory"]["table"]), one_line(data["memory"]["machine"])
        found["memory"] = f"{table.markdown()}\n{caption}.\n\n{plot}\n"
    if "sampling" in data:
        found["sampling"] = _sampling(data["sampling"])
    return found


def _cases(data: Mapping[str, Any]) -> int:
    return max(int(summary["cases"]) for summary in data["summary"].values())


def in_short(data: Mapping[str, Any]) -> str:
    """A list of who passes what, and of where grammask is faster and slower than each peer (CPU time)."""
    lines = []
    for name, summary in data["summary"].items():
        statuses = {status: count for status, count in summary["statuses"].items() if count}
        lines.append(f"* {name}, {summary['cases']:,} cases: " + ", ".join(f"{n:,} {s}" for s, n in statuses.items()))
    for own, peers in data["ratios"].items():
        for peer, found in peers.items():
            if found["cases"] < ENOUGH:
                continue
            ratios = {
                f"{what} {measure}": value
                for what, clocks in found["times_faster"].items()
                for measure, value in clocks["cpu"].items()
                if value is not None
            }
            faster = [f"{name} {times_faster(value)}" for name, value in ratios.items() if value >= 1]
            slower = [f"{name} {times_faster(value)}" for name, value in ratios.items() if value < 1]
            lines.append(f"* {own} against {peer} on the {found['cases']:,} cases that both pass: {', '.join(faster)}.")
            lines.append(f"    Slower: {', '.join(slower) or 'nowhere'}.")
    return "\n".join(lines)


def _selection(data: Mapping[str, Any]) -> str:
    every = data.get("selection", {}).get("every", 1)
    part = f" (every {every}th of the file)" if every > 1 else ""
    return f"{_cases(data):,} cases{part}"


def _comparison(data: dict[str, Any], what: str) -> str:
    tables = [
        report.verdicts(data["summary"]),
        report.times(data["summary"]),
        *report.ratio_tables(data["ratios"]),
        report.refusals(data["summary"]),
    ]
    caption = f"{what}, tokenizer {data['tokenizer']}; {one_line(data['machine'])}."
    return "\n".join([caption, "", *(table.markdown() for table in tables)])


def _sampling(data: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    caption = f"Vocabulary of {data['vocabulary']:,}, {data['clock']}; {versions}; {one_line(data['machine'])}."
    return f"{sampling.table(data['rows'], data['others']).markdown()}\n{caption}"


def _micro(data: dict[str, Any], name: str) -> str:
    return f"{Table(**data[name]['table']).markdown()}\n{one_line(data[name]['machine'])}.\n"


def filled(page: str, contents: Mapping[str, str]) -> str:
    """The page with its marked sections replaced.

    Raises:
        ValueError: the page has no section of a name.
    """
    for name, content in contents.items():
        section = re.search(rf"<!-- begin {name} -->\n(.*?)<!-- end {name} -->", page, re.DOTALL)
        if section is None:
            raise ValueError(f"the page has no section {name}")
        page = f"{page[: section.start(1)]}\n{content.strip()}\n\n{page[section.end(1) :]}"
    return page


def plot_distributions(data: Mapping[str, Any], path: Path) -> None:
    """Which share of compiles and of masks takes at most so long, and memory by cases done."""
    figure, axes = new_figure(3)
    for engine, summary in data["summary"].items():
        curve = summary["resident_megabytes"]
        axes[2].plot(curve["cases"], curve["megabytes"], label=engine, color=COLOURS.get(engine))
    axes[2].set(xlabel="cases done", ylabel="memory of the process, MB", ylim=(0, None))
    axes[2].legend(frameon=False)
    for axis, name in zip(axes[:2], ("compile", "mask"), strict=True):
        for engine, summary in data["summary"].items():
            histogram = summary[f"{name}_histogram"]
            total = sum(histogram["counts"])
            if not total:
                continue
            shares, so_far = [], 0
            for count in histogram["counts"]:
                so_far += count
                shares.append(100 * so_far / total)
            axis.step(histogram["microseconds"], shares, where="post", label=engine, color=COLOURS.get(engine))
        axis.set(xscale="log", xlabel=f"{name}, µs of CPU time", ylabel="% that take no longer", ylim=(0, 101))
        axis.legend(frameon=False)
    save_figure(figure, path)


def plot_growth(data: Mapping[str, Any], path: Path) -> None:
    """The mean mask by size of the vocabulary, and times by size of the constraint."""
    figure, axes = new_figure(3)
    by_tokens = sorted(
        (row for name, row in data["sizes"].items() if name not in NOT_ROWS), key=lambda row: row["tokens"]
    )
    for key, label in (("first", "first round"), ("again", "again")):
        axes[0].plot([r["tokens"] for r in by_tokens], [r[key]["mean"] for r in by_tokens], "o-", label=label)
    axes[0].set(xlabel="tokens in the vocabulary", ylabel="mean mask, µs", xlim=(0, None), ylim=(0, None))
    panels = ((axes[1], "compile", "compile, µs"), (axes[2], "again", "mean mask of the prefix, again, µs"))
    for axis, key, label in panels:
        for shape, rows in data["growth"].items():
            if shape not in NOT_ROWS:
                axis.plot([row["size"] for row in rows], [row[key] for row in rows], "o-", label=shape)
        axis.set(xscale="log", xlabel="size of the constraint", ylabel=label)
    axes[1].set(yscale="log")
    axes[2].set(ylim=(0, None))
    for axis in axes:
        axis.legend(frameon=False)
    save_figure(figure, path)


def new_figure(panels: int) -> tuple[Any, Any]:
    """A row of empty plots."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "grammask", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(4.5 * panels, 3.4), layout="constrained")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Any, path: Path) -> None:
    """As SVG, the same bytes for the same curves."""
    for axis in figure.axes:
        axis.minorticks_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    files = {name: folder / f"{name}.json" for name in NAMES}
    data = {name: json.loads(path.read_text("utf-8")) for name, path in files.items() if path.exists()}
    if not data:
        print(f"{folder} holds none of {', '.join(path.name for path in files.values())}", file=sys.stderr)
        return 2
    PAGE.write_text(filled(PAGE.read_text("utf-8"), sections(data)), encoding="utf-8")
    if "maskbench" in data:
        plot_distributions(data["maskbench"], PAGE.parent / "images" / "benchmarks-distributions.svg")
    if "micro" in data:
        plot_growth(data["micro"], PAGE.parent / "images" / "benchmarks-growth.svg")
    if "memory" in data:
        memory.plot(data["memory"]["curves"], PAGE.parent / "images" / "benchmarks-memory.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
