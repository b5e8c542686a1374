"""The order in which settings act on the logits, as data.

The same names in another order give another distribution: a nucleus cut before a temperature of 1.5 keeps fewer tokens
than one after it, a penalty after a cut can no longer bring a token back. An ``Order`` is the list of stages, together
with the few conventions in which engines differ: which tokens a penalty counts and what top-k does with equal logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Scope = Literal["output", "all", "prompt"]
Ties = Literal["lowest-id", "keep"]

PENALTY_STAGES = ("logit_bias", "repetition", "presence_frequency", "dry", "no_repeat_ngram", "min_tokens")
"""What the alias ``"penalties"`` stands for, in this order."""

CUT_STAGES = ("top_n_sigma", "top_k", "top_p", "min_p", "typical_p", "xtc")
"""Stages that only remove tokens."""

STAGES = (*PENALTY_STAGES, "mask", "temperature", *CUT_STAGES)
"""Every stage there is. The draw follows the last stage and is not listed."""

STAGE_SETTINGS: dict[str, tuple[str, ...]] = {
    "logit_bias": ("logit_bias",),
    "repetition": ("repetition_penalty",),
    "presence_frequency": ("presence_penalty", "frequency_penalty"),
    "dry": ("dry_multiplier",),
    "no_repeat_ngram": ("no_repeat_ngram_size",),
    "min_tokens": ("min_tokens",),
    "mask": (),
    "temperature": ("temperature",),
    "top_n_sigma": ("top_n_sigma",),
    "top_k": ("top_k",),
    "top_p": ("top_p",),
    "min_p": ("min_p",),
    "typical_p": ("typical_p",),
    "xtc": ("xtc_probability",),
}
"""The settings that switch a stage on."""


@dataclass(frozen=True)
class Order:
    """Stages from logits to draw, and the conventions that go with them.

    Attributes:
        stages: names out of ``STAGES``; ``"penalties"`` is short for all of ``PENALTY_STAGES``. ``"mask"`` is required.
        name: how messages call this order.
        count_scope: the tokens that presence and frequency penalties count.
        repetition_scope: the tokens that the repetition penalty counts.
        window: how many of the latest tokens penalties look at; None is all of them.
        top_k_ties: equal logits at the k-th place: ``"lowest-id"`` keeps exactly k tokens, ``"keep"`` all of them.

    Raises:
        ValueError: an unknown, repeated or missing stage.
    """

    stages: tuple[str, ...]
    name: str = "custom"
    count_scope: Scope = "output"
    repetition_scope: Scope = "all"
    window: int | None = None
    top_k_ties: Ties = "lowest-id"

    def __post_init__(self) -> None:
        stages: list[str] = []
        for stage in self.stages:
            stages.extend(PENALTY_STAGES if stage == "penalties" else (stage,))
        for stage in stages:
            if stage not in STAGES:
                names = ", ".join(STAGES)
                raise ValueError(f"unknown stage {stage!r} in order {self.name!r}: use 'penalties' or {names}")
            if stages.count(stage) > 1:
                raise ValueError(f"stage {stage!r} appears twice in order {self.name!r}: name each stage once")
        if "mask" not in stages:
            raise ValueError(
                f"order {self.name!r} has no stage 'mask', so constraints would not be enforced: add it, normally "
                f"before 'temperature'"
            )
        for label, scope in (("count_scope", self.count_scope), ("repetition_scope", self.repetition_scope)):
            if scope not in ("output", "all", "prompt"):
                raise ValueError(f"{label} is {scope!r}: use 'output', 'all' or 'prompt'")
        if self.top_k_ties not in ("lowest-id", "keep"):
            raise ValueError(f"top_k_ties is {self.top_k_ties!r}: use 'lowest-id' or 'keep'")
        if self.window is not None and (isinstance(self.window, bool) or self.window < 1):
            raise ValueError(f"window is {self.window!r}: use a number of tokens of at least 1, or None for all")
        object.__setattr__(self, "stages", tuple(stages))

    def __str__(self) -> str:
        return " → ".join((*self.stages, "draw"))


PRESETS: dict[str, Order] = {
    order.name: order
    for order in (
        Order(
            name="default",
            stages=("penalties", "mask", "temperature", "top_n_sigma", "top_k", "top_p", "min_p", "typical_p", "xtc"),
        ),
        Order(
            name="transformers",
            stages=(
                "logit_bias",
                "repetition",
                "no_repeat_ngram",
                "min_tokens",
                "mask",
                "temperature",
                "top_k",
                "top_p",
                "min_p",
                "typical_p",
            ),
            top_k_ties="keep",
        ),
        Order(
            name="vllm",
            stages=(
                "mask",
                "min_tokens",
                "logit_bias",
                "repetition",
                "presence_frequency",
                "temperature",
                "min_p",
                "top_k",
                "top_p",
            ),
            top_k_ties="keep",
        ),
        Order(
            name="llama.cpp",
            stages=(
                "logit_bias",
                "mask",
                "repetition",
                "presence_frequency",
                "dry",
                "top_n_sigma",
                "top_k",
                "typical_p",
                "top_p",
                "min_p",
                "xtc",
                "temperature",
            ),
            count_scope="all",
            repetition_scope="all",
            window=64,
        ),
        Order(name="openai", stages=("logit_bias", "presence_frequency", "mask", "temperature", "top_p")),
    )
}
"""The named orders. What each was taken from is told in docs/reference/sampling.md."""


def resolve_order(order: str | Order | Sequence[str]) -> Order:
    """The Order that a user means by a preset's name, an Order, or a sequence of stage names.

    Raises:
        ValueError: no preset has this name, or the stages are not valid.
    """
    if isinstance(order, Order):
        return order
    if isinstance(order, str):
        if order not in PRESETS:
            names = ", ".join(map(repr, PRESETS))
            raise ValueError(f"unknown order {order!r}: use {names}, an Order, or a list of stages")
        return PRESETS[order]
    return Order(stages=tuple(order))
