"""Tables and lists of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.engines import PACKAGES
from benchmarks.maskbench.cases import Case
from benchmarks.maskbench.summary import (
    CLOCKS,
    STATUSES,
    TIMES,
    CaseResult,
    EngineResults,
    both_passed,
    spreads,
)
from benchmarks.statistics import MEASURES, ratio
from benchmarks.tables import Table, figure, percent, times_faster

CLOCK_NAMES = {"wall": "wall", "cpu": "CPU"}

TextBefore = Callable[[str, int], str]
"""The part of a text that its first tokens cover, so many of them."""


def verdicts(summaries: Mapping[str, dict[str, Any]]) -> Table:
    """What came out right."""
    table = Table(
        "Cases",
        ["engine", "cases", *STATUSES, "forced tokens", "load s", "MB at start", "MB at end"],
        note=(
            "refused: the schema was not compiled; over: an invalid instance was accepted; under: a valid one was not; "
            "error: the engine gave up within an instance. forced tokens: share of the tokens of accepted valid "
            "instances that the engine knew before they came."
        ),
    )
    for name, summary in summaries.items():
        share = summary["forced"]["share"]
        counts = [
            percent(summary["statuses"][status], summary["cases"])
            if status in ("passed", "refused")
            else f"{summary['statuses'][status]:,}"
            for status in STATUSES
        ]
        table.rows.append(
            [
                f"{name} {summary['version']}",
                f"{summary['cases']:,}",
                *counts,
                "–" if share is None else f"{100 * share:.1f} %",
                f"{summary['load_seconds']:.2f}",
                f"{summary['ready_megabytes']:,.0f}",
                f"{summary['last_megabytes']:,.0f}",
            ]
        )
    return table


def times(summaries: Mapping[str, dict[str, Any]]) -> Table:
    """Percentiles of every engine on its own cases."""
    table = Table(
        "Times in µs, each engine on all cases that it compiles", ["time", "engine", "clock", "count", *MEASURES]
    )
    for name in TIMES:
        for engine, summary in summaries.items():
            for clock in CLOCKS:
                spread = summary["times"][name][clock]
                table.rows.append(
                    [
                        name,
                        engine,
                        CLOCK_NAMES[clock],
                        f"{spread['count']:,}",
                        *(figure(spread[measure] if spread["count"] else None) for measure in MEASURES),
                    ]
                )
    return table


def ratios(own: EngineResults, peer: EngineResults) -> dict[str, Any]:
    """How many times faster ``own`` is than ``peer`` on the cases that both pass, ready for JSON."""
    ids = both_passed(own, peer)
    ours, theirs = spreads(own, ids), spreads(peer, ids)
    faster = {
        name: {clock: {m: ratio(theirs[name][clock][m], ours[name][clock][m]) for m in MEASURES} for clock in CLOCKS}
        for name in TIMES
    }
    return {"cases": len(ids), "own": ours, "peer": theirs, "times_faster": faster}


def all_ratios(results: Mapping[str, EngineResults], peers: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """``ratios`` of every grammask against every peer (or against some): {grammask: {peer: ratios}}."""
    own = [name for name in results if PACKAGES[name] == "grammask"]
    others = [name for name in results if name not in own and (peers is None or name in peers)]
    return {name: {peer: ratios(results[name], results[peer]) for peer in others} for name in own}


def ratio_tables(data: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """The tables of ``all_ratios``."""
    return [ratio_table(own, peer, found) for own, peers in data.items() for peer, found in peers.items()]


def ratio_table(own: str, peer: str, data: Mapping[str, Any]) -> Table:
    """``ratios`` as a table; ``own`` and ``peer`` are the names of the engines."""
    table = Table(
        f"{own} against {peer}, on the {data['cases']:,} cases that both pass, in µs",
        ["time", "", *(f"{name} {CLOCK_NAMES[clock]}" for clock in CLOCKS for name in (own, peer, "faster,"))],
    )
    for name in TIMES:
        for measure in MEASURES:
            row = [name, measure]
            for clock in CLOCKS:
                times_of_both = (data[side][name][clock][measure] for side in ("own", "peer"))
                row += [*map(figure, times_of_both), times_faster(data["times_faster"][name][clock][measure])]
            table.rows.append(row)
    return table


def refusals(summaries: Mapping[str, dict[str, Any]], count: int = 12) -> Table:
    """The most frequent reasons not to compile."""
    table = Table("Refused schemas and crashes, by kind", ["engine", "cases", "kind"])
    for engine, summary in summaries.items():
        for kind, number in list(summary["refusals"].items())[:count]:
            table.rows.append([engine, f"{number:,}", kind])
    return table


def slowest(results: Mapping[str, EngineResults], count: int) -> Table:
    """The cases with the slowest compiles and masks (CPU)."""
    table = Table(f"The {count} slowest, by CPU time", ["time", "engine", "µs", "case", "instance", "token"])
    for engine, result in results.items():
        compiled = [case for case in result.cases.values() if case.compiled]
        for case in sorted(compiled, key=lambda case: -case.compile[1])[:count]:
            table.rows.append(["compile", engine, figure(case.compile[1] / 1000), case.id, "", ""])
        for case in sorted(compiled, key=lambda case: -case.slowest[0])[:count]:
            cpu, instance, position = case.slowest
            table.rows.append(["mask", engine, figure(cpu / 1000), case.id, str(instance), str(position)])
        totals = {case.id: int(result.mask_times(1, [case.id]).sum()) for case in compiled}
        for case in sorted(compiled, key=lambda case: -totals[case.id])[:count]:
            table.rows.append(["all masks", engine, figure(totals[case.id] / 1000), case.id, "", ""])
    return table


def explain_case(case: CaseResult, source: Case, text_before: TextBefore) -> list[str]:
    """Lines that say what went wrong with a case, as Markdown list items."""
    head = f"- `{case.id}` **{case.status}**"
    if case.message:
        head += f": {' '.join(case.message.split())[:300]}"
    lines = [head]
    for mistake in case.mistakes[:4]:
        text = source.instances[mistake.instance].text
        if mistake.kind == "over":
            lines.append(f"  - instance {mistake.instance} accepted, though invalid: `{_short(text)}`")
        else:
            before = text_before(text, mistake.position)
            rest = text[len(before) :]
            lines.append(
                f"  - instance {mistake.instance} {mistake.kind} at token {mistake.position}: "
                f"`{_short(before, tail=True)}` ⟪`{_short(rest, 60)}`⟫ {mistake.error}".rstrip()
            )
    if len(case.mistakes) > 4:
        lines.append(f"  - and {len(case.mistakes) - 4} more")
    return lines


def _short(text: str, size: int = 160, tail: bool = False) -> str:
    text = text.replace("`", "'")
    if len(text) <= size:
        return text
    return "…" + text[-size:] if tail else text[:size] + "…"


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Table, list[str]]:
    """What changed since an earlier run (the ``summary`` and ``cases`` of its JSON), on cases that both runs have.

    Times are those of whole runs, so compare runs over the same cases.
    """
    table = Table("Since the earlier run (CPU times in µs)", ["figure", "before", "now", "times faster"])
    changed = []
    for engine, summary in new["summary"].items():
        before = old["summary"].get(engine)
        if before is None:
            continue
        for status in STATUSES:
            was, now = before["statuses"][status], summary["statuses"][status]
            if was or now:
                table.rows.append([f"{engine} {status}", f"{was:,}", f"{now:,}", ""])
        for name in ("compile", "mask"):
            for measure in MEASURES:
                was, now = before["times"][name]["cpu"][measure], summary["times"][name]["cpu"][measure]
                table.rows.append(
                    [f"{engine} {name} {measure}", figure(was), figure(now), times_faster(ratio(was, now))]
                )
        was_cases, now_cases = old["cases"].get(engine, {}), new["cases"].get(engine, {})
        for case_id in sorted(was_cases.keys() & now_cases.keys()):
            was, now = was_cases[case_id]["status"], now_cases[case_id]["status"]
            if was != now:
                changed.append(f"{engine}: {case_id} {was} -> {now}")
    return table, changed


def failures(
    result: EngineResults,
    sources: Mapping[str, Case],
    text_before: TextBefore,
    count: int | None,
    other: EngineResults | None = None,
) -> list[str]:
    """Markdown list of the cases that do not pass, worst kinds first; up to ``count`` of each kind.

    Cases that ``other`` passes are only counted: with properties in any order, an instance out of order is no failure.
    """
    lines: list[str] = []
    passed_there = {case.id for case in other.with_status("passed")} if other is not None else set()
    for status in ("crash", "timeout", "error", "under", "over", "refused"):
        cases = result.with_status(status)
        if not cases:
            continue
        lines += ["", f"## {result.name}: {status} ({len(cases)})", ""]
        if other is not None and (passing := [case.id for case in cases if case.id in passed_there]):
            lines.append(f"- {len(passing)} of them pass as {other.name}: {', '.join(passing[:count])}")
        rest = [case for case in cases if case.id not in passed_there]
        for case in sorted(rest, key=lambda case: (case.kind, case.message, case.id))[:count]:
            lines += explain_case(case, sources[case.id], text_before)
        if count is not None and len(rest) > count:
            lines.append(f"- and {len(rest) - count} more")
    return lines
