"""Penalties as sparse edits: which logits change, and how. Every backend applies the same edits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grammask.sampling.history import BreakerScan, NgramIndex, RepetitionLengths, TokenCounts

_MAX_PENALTY = float(np.finfo(np.float32).max) / 4
"""A penalty stays finite, so that a penalized token remains possible when nothing else is."""


@dataclass(frozen=True)
class Edit:
    """A change of some logits.

    Attributes:
        stage: the stage it belongs to.
        kind: ``"add"`` adds ``operand`` to each logit; ``"scale"`` divides positive logits by ``operand`` and
            multiplies the others; ``"ban"`` sets them to −inf.
        ids: int64, the tokens, each once.
        operand: float32, one number per token or a single one; empty for a ban.
        may_yield: a ban that gives way where nothing else would be left.
    """

    stage: str
    kind: Literal["add", "scale", "ban"]
    ids: NDArray[np.int64]
    operand: NDArray[np.float32]
    may_yield: bool = False


def bias_edits(logit_bias: dict[int, float]) -> list[Edit]:
    """``logit_bias``: finite numbers are added, −inf is a ban."""
    finite = {token_id: bias for token_id, bias in logit_bias.items() if np.isfinite(bias)}
    banned = [token_id for token_id in logit_bias if token_id not in finite]
    edits = []
    if finite:
        operand = np.array(list(finite.values()), dtype=np.float32)
        edits.append(Edit("logit_bias", "add", np.array(list(finite), dtype=np.int64), operand))
    if banned:
        edits.append(ban("logit_bias", banned))
    return edits


def ban(stage: str, ids: Iterable[int], *, may_yield: bool = False) -> Edit:
    """Exclude these tokens."""
    ids = np.array(list(ids), dtype=np.int64)
    return Edit(stage, "ban", ids, np.empty(0, dtype=np.float32), may_yield)


def repetition_edit(seen: TokenCounts, penalty: float) -> Edit:
    """CTRL's penalty (Keskar et al. 2019), multiplying negative logits so that it lowers those as well."""
    return Edit("repetition", "scale", seen.ids, np.array([penalty], dtype=np.float32))


def presence_frequency_edit(seen: TokenCounts, presence: float, frequency: float) -> Edit:
    """Subtract ``frequency`` per occurrence and ``presence`` once."""
    operand = -(seen.counts * np.float32(frequency) + np.float32(presence))
    return Edit("presence_frequency", "add", seen.ids, operand)


def no_repeat_ngram_edit(ngrams: NgramIndex) -> Edit:
    """Ban what would complete an n-gram a second time."""
    return ban("no_repeat_ngram", ngrams.completing().tolist(), may_yield=True)


def dry_edit(
    lengths: RepetitionLengths, breakers: BreakerScan, multiplier: float, base: float, allowed_length: int
) -> Edit:
    """Lower what would continue a repetition, exponentially in the repetition's length. Breakers are left alone."""
    ids, longest = lengths.continuing(allowed_length)
    lowered = [not breakers.is_whole(token_id) for token_id in ids.tolist()]
    ids, longest = ids[lowered], longest[lowered]
    with np.errstate(over="ignore"):
        penalty = multiplier * np.power(float(base), (longest - allowed_length).astype(np.float64))
    return Edit("dry", "add", ids, (-np.minimum(penalty, _MAX_PENALTY)).astype(np.float32))
