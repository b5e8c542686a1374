"""The command line of the comparison on MaskBench-style cases."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines import DEFAULT, PACKAGES, installed
from benchmarks.machine import describe_machine, one_line
from benchmarks.maskbench import report
from benchmarks.maskbench.cases import read_cases, select
from benchmarks.maskbench.run import EngineUnavailable, Plan, run
from benchmarks.maskbench.summary import case_records, summarize
from benchmarks.tokenizer import data_file, loaded_tokenizer


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="MaskBench-style cases through grammask and the installed peers, in one run, a thread each.",
        epilog="Example: python -m benchmarks --every 20 --engines grammask,llguidance --json run.json",
    )
    options.add_argument(
        "cases",
        nargs="?",
        type=Path,
        help="JSON lines of id, schema and tests, gzipped or not (default: $GRAMMASK_DATA/maskbench-dev.jsonl.gz)",
    )
    options.add_argument(
        "--tokenizer",
        default="llama3_1",
        help="a tokenizer.json, or a name for $GRAMMASK_DATA/tokenizers/NAME.tokenizer.json.gz (default: llama3_1)",
    )
    options.add_argument(
        "--eos-token-id", type=int, help="the token that ends the output (default: by its usual names)"
    )
    options.add_argument(
        "--engines", default=",".join(DEFAULT), help="which, separated by commas (default: all installed)"
    )
    options.add_argument("--peer", action="append", help="show ratios to this engine (repeatable; default: to each)")
    options.add_argument("--filter", default="", metavar="TEXT", help="only cases whose id contains this")
    options.add_argument("--every", type=int, default=1, metavar="N", help="each n-th case")
    options.add_argument("--sample", type=int, metavar="N", help="this many cases, drawn by --seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=int, metavar="N", help="the first N of the cases that are left")
    options.add_argument("--xgrammar-limit", type=int, metavar="N", help="at most N cases, evenly spread, for xgrammar")
    options.add_argument("--outlines-limit", type=int, metavar="N", help="likewise for outlines-core")
    options.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="CPU time for a case (default: 30)"
    )
    options.add_argument("--memory-limit", type=float, default=10.0, metavar="GB", help="for each engine; 0 for none")
    options.add_argument("--no-forced", action="store_true", help="do not ask for forced tokens")
    options.add_argument("--gc", action="store_true", help="leave Python's garbage collector on while timing")
    options.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    options.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    options.add_argument("--failures-to", type=Path, metavar="FILE", help="write the list of failures there")
    options.add_argument("--compare", type=Path, metavar="FILE", help="the --json of an earlier run")
    options.add_argument("--slowest", type=int, default=0, metavar="N", help="list the slowest compiles and masks")
    options.add_argument("--failures", type=int, default=0, metavar="N", help="list up to N failures of each kind")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, prints, and returns the exit code: 0, or 2 when something needed is missing."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except (FileNotFoundError, ValueError, EngineUnavailable) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    cases = select(
        read_cases(options.cases or data_file("maskbench-dev.jsonl.gz")),
        every=options.every,
        sample=options.sample,
        seed=options.seed,
        containing=options.filter,
        limit=options.limit,
    )
    if not cases:
        raise ValueError("no case is left to run")
    engines = chosen_engines(options.engines)
    with loaded_tokenizer(options.tokenizer) as tokenizer:
        plan = Plan(
            engines=engines,
            tokenizer=tokenizer.path,
            eos_token_id=tokenizer.end_of_text() if options.eos_token_id is None else options.eos_token_id,
            seconds=options.timeout,
            limits={
                name: limit
                for name, limit in (("xgrammar", options.xgrammar_limit), ("outlines-core", options.outlines_limit))
                if limit is not None
            },
            forced=not options.no_forced,
            gc=options.gc,
            memory_bytes=int(options.memory_limit * 1e9),
        )
        started = time.perf_counter()
        results = run(plan, cases, tokenizer.encode, Progress(len(cases)))
    machine = describe_machine()
    data: dict[str, Any] = {
        "machine": machine,
        "seconds": round(time.perf_counter() - started, 1),
        "tokenizer": options.tokenizer,
        "selection": {name: getattr(options, name) for name in ("filter", "every", "sample", "seed", "limit")},
        "summary": {name: summarize(result) for name, result in results.items()},
        "ratios": report.all_ratios(results, options.peer),
        "cases": {name: case_records(result) for name, result in results.items()},
    }
    tables = [report.verdicts(data["summary"]), report.times(data["summary"])]
    tables += [*report.ratio_tables(data["ratios"]), report.refusals(data["summary"])]
    if options.slowest:
        tables.append(report.slowest(results, options.slowest))
    changed: list[str] = []
    if options.compare:
        table, changed = report.comparison(json.loads(options.compare.read_text("utf-8")), data)
        tables.append(table)
    caption = f"{len(cases):,} cases, tokenizer {options.tokenizer}, {data['seconds']:.0f} s; {one_line(machine)}"

    print(caption)
    for table in tables:
        table.show()
    print("\n".join(changed))
    sources = {case.id: case for case in cases}
    if options.failures:
        for result in results.values():
            print("\n".join(report.failures(result, sources, tokenizer.text_before, options.failures)))
    if options.failures_to:
        lines = [caption]
        for name in (name for name in engines if PACKAGES[name] == "grammask"):
            other = results.get("grammask-any") if name != "grammask-any" else None
            lines += report.failures(results[name], sources, tokenizer.text_before, None, other)
        write(options.failures_to, lines)
    if options.markdown:
        write(options.markdown, [caption, "", *(table.markdown() for table in tables), *(f"- {c}" for c in changed)])
    if options.json:
        write(options.json, [json.dumps(data, indent=1)])
    return 0


def write(path: Path, lines: Sequence[str]) -> None:
    """Writes lines to a file: replaces the file as a whole, so that nobody reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
    partial.replace(path)


def chosen_engines(names: str) -> list[str]:
    """The engines to run, those without their package left out with a word on standard error.

    Raises:
        ValueError: an unknown name, or none is installed.
    """
    there = installed()
    chosen = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in PACKAGES:
            raise ValueError(f"no engine {name!r}; there are {', '.join(PACKAGES)}")
        if name in there:
            chosen.append(name)
        else:
            print(f"benchmarks: {name} is left out: {PACKAGES[name]} is not installed", file=sys.stderr)
    if not chosen:
        raise ValueError("none of the engines is installed")
    return chosen


class Progress:
    """A line on standard error every few seconds."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._started = self._shown = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now - self._shown < 10 and done < self._total:
            return
        self._shown = now
        left = (now - self._started) / done * (self._total - done)
        print(f"{done:,} of {self._total:,} cases, about {left:,.0f} s left", file=sys.stderr, flush=True)
