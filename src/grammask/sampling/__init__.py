"""From logits to a token: settings with written-down meaning, an order that is data, random numbers that are keyed."""

from __future__ import annotations

from grammask.sampling.batch import sample_batch
from grammask.sampling.errors import SamplingError, SamplingWarning
from grammask.sampling.explanation import Explanation, StageReport, explain
from grammask.sampling.order import PRESETS, STAGES, Order
from grammask.sampling.report import SampledToken, SamplingSummary, StepReport, TokenLogprob
from grammask.sampling.sampler import Sampler
from grammask.sampling.settings import GREEDY_TEMPERATURE, Sampling
from grammask.sampling.state import SamplerState
from grammask.sampling.stop import StopStrings

__all__ = [
    "GREEDY_TEMPERATURE",
    "PRESETS",
    "STAGES",
    "Explanation",
    "Order",
    "SampledToken",
    "Sampler",
    "SamplerState",
    "Sampling",
    "SamplingError",
    "SamplingSummary",
    "SamplingWarning",
    "StageReport",
    "StepReport",
    "StopStrings",
    "TokenLogprob",
    "explain",
    "sample_batch",
]
