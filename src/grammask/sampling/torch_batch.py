"""``sample_batch`` for logits on an accelerator: the whole batch goes through each stage together.

Only a few numbers per row travel back. Rows on which something is out of the ordinary (not a number, a mask that leaves
nothing) are handed to the numpy path, which knows how to tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grammask.sampling import torch_rows
from grammask.sampling.edits import Edit
from grammask.sampling.inputs import Mask
from grammask.sampling.order import PENALTY_STAGES, Order
from grammask.sampling.random_numbers import DRAW_XTC
from grammask.sampling.report import SampledToken, StepReport, TokenLogprob
from grammask.sampling.settings import Sampling
from grammask.sampling.state import SamplerState


def sample_rows(
    logits: torch.Tensor, states: Sequence[SamplerState], masks: Sequence[Mask | None]
) -> list[SampledToken | None]:
    """Choose a token for each row, or None where the numpy path should.

    Args:
        logits: [rows, vocab_size], any float dtype, any device; not changed.
        states: one per row, vocabularies of the same size.
        masks: packed, or None, per row.
    """
    model = logits.detach().float()
    allowed = _allowed(masks, model)
    chosen: list[SampledToken | None] = [None] * len(states)
    by_order = sorted(range(len(states)), key=lambda row: _order(states[row]).stages)
    for _, group in itertools.groupby(by_order, key=lambda row: _order(states[row])):
        rows = list(group)
        at = torch.tensor(rows, device=model.device)
        tokens = _choose(
            model[at],
            [states[row] for row in rows],
            None if allowed is None else allowed[at],
            [masks[row] is not None for row in rows],
        )
        for row, token in zip(rows, tokens, strict=True):
            chosen[row] = token
    return chosen


def run(model: torch.Tensor, states: Sequence[SamplerState], allowed: torch.Tensor | None) -> torch.Tensor:
    """Scores after the last stage, float32 [rows, vocab_size]; all states have the same order."""
    scores = model.clone()
    edits = [state.edits() for state in states]
    settings = _Settings(states, model.device)
    order = _order(states[0])
    for stage in order.stages:
        if stage in PENALTY_STAGES:
            scores = _edit(scores, [found.get(stage, []) for found in edits])
        elif stage == "mask":
            if allowed is not None:
                scores = scores.masked_fill(~allowed, -math.inf)
        elif any(stage in state.sampler.stages for state in states):
            scores = settings.apply(stage, scores, order)
    return scores


class _Settings:
    """The settings of all rows as tensors, neutral where a row does not have the stage."""

    def __init__(self, states: Sequence[SamplerState], device: torch.device) -> None:
        self._states = states
        self._device = device

    def apply(self, stage: str, scores: torch.Tensor, order: Order) -> torch.Tensor:
        """One stage that is not a penalty and not the mask."""
        if stage == "temperature":
            greedy = self._column(lambda s: s.is_greedy)
            return torch_rows.divide(
                scores, self._column(lambda s: 1.0 if s.is_greedy else s.temperature).float(), greedy
            )
        if stage == "top_k":
            return torch_rows.top_k(scores, self._column(lambda s: s.top_k or 0), order.top_k_ties)
        if stage == "top_p":
            return torch_rows.top_p(scores, self._column(lambda s: 1.0 if s.top_p is None else float(s.top_p)))
        if stage == "min_p":
            return torch_rows.min_p(scores, self._column(lambda s: float(s.min_p or 0)))
        if stage == "typical_p":
            return torch_rows.typical_p(scores, self._column(lambda s: float(s.typical_p or 1)))
        if stage == "top_n_sigma":
            return torch_rows.top_n_sigma(scores, self._column(lambda s: float(s.top_n_sigma or math.inf)))
        coins = [state.uniform(DRAW_XTC) < state.sampler.sampling.xtc_probability for state in self._states]
        acts = torch.tensor(coins, device=self._device)
        return torch_rows.xtc(scores, self._column(lambda s: float(s.xtc_threshold)), acts)

    def _column(self, value: Callable[[Sampling], Any]) -> torch.Tensor:
        values = np.array([value(state.sampler.sampling) for state in self._states])
        return torch.from_numpy(values).to(self._device)


def _order(state: SamplerState) -> Order:
    return state.sampler.sampling.stages


def _allowed(masks: Sequence[Mask | None], model: torch.Tensor) -> torch.Tensor | None:
    """bool [rows, vocab_size], or None when no row has a mask."""
    if all(mask is None for mask in masks):
        return None
    width = (model.shape[1] + 31) // 32
    everything = torch.full((width,), -1, dtype=torch.int32)
    words = [everything if mask is None else torch.as_tensor(mask) for mask in masks]
    return torch_rows.unpack(torch.stack([word.to(model.device) for word in words]), model.shape[1])


def _edit(scores: torch.Tensor, edits: Sequence[list[Edit]]) -> torch.Tensor:
    for kind in ("add", "scale", "ban"):
        found = [(row, edit) for row, row_edits in enumerate(edits) for edit in row_edits if edit.kind == kind]
        if found:
            scores = torch_rows.apply_edits(scores, [row for row, _ in found], [edit for _, edit in found])
    return scores


def _choose(
    model: torch.Tensor, states: Sequence[SamplerState], allowed: torch.Tensor | None, masked: Sequence[bool]
) -> list[SampledToken | None]:
    samplings = [state.sampler.sampling for state in states]
    final = run(model, states, allowed)
    highest = final.amax(1)
    weights = torch_rows.weights_of(final)
    u = torch.tensor([state.uniform() for state in states], dtype=torch.float64, device=model.device)
    ids = torch_rows.draw(weights, u)
    at = ids.clamp(min=0).unsqueeze(1)
    final_total = highest.double() + weights.sum(1).log()
    columns = {
        "highest": model.amax(1),
        "left": (final > -math.inf).sum(1),
        "id": ids,
        "weight": weights.gather(1, at).squeeze(1),
        "final_logprob": final.gather(1, at).squeeze(1).double() - final_total,
        "entropy": torch_rows.entropy_of(final, weights),
    }
    model_total = None
    if allowed is not None or any(sampling.logprobs for sampling in samplings):
        model_weights = (model - model.amax(1, keepdim=True)).exp()
        total = model_weights.sum(1, dtype=torch.float64)
        model_total = model.amax(1).double() + total.log()
        columns["logprob"] = model.gather(1, at).squeeze(1).double() - model_total
        if allowed is not None:
            kept = torch.where(allowed, model_weights, 0.0).sum(1, dtype=torch.float64)
            columns["mass"] = (kept / total).clamp(max=1.0)
            columns["allowed"] = allowed.sum(1)
    values = {name: column.double().cpu().numpy() for name, column in columns.items()}
    most = max(sampling.top_logprobs for sampling in samplings)
    top_final = _top(final, final_total, most)
    top_model = _top(model, model_total, most) if model_total is not None else [()] * len(states)
    return [_token(state, row, values, masked[row], top_model[row], top_final[row]) for row, state in enumerate(states)]


def _token(
    state: SamplerState,
    row: int,
    values: dict[str, NDArray[np.float64]],
    masked: bool,
    top_model: tuple[TokenLogprob, ...],
    top_final: tuple[TokenLogprob, ...],
) -> SampledToken | None:
    if not math.isfinite(values["highest"][row]) or values["left"][row] == 0 or not values["weight"][row] > 0:
        return None
    sampling = state.sampler.sampling
    nucleus = int(values["left"][row])
    return SampledToken(
        token_id=int(values["id"][row]),
        logprob=float(values["logprob"][row]) if sampling.logprobs else None,
        final_logprob=float(values["final_logprob"][row]),
        top_logprobs=top_model[: sampling.top_logprobs],
        top_final_logprobs=top_final[: sampling.top_logprobs],
        report=StepReport(
            step=state.step,
            mask_mass=float(values["mass"][row]) if masked else None,
            allowed=int(values["allowed"][row]) if masked else None,
            nucleus=nucleus,
            entropy=0.0 if nucleus == 1 else float(values["entropy"][row]),
            greedy=sampling.is_greedy,
        ),
    )


def _top(scores: torch.Tensor, log_total: torch.Tensor, count: int) -> list[tuple[TokenLogprob, ...]]:
    """The most likely tokens of each row, best first, lowest id first among equal ones."""
    if not count:
        return [()] * len(scores)
    k = torch.full((len(scores),), min(count, scores.shape[1]), device=scores.device)
    best = torch_rows.top_k(scores, k, "lowest-id")
    totals = log_total.cpu().numpy()
    found: list[tuple[TokenLogprob, ...]] = []
    for row, total in zip(best, totals, strict=True):
        ids = (row > -math.inf).nonzero().squeeze(1)
        logits = row[ids].cpu().numpy().astype(np.float64)
        token_ids = ids.cpu().numpy()
        ranked = np.argsort(-logits, kind="stable").tolist()
        found.append(tuple(TokenLogprob(int(token_ids[i]), float(logits[i] - total)) for i in ranked))
    return found
