"""What a step, and a whole output, can tell about how the choice was made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step of sampling.

    Attributes:
        step: how many tokens of output came before.
        mask_mass: the probability that the model itself (its softmax, before any setting) gave to the tokens that the
            constraint allows; None without a mask or without logits. 1 − mask_mass is what the constraint took.
        allowed: how many tokens the mask allows; None without a mask.
        nucleus: how many tokens could be drawn.
        entropy: of the distribution drawn from, in nats.
        greedy: the temperature was below the greedy threshold.
        forced: the caller said which token comes; nothing was drawn.
        lifted: bans (``min_tokens``, ``no_repeat_ngram``) that gave way, since the constraint allowed nothing else.
    """

    step: int
    mask_mass: float | None = None
    allowed: int | None = None
    nucleus: int = 1
    entropy: float = 0.0
    greedy: bool = False
    forced: bool = False
    lifted: tuple[str, ...] = ()

    @property
    def single_choice(self) -> bool:
        """Only one token could come."""
        return self.nucleus == 1


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token and its log-probability, in nats."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class SampledToken:
    """One choice.

    Attributes:
        token_id: the token.
        logprob: its log-probability under the model itself, before any setting; None unless asked for.
        final_logprob: its log-probability under the distribution it was drawn from; 0 for a forced token.
        top_logprobs: the model's most likely tokens, best first, lowest id first among equals; empty unless asked for.
        top_final_logprobs: likewise after all settings; at most as many as could be drawn.
        report: what the step tells about itself.
    """

    token_id: int
    logprob: float | None
    final_logprob: float
    top_logprobs: tuple[TokenLogprob, ...]
    top_final_logprobs: tuple[TokenLogprob, ...]
    report: StepReport


@dataclass(frozen=True, slots=True)
class SamplingSummary:
    """The steps of one output, or of several, together.

    Attributes:
        steps: all steps. forced: those where the caller said which token comes.
        single_choice_share: share of the steps that were not forced where only one token could be drawn; None if there
            were none.
        mean_nucleus, mean_entropy: over the steps that were not forced (entropy in nats); None if there were none.
        mask_mass: the product of all steps' mask_mass, the share of the model's probability that the constraint kept
            along this output; None without a mask. Use log_mask_mass where it underflows.
        log_mask_mass: its logarithm, in nats.
        mean_mask_mass: the mean over the steps with a mask.
    """

    steps: int
    forced: int
    single_choice_share: float | None
    mean_nucleus: float | None
    mean_entropy: float | None
    mask_mass: float | None
    log_mask_mass: float | None
    mean_mask_mass: float | None

    @classmethod
    def of(cls, reports: Iterable[StepReport]) -> SamplingSummary:
        """Sum up the reports of an output, in any order."""
        reports = list(reports)
        chosen = [report for report in reports if not report.forced]
        masses = [report.mask_mass for report in reports if report.mask_mass is not None]
        log_mass = None
        if masses:
            log_mass = math.fsum(math.log(mass) if mass > 0 else -math.inf for mass in masses)
        return cls(
            steps=len(reports),
            forced=len(reports) - len(chosen),
            single_choice_share=_mean([float(report.single_choice) for report in chosen]),
            mean_nucleus=_mean([float(report.nucleus) for report in chosen]),
            mean_entropy=_mean([report.entropy for report in chosen]),
            mask_mass=None if log_mass is None else math.exp(log_mass),
            log_mask_mass=log_mass,
            mean_mask_mass=_mean(masses),
        )


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
