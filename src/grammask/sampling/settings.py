"""``Sampling``: every setting of the sampler, checked when it is made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grammask.sampling.order import STAGE_SETTINGS, Order, Scope, resolve_order

GREEDY_TEMPERATURE = 1e-5
"""Temperatures below this are greedy decoding: dividing by them would only turn logits into ±inf."""

MAX_SEED = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen. Immutable; ``replace`` makes a changed copy.

    Cuts and temperature:
        temperature: logits are divided by it. Below 1e-5, zero and negative values included: the highest logit wins,
            the lowest id among equal ones.
        top_k: keep the k most likely tokens (at least 1; None is off).
        top_p: keep the smallest set of most likely tokens whose probability reaches p, the token that reaches it
            included (0 to 1; 1 and None are off; the set never is empty).
        min_p: drop tokens less likely than min_p times the most likely one (0 to 1; 0 and None are off).
        typical_p: keep the smallest set of tokens, those with information content nearest to the entropy first, whose
            probability reaches typical_p (Meister et al. 2023; above 0 to 1).
        top_n_sigma: drop tokens whose logit is more than n standard deviations below the highest (Tang et al. 2024).
        xtc_probability, xtc_threshold: with this probability, drop all tokens at least as likely as the threshold
            except the least likely of them (threshold 0 to 0.5).

    Penalties (off under a structured constraint unless ``penalize_structured``):
        presence_penalty: subtracted once from each token seen.
        frequency_penalty: subtracted from a token as often as it was seen.
        repetition_penalty: positive logits of tokens seen are divided by it, negative ones multiplied
            (Keskar et al. 2019; 1 is off).
        penalty_scope, repetition_scope: which tokens count as seen, ``"output"``, ``"all"`` (prompt and output) or
            ``"prompt"``; the first for presence and frequency, the second for repetition. None: the order's convention.
        penalty_window: only the latest tokens count. None is the order's convention.
        no_repeat_ngram_size: no n-gram of this size appears twice in prompt and output.
        dry_multiplier, dry_base, dry_allowed_length, dry_window, dry_breakers: a token that would continue a repetition
            of L ≥ allowed_length tokens is lowered by multiplier · base^(L − allowed_length). Repetitions do not reach
            across a breaker: a token id, or a string, which may span tokens; a token that is one is never lowered.
        penalize_structured: apply penalties under a structured constraint as well.
        logit_bias: token id to a number added to its logit; −inf excludes the token.

    Length and stopping:
        max_tokens, min_tokens: end-of-text and ``stop_token_ids`` are excluded before min_tokens, unless the constraint
            leaves nothing else.
        stop: strings that end the output; up to the caller, who scans with ``StopStrings``.
        include_stop: whether the stop string is part of the output.
        stop_token_ids: tokens that end the output besides end-of-text.

    Other:
        seed: 0 to 2^64 − 1. None draws a fresh one, which the state reports.
        n: how many outputs; each draws its own random numbers.
        logprobs: report log-probabilities, the model's own and those after all settings.
        top_logprobs: how many of the most likely tokens to report with them.
        order: a preset's name (``default``, ``transformers``, ``vllm``, ``llama.cpp``, ``openai``), an ``Order``, or a
            sequence of stages.

    Raises:
        ValueError: a value out of its range, settings that contradict each other, or a setting whose stage is missing
            from the order. The message says what to change.
        TypeError: a value of the wrong type.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    top_n_sigma: float | None = None
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    penalty_scope: Scope | None = None
    repetition_scope: Scope | None = None
    penalty_window: int | None = None
    no_repeat_ngram_size: int | None = None
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_window: int | None = None
    dry_breakers: Sequence[str | int] = ("\n", ":", '"', "*")
    penalize_structured: bool = False
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: str | Sequence[str] = ()
    include_stop: bool = False
    stop_token_ids: Sequence[int] = ()
    seed: int | None = None
    n: int = 1
    logprobs: bool = False
    top_logprobs: int = 0
    order: str | Order | Sequence[str] = "default"

    def __post_init__(self) -> None:
        self._normalize()
        self._check_ranges()
        self._check_together()

    # -- reading

    @property
    def stages(self) -> Order:
        """The order as an ``Order``."""
        assert isinstance(self.order, Order)
        return self.order

    @property
    def is_greedy(self) -> bool:
        """The temperature stage keeps only the most likely token."""
        return self.temperature < GREEDY_TEMPERATURE

    def active_stages(self) -> tuple[str, ...]:
        """The stages of the order that do something with these settings; the mask is always among them."""
        return tuple(stage for stage in self.stages.stages if stage == "mask" or self._is_on(stage))

    def penalties(self) -> tuple[str, ...]:
        """The penalties against repetition that are on: those that structured output switches off."""
        names = ("repetition", "presence_frequency", "dry", "no_repeat_ngram")
        return tuple(stage for stage in names if self._is_on(stage))

    def replace(self, **changes: Any) -> Sampling:
        """A copy with some settings changed, checked again."""
        return dataclasses.replace(self, **changes)

    # -- checking

    def _is_on(self, stage: str) -> bool:
        if stage == "min_tokens":
            return self.min_tokens > 0
        return any(getattr(self, name) not in _NEUTRAL[name] for name in STAGE_SETTINGS[stage])

    def _normalize(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("order", resolve_order(self.order))
        put("stop", (self.stop,) if isinstance(self.stop, str) else tuple(self.stop))
        put("stop_token_ids", tuple(self.stop_token_ids))
        put("dry_breakers", tuple(self.dry_breakers))
        if not isinstance(self.logit_bias, Mapping):
            raise TypeError(f"logit_bias is a {type(self.logit_bias).__name__}: use a mapping from token id to number")
        put("logit_bias", dict(self.logit_bias))

    def _check_ranges(self) -> None:
        self._real("temperature", hint="use 0 for greedy decoding")
        self._whole("top_k", 1, optional=True, hint="None switches it off, where other engines write 0 or -1")
        self._real("top_p", 0, 1, optional=True, hint="1 or None switches it off")
        self._real("min_p", 0, 1, optional=True, hint="0 or None switches it off")
        self._real("typical_p", 0, 1, optional=True, above=True, hint="1 or None switches it off")
        self._real("top_n_sigma", 0, optional=True, above=True, hint="None switches it off")
        self._real("xtc_probability", 0, 1)
        self._real("xtc_threshold", 0, 0.5, hint="above 0.5 no two tokens could reach the threshold")
        self._real("presence_penalty")
        self._real("frequency_penalty")
        self._real("repetition_penalty", 0, above=True, hint="1 switches it off")
        for name in ("penalty_scope", "repetition_scope"):
            if getattr(self, name) not in (None, "output", "all", "prompt"):
                raise ValueError(f"{name} is {getattr(self, name)!r}: use 'output', 'all', 'prompt' or None")
        self._whole("penalty_window", 1, optional=True, hint="None counts all tokens")
        self._whole("no_repeat_ngram_size", 1, optional=True, hint="None switches it off")
        self._real("dry_multiplier", 0, hint="0 switches it off")
        self._real("dry_base", 1)
        self._whole("dry_allowed_length", 1)
        self._whole("dry_window", 1, optional=True, hint="None looks at all tokens")
        self._whole("max_tokens", 1, optional=True, hint="None sets no limit")
        self._whole("min_tokens", 0)
        self._whole("seed", 0, MAX_SEED, optional=True, hint="None draws a fresh seed")
        self._whole("n", 1)
        self._whole("top_logprobs", 0)
        for token_id, bias in self.logit_bias.items():
            if not _is_whole(token_id) or token_id < 0:
                raise ValueError(f"logit_bias has key {token_id!r}: use token ids, whole numbers from 0")
            if not _is_real(bias) or math.isnan(bias) or bias == math.inf:
                raise ValueError(f"logit_bias[{token_id}] is {bias!r}: use a finite number, or -inf to exclude it")
        for token_id in self.stop_token_ids:
            if not _is_whole(token_id) or token_id < 0:
                raise ValueError(f"stop_token_ids has {token_id!r}: use token ids, whole numbers from 0")
        for text in self.stop:
            if not isinstance(text, str):
                raise TypeError(f"stop has {text!r}: use strings, and stop_token_ids for tokens")
            if not text:
                raise ValueError("stop has an empty string, which would end every output at once: remove it")
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise ValueError(f"stop has {text!r}, half a surrogate pair, which no output contains: remove it")
        for breaker in self.dry_breakers:
            if not (isinstance(breaker, str) and breaker) and not (_is_whole(breaker) and int(breaker) >= 0):
                raise ValueError(f"dry_breakers has {breaker!r}: use non-empty strings or token ids")

    def _check_together(self) -> None:
        missing = [stage for stage in STAGE_SETTINGS if self._is_on(stage) and stage not in self.stages.stages]
        for stage in missing:
            names = " and ".join(name for name in STAGE_SETTINGS[stage] if getattr(self, name) not in _NEUTRAL[name])
            raise ValueError(
                f"{names} has no effect: the order {self.stages.name!r} has no stage {stage!r} ({self.stages}). "
                f"Leave it out, or choose an order with that stage"
            )
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(
                f"min_tokens {self.min_tokens} exceeds max_tokens {self.max_tokens}: lower one or raise the other"
            )
        if self.top_logprobs and not self.logprobs:
            raise ValueError(f"top_logprobs is {self.top_logprobs} but logprobs is off: set logprobs=True")
        if self.n > 1 and self.is_greedy:
            raise ValueError(f"n is {self.n} with temperature {self.temperature}: all outputs would be equal; use n=1")
        if self.penalty_window is not None and not self.penalties():
            raise ValueError("penalty_window is set but no penalty is: set a penalty, or leave the window out")
        if self.penalty_scope is not None and not self._is_on("presence_frequency"):
            raise ValueError("penalty_scope is set, but no presence_penalty or frequency_penalty: set one of them")
        if self.repetition_scope is not None and not self._is_on("repetition"):
            raise ValueError("repetition_scope is set but repetition_penalty is not: set it, or leave the scope out")
        if self.include_stop and not self.stop:
            raise ValueError("include_stop is set but there are no stop strings: add some, or leave it out")

    def _real(
        self,
        name: str,
        low: float = -math.inf,
        high: float = math.inf,
        *,
        optional: bool = False,
        above: bool = False,
        hint: str = "",
    ) -> None:
        value = getattr(self, name)
        if optional and value is None:
            return
        if not _is_real(value):
            raise TypeError(f"{name} is {value!r}: use a number{' or None' if optional else ''}")
        if not math.isfinite(value) or not low <= value <= high or (above and value == low):
            raise ValueError(f"{name} is {value!r}: use {_range(low, high, above, 'a finite number')}" + _because(hint))

    def _whole(self, name: str, low: int, high: int | None = None, *, optional: bool = False, hint: str = "") -> None:
        value = getattr(self, name)
        if optional and value is None:
            return
        if not _is_whole(value):
            raise TypeError(f"{name} is {value!r}: use a whole number{' or None' if optional else ''}")
        if value < low or (high is not None and value > high):
            upper = math.inf if high is None else high
            raise ValueError(f"{name} is {value!r}: use {_range(low, upper, False, 'a whole number')}" + _because(hint))


_NEUTRAL: dict[str, tuple[object, ...]] = {
    "logit_bias": ({},),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "dry_multiplier": (0,),
    "no_repeat_ngram_size": (None,),
    "min_tokens": (0,),
    "temperature": (1,),
    "top_n_sigma": (None,),
    "top_k": (None,),
    "top_p": (None, 1),
    "min_p": (None, 0),
    "typical_p": (None, 1),
    "xtc_probability": (0,),
}
"""The values of a setting that change nothing."""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _range(low: float, high: float, above: bool, kind: str) -> str:
    if low == -math.inf:
        return kind
    if high == math.inf:
        return f"{kind} above {low:g}" if above else f"{kind} of at least {low:g}"
    return f"{kind} above {low:g} and up to {high:g}" if above else f"{kind} from {low:g} to {high:g}"


def _because(hint: str) -> str:
    return f" ({hint})" if hint else ""
