"""What each stage of the sampler does to given logits: survivors, mass kept, entropy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grammask.sampling.candidates import Candidates
from grammask.sampling.inputs import Logits, Mask, as_row, unpack_mask
from grammask.sampling.order import STAGE_SETTINGS
from grammask.sampling.state import SamplerState


@dataclass(frozen=True, slots=True)
class StageReport:
    """The distribution after one stage.

    Attributes:
        stage: its name; ``"model"`` is the distribution before any stage.
        setting: the settings behind it, as text.
        survivors: how many tokens are still possible.
        mass_kept: the probability, before this stage, of the tokens that survive it. Stages that move logits without
            excluding any token keep 1.
        entropy: in nats.
        best: the most likely token, and its probability.
    """

    stage: str
    setting: str
    survivors: int
    mass_kept: float
    entropy: float
    best: tuple[int, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All stages of one step, in order. ``str`` gives a table of plain text; Rich prints it as one of its own.

    Attributes:
        order: the order's name.
        stages: first the model, then each stage that acted.
        lifted: bans that gave way to the constraint.
        tokens: the most likely tokens at the end, with their probabilities, best first.
    """

    order: str
    stages: tuple[StageReport, ...]
    lifted: tuple[str, ...]
    tokens: tuple[tuple[int, float], ...]
    names: Callable[[int], str] = str

    def rows(self) -> list[tuple[str, ...]]:
        """The table's cells, header first."""
        header = ("stage", "setting", "survivors", "mass kept", "entropy", "most likely")
        rows: list[tuple[str, ...]] = [
            (
                report.stage,
                report.setting,
                f"{report.survivors:,}",
                _percent(report.mass_kept),
                f"{report.entropy:.3f}",
                f"{self.names(report.best[0])} {_percent(report.best[1])}",
            )
            for report in self.stages
        ]
        return [header, *rows]

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        right = {2, 3, 4}
        lines = [
            "  ".join(
                cell.rjust(width) if column in right else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join((lines[0], "-" * len(lines[0]), *lines[1:], *self._notes()))

    def __rich__(self) -> Any:
        from rich.table import Table

        header, *rows = self.rows()
        table = Table(title=f"order: {self.order}", caption="\n".join(self._notes()), caption_justify="left")
        for column, title in enumerate(header):
            table.add_column(title, justify="right" if column in (2, 3, 4) else "left")
        for row in rows:
            table.add_row(*row)
        return table

    def _notes(self) -> list[str]:
        drawn = ", ".join(f"{self.names(token_id)} {_percent(share)}" for token_id, share in self.tokens)
        notes = [f"draw from: {drawn}" + (", …" if self.stages[-1].survivors > len(self.tokens) else "")]
        if self.lifted:
            notes.append(f"gave way to the constraint: {', '.join(self.lifted)}")
        return notes


def explain(
    logits: Logits,
    state: SamplerState,
    mask: Mask | None = None,
    *,
    top: int = 5,
    names: Callable[[int], str] | None = None,
) -> Explanation:
    """Follow one row of logits through the sampler of ``state``. Nothing is drawn and nothing changes.

    Args:
        logits, state, mask: as for ``Sampler.sample``.
        top: how many of the most likely tokens to list at the end.
        names: token id to the text that stands for it; the id itself if None.

    Raises:
        SamplingError, ValueError: as ``Sampler.sample``.
    """
    sampler = state.sampler
    row = as_row(logits, sampler.vocab_size)
    allowed = None if mask is None else unpack_mask(mask, sampler.vocab_size)
    traced: list[tuple[str, Candidates]] = []

    def trace(stage: str, candidates: Candidates) -> None:
        if stage == "model":
            traced.clear()
        traced.append((stage, candidates))

    final, lifted = sampler.run(row, state, allowed, trace)
    reports = []
    before = traced[0][1]
    for stage, candidates in traced:
        best = int(candidates.logits.argmax())
        reports.append(
            StageReport(
                stage=stage,
                setting=_setting(stage, state),
                survivors=len(candidates),
                mass_kept=_mass_kept(before, candidates),
                entropy=candidates.entropy(),
                best=(candidates.token_id(best), float(candidates.probabilities()[best])),
            )
        )
        before = candidates
    shares = final.probabilities()
    ranked = np.argsort(-shares, kind="stable")[:top]
    tokens = tuple((final.token_id(position), float(shares[position])) for position in ranked.tolist())
    return Explanation(sampler.sampling.stages.name, tuple(reports), lifted, tokens, names or str)


def _mass_kept(before: Candidates, after: Candidates) -> float:
    if len(after) == len(before):
        return 1.0
    finite = after.compact()
    ids = np.arange(len(finite)) if finite.ids is None else finite.ids
    positions, _ = before.positions(ids)
    return float(before.probabilities()[positions].sum())


def _setting(stage: str, state: SamplerState) -> str:
    sampling = state.sampler.sampling
    if stage == "temperature" and sampling.is_greedy:
        return f"{sampling.temperature:g} (greedy)"
    if stage == "logit_bias":
        return f"{len(sampling.logit_bias)} tokens"
    if stage == "xtc":
        return f"threshold {sampling.xtc_threshold:g}"
    if stage == "presence_frequency":
        both = ("presence", sampling.presence_penalty), ("frequency", sampling.frequency_penalty)
        return ", ".join(f"{name} {value:g}" for name, value in both if value)
    return ", ".join(f"{getattr(sampling, name):g}" for name in STAGE_SETTINGS.get(stage, ()))


def _percent(share: float) -> str:
    if 0 < share < 1 and not math.isclose(share, 1.0, abs_tol=5e-5):
        return f"{100 * share:.2f}\N{NO-BREAK SPACE}%" if share >= 5e-5 else "<0.01\N{NO-BREAK SPACE}%"
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
