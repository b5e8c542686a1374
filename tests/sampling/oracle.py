"""The stages once more, for clarity alone: whole rows, full sorts, float64, one token at a time where that helps.

Logits are float32 until the temperature has divided them, as in every engine; then everything is float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grammask.sampling import Sampling

Row = NDArray[np.float32]


def softmax(row: NDArray[np.floating]) -> NDArray[np.float64]:
    weights = np.exp(row.astype(np.float64) - float(row.max()))
    return weights / weights.sum()


def final_distribution(
    row: Row,
    sampling: Sampling,
    *,
    prompt: Sequence[int] = (),
    output: Sequence[int] = (),
    allowed: NDArray[np.bool_] | None = None,
    end_ids: Sequence[int] = (),
    xtc_coin: float = 0.0,
) -> NDArray[np.float64]:
    """Probabilities [vocabulary] after every stage; ``xtc_coin`` is the number drawn for XTC."""
    order = sampling.stages
    row = row.copy()
    history = {"all": [*prompt, *output], "output": list(output), "prompt": list(prompt)}
    window = sampling.penalty_window or order.window

    def seen(scope: str) -> list[int]:
        return history[scope] if window is None else history[scope][-window:]

    for stage in order.stages:
        if stage == "logit_bias":
            for token, bias in sampling.logit_bias.items():
                row[token] += np.float32(bias)
        elif stage == "repetition":
            for token in set(seen(sampling.repetition_scope or order.repetition_scope)):
                penalty = np.float32(sampling.repetition_penalty)
                row[token] = row[token] / penalty if row[token] > 0 else row[token] * penalty
        elif stage == "presence_frequency":
            counted = seen(sampling.penalty_scope or order.count_scope)
            for token in set(counted):
                count = np.float32(counted.count(token))
                frequency = count * np.float32(sampling.frequency_penalty)
                row[token] -= frequency + np.float32(sampling.presence_penalty)
        elif stage == "dry" and sampling.dry_multiplier:
            for token, penalty in dry_penalties(history["all"], sampling).items():
                row[token] -= np.float32(penalty)
        elif stage == "no_repeat_ngram" and sampling.no_repeat_ngram_size:
            for token in repeated(history["all"], sampling.no_repeat_ngram_size):
                row[token] = -np.inf
        elif stage == "min_tokens" and len(output) < sampling.min_tokens:
            for token in end_ids:
                row[token] = -np.inf
        elif stage == "mask" and allowed is not None:
            row[~allowed] = -np.inf
        elif stage == "temperature":
            if sampling.is_greedy:
                best = int(row.argmax())
                row[np.arange(len(row)) != best] = -np.inf
            else:
                row = row / np.float32(sampling.temperature)
        elif stage == "top_k" and sampling.top_k is not None:
            ranked = best_first(row)
            if order.top_k_ties == "keep":
                boundary = row[ranked[min(sampling.top_k, len(row)) - 1]]
                row[row < boundary] = -np.inf
            else:
                row[ranked[sampling.top_k :]] = -np.inf
        elif stage == "top_p" and sampling.top_p is not None and sampling.top_p < 1:
            row = keep_first(row, best_first(row), sampling.top_p)
        elif stage == "min_p" and sampling.min_p:
            row[row < np.float32(float(row.max()) + math.log(sampling.min_p))] = -np.inf
        elif stage == "typical_p" and sampling.typical_p is not None and sampling.typical_p < 1:
            probabilities = softmax(row)
            with np.errstate(divide="ignore"):
                information = -np.log(probabilities)
            entropy = float(np.dot(probabilities[probabilities > 0], information[probabilities > 0]))
            row = keep_first(row, np.argsort(np.abs(information - entropy), kind="stable"), sampling.typical_p)
        elif stage == "top_n_sigma" and sampling.top_n_sigma is not None:
            sigma = float(np.std(row[np.isfinite(row)].astype(np.float64)))
            row[row < np.float32(float(row.max()) - sampling.top_n_sigma * sigma)] = -np.inf
        elif stage == "xtc" and xtc_coin < sampling.xtc_probability:
            probabilities = softmax(row)
            reaching = [token for token in best_first(row).tolist() if probabilities[token] >= sampling.xtc_threshold]
            row[reaching[:-1]] = -np.inf
    return softmax(row)


def best_first(row: NDArray[np.floating]) -> NDArray[np.intp]:
    return np.argsort(-row.astype(np.float64), kind="stable")


def keep_first(row: Row, ranked: NDArray[np.intp], mass: float) -> Row:
    cumulative = np.cumsum(softmax(row)[ranked])
    kept = ranked[: int((cumulative < mass).sum()) + 1]
    cut = np.full_like(row, -np.inf)
    cut[kept] = row[kept]
    return cut


def repeated(tokens: Sequence[int], size: int) -> set[int]:
    """The tokens that would complete an n-gram of this size a second time."""
    if len(tokens) < size - 1:
        return set()
    prefix = list(tokens[len(tokens) - size + 1 :])
    starts = range(len(tokens) - size + 1)
    return {tokens[start + size - 1] for start in starts if list(tokens[start : start + size - 1]) == prefix}


def dry_penalties(tokens: Sequence[int], sampling: Sampling) -> dict[int, float]:
    """DRY as its author describes it: compare backwards from each earlier place, stop at a breaker."""
    tokens = list(tokens if sampling.dry_window is None else tokens[-sampling.dry_window :])
    penalties: dict[int, float] = {}
    for end in range(len(tokens) - 1):
        length = 0
        while (
            length <= end
            and tokens[end - length] == tokens[len(tokens) - 1 - length]
            and tokens[end - length] not in sampling.dry_breakers
        ):
            length += 1
        if length >= sampling.dry_allowed_length and tokens[end + 1] not in sampling.dry_breakers:
            penalty = sampling.dry_multiplier * sampling.dry_base ** (length - sampling.dry_allowed_length)
            penalties[tokens[end + 1]] = max(penalty, penalties.get(tokens[end + 1], 0.0))
    return penalties


def pack(allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """A mask as the packed words that samplers take."""
    words = np.zeros((len(allowed) + 31) // 32, dtype=np.uint32)
    for token in np.flatnonzero(allowed).tolist():
        words[token // 32] |= np.uint32(1) << np.uint32(token % 32)
    return words.view(np.int32)
