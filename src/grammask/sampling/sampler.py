"""``Sampler``: logits to a token, one row or a batch, in numpy or torch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from grammask.sampling.candidates import Candidates, FloatArray
from grammask.sampling.edits import Edit
from grammask.sampling.errors import SamplingError, SamplingWarning
from grammask.sampling.history import BreakerScan
from grammask.sampling.inputs import Logits, Mask, as_row, unpack_mask
from grammask.sampling.random_numbers import DRAW_XTC
from grammask.sampling.report import SampledToken, StepReport, TokenLogprob
from grammask.sampling.settings import MAX_SEED, Sampling
from grammask.sampling.state import SamplerState

Trace = Callable[[str, Candidates], None]
"""Called with each stage's name and what it left."""


_MEASURED = (
    "Measured with SmolLM2-135M on JSON documents, a repetition penalty of 1.3 lowered the share of punctuation that "
    "the model puts right from 90 % to 54 %, a frequency penalty of 1 to 65 %"
)


class Sampler:
    """Chooses tokens as ``sampling`` says.

    Args:
        sampling: the settings.
        vocab_size: number of logits per row.
        eos_token_ids: end-of-text tokens, which ``min_tokens`` excludes.
        structured: the output is under a structured constraint: penalties against repetition are off unless
            ``sampling.penalize_structured``, with a warning either way.
        token_bytes: token id to bytes (None for special tokens); needed for DRY's breakers that are strings.

    Raises:
        ValueError: the settings name tokens outside the vocabulary.

    A Sampler is immutable and may be shared between threads; each output has its own ``SamplerState``.
    """

    def __init__(
        self,
        sampling: Sampling,
        vocab_size: int,
        *,
        eos_token_ids: Sequence[int] = (),
        structured: bool = False,
        token_bytes: Callable[[int], bytes | None] | None = None,
    ) -> None:
        if vocab_size < 1:
            raise ValueError(f"vocab_size is {vocab_size}: use the number of logits per row")
        self.sampling = sampling
        self.vocab_size = vocab_size
        self.end_token_ids = tuple(dict.fromkeys((*map(int, eos_token_ids), *sampling.stop_token_ids)))
        stages = sampling.active_stages()
        if structured and sampling.penalties():
            self._warn_structured()
            if not sampling.penalize_structured:
                stages = tuple(stage for stage in stages if stage not in sampling.penalties())
        self.stages = stages
        """The stages that act, in order."""
        self._check_tokens()
        self._token_bytes = token_bytes
        self._breaker_ids = frozenset(b for b in sampling.dry_breakers if isinstance(b, int))
        self._breaker_texts = tuple(b.encode() for b in sampling.dry_breakers if isinstance(b, str))
        if "dry" in stages and self._breaker_texts and token_bytes is None:
            raise ValueError(
                "dry_breakers has strings, and what tokens contain is unknown: pass token_bytes, or use token ids"
            )

    # -- one sequence

    def start(
        self, prompt_ids: Sequence[int] = (), *, seed: int | None = None, request: int = 0, sample: int = 0
    ) -> SamplerState:
        """The state of a new output.

        Args:
            prompt_ids: the tokens before the output, which some penalties count.
            seed: instead of the settings' seed; a fresh one if both are None.
            request: 64 bits that tell apart requests with the same seed.
            sample: 24 bits, the number of the output among the ``n`` of a request.

        Raises:
            ValueError: a number out of range.
        """
        seed = self.sampling.seed if seed is None else seed
        ranges = ("seed", seed, MAX_SEED), ("request", request, MAX_SEED), ("sample", sample, 2**24 - 1)
        for name, value, limit in ranges:
            if value is not None and not 0 <= value <= limit:
                raise ValueError(f"{name} is {value}: use a whole number from 0 to {limit}")
        return SamplerState(self, prompt_ids, seed=seed, request=request, sample=sample)

    def sample(
        self, logits: Logits | None, state: SamplerState, mask: Mask | None = None, forced: int | None = None
    ) -> SampledToken:
        """Choose the next token. Calling it again gives the same token: only ``state.append`` moves on.

        Args:
            logits: [vocab_size], any float dtype, numpy or torch; computed with in float32. None only with ``forced``.
            state: this output's state.
            mask: int32 [(vocab_size + 31) // 32]; bit t % 32 of word t // 32 allows token t. None allows all.
            forced: the token that comes whatever the logits say; nothing is penalized, cut or drawn.

        Raises:
            SamplingError: NaN or +inf among the logits, or no token left to choose.
            ValueError: a shape or dtype does not fit.
        """
        if logits is None:
            if forced is None:
                raise ValueError("logits are missing: only a forced token can do without")
            return self._forced(forced, state)
        row = as_row(logits, self.vocab_size)
        allowed = None if mask is None else unpack_mask(mask, self.vocab_size)
        return self._choose(row, state, allowed, forced)

    def sample_batch(
        self,
        logits: Logits | Sequence[Logits],
        states: Sequence[SamplerState],
        masks: Mask | Sequence[Mask | None] | None = None,
        forced: Sequence[int | None] | None = None,
    ) -> list[SampledToken]:
        """``sample`` for each row; see ``grammask.sampling.sample_batch``."""
        from grammask.sampling.batch import sample_batch

        return sample_batch(logits, states, masks, forced)

    def distribution(
        self, logits: Logits, state: SamplerState, mask: Mask | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The tokens that could be drawn, ids ascending, and their probabilities (float64, summing to 1).

        Raises:
            SamplingError, ValueError: as ``sample``.
        """
        row = as_row(logits, self.vocab_size)
        allowed = None if mask is None else unpack_mask(mask, self.vocab_size)
        final = self.run(row, state, allowed)[0].compact()
        ids = np.arange(len(final), dtype=np.int64) if final.ids is None else final.ids
        return ids, final.probabilities()

    # -- the pipeline

    def run(
        self, row: FloatArray, state: SamplerState, allowed: NDArray[np.bool_] | None, trace: Trace | None = None
    ) -> tuple[Candidates, tuple[str, ...]]:
        """The candidates after the last stage, and the bans that gave way to the constraint.

        Args:
            row: float32 [vocab_size], checked by ``as_row``.
            allowed: bool [vocab_size] or None.
            trace: called after each stage, first with ``"model"``.
        """
        edits = state.edits()
        start = Candidates.of_row(row)
        final = self._run_stages(start, state, allowed, edits, trace)
        if final is not None:
            return final, ()
        lifted = tuple(stage for stage, found in edits.items() if any(edit.may_yield for edit in found))
        if lifted:
            rest = {stage: found for stage, found in edits.items() if stage not in lifted}
            final = self._run_stages(start, state, allowed, rest, trace)
            if final is not None:
                return final, lifted
        raise self._nothing_left(start, allowed, edits)

    def _run_stages(
        self,
        candidates: Candidates,
        state: SamplerState,
        allowed: NDArray[np.bool_] | None,
        edits: dict[str, list[Edit]],
        trace: Trace | None,
    ) -> Candidates | None:
        sampling = self.sampling
        if trace is not None:
            trace("model", candidates)
        for stage in self.stages:
            if stage == "mask":
                if allowed is None:
                    continue
                candidates = candidates.allow(allowed)
            elif stage in edits:
                candidates = candidates.edit(edits[stage])
            elif stage == "temperature":
                candidates = candidates.only_best() if sampling.is_greedy else candidates.divide(sampling.temperature)
            elif stage == "top_k" and sampling.top_k is not None:
                candidates = candidates.top_k(sampling.top_k, sampling.stages.top_k_ties)
            elif stage == "top_p" and sampling.top_p is not None:
                candidates = candidates.top_p(sampling.top_p)
            elif stage == "min_p" and sampling.min_p is not None:
                candidates = candidates.min_p(sampling.min_p)
            elif stage == "typical_p" and sampling.typical_p is not None:
                candidates = candidates.typical_p(sampling.typical_p)
            elif stage == "top_n_sigma" and sampling.top_n_sigma is not None:
                candidates = candidates.top_n_sigma(sampling.top_n_sigma)
            elif stage == "xtc":
                if state.uniform(DRAW_XTC) < sampling.xtc_probability:
                    candidates = candidates.xtc(sampling.xtc_threshold)
            else:
                continue
            if not len(candidates):
                return None
            if trace is not None:
                trace(stage, candidates)
        return candidates

    def _choose(
        self,
        row: FloatArray,
        state: SamplerState,
        allowed: NDArray[np.bool_] | None,
        forced: int | None,
    ) -> SampledToken:
        sampling = self.sampling
        log_total, mass = None, None
        if sampling.logprobs or allowed is not None:
            log_total, mass = _model_mass(row, allowed)
        count = None if allowed is None else int(np.count_nonzero(allowed))
        if forced is not None:
            if not 0 <= forced < self.vocab_size:
                raise ValueError(f"forced token {forced} is not in the vocabulary of {self.vocab_size} tokens")
            if allowed is not None and not allowed[forced]:
                raise ValueError(f"token {forced} is forced, but the mask does not allow it")
            token_id, final_logprob = forced, 0.0
            top_final: tuple[TokenLogprob, ...] = ()
            report = StepReport(state.step, mass, count, forced=True)
        else:
            final, lifted = self.run(row, state, allowed)
            token_id = final.draw(state.uniform()) if len(final) > 1 else final.token_id(0)
            final_logprob, top_final = self._final_logprobs(final, token_id)
            report = StepReport(state.step, mass, count, len(final), final.entropy(), sampling.is_greedy, False, lifted)
        logprob = None
        top: tuple[TokenLogprob, ...] = ()
        if sampling.logprobs and log_total is not None:
            logprob = float(row[token_id]) - log_total
            top = _top_logprobs(Candidates.of_row(row), log_total, sampling.top_logprobs)
        return SampledToken(token_id, logprob, final_logprob, top, top_final, report)

    def _final_logprobs(self, final: Candidates, token_id: int) -> tuple[float, tuple[TokenLogprob, ...]]:
        if len(final) == 1:
            position = 0
        elif final.ids is None:
            position = token_id
        else:
            position = int(np.searchsorted(final.ids, token_id))
        log_total = float(final.logits.max()) + math.log(float(final.weights.sum()))
        top = _top_logprobs(final, log_total, self.sampling.top_logprobs)
        return float(final.logits[position]) - log_total, top

    def _forced(self, token_id: int, state: SamplerState) -> SampledToken:
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"forced token {token_id} is not in the vocabulary of {self.vocab_size} tokens")
        return SampledToken(token_id, None, 0.0, (), (), StepReport(state.step, forced=True))

    # -- checks and messages

    def breaker_scan(self) -> BreakerScan:
        """Tells where DRY's repetitions end, for the tokens of one output in order."""
        return BreakerScan(self._breaker_ids, self._breaker_texts, self._token_bytes)

    def _check_tokens(self) -> None:
        named = (("logit_bias", self.sampling.logit_bias), ("stop_token_ids or eos_token_ids", self.end_token_ids))
        for name, ids in named:
            for token_id in ids:
                if not 0 <= token_id < self.vocab_size:
                    raise ValueError(f"{name} has token {token_id}, but the vocabulary has {self.vocab_size} tokens")
        if self.sampling.top_logprobs > self.vocab_size:
            raise ValueError(
                f"top_logprobs is {self.sampling.top_logprobs}, but the vocabulary has {self.vocab_size} tokens"
            )
        if self.sampling.min_tokens and not self.end_token_ids:
            raise ValueError("min_tokens is set, but no end token is known: pass eos_token_ids, or set stop_token_ids")

    def _warn_structured(self) -> None:
        names = ", ".join(self.sampling.penalties())
        if self.sampling.penalize_structured:
            message = (
                f"{names} on structured output: quotes, commas and key names must repeat, and penalties push the model "
                f"away from them towards other tokens that are legal there. {_MEASURED}. Prefer penalties of 0 under a "
                f"schema"
            )
        else:
            message = (
                f"{names} is off, because the output is structured: its punctuation and key names must repeat. "
                f"{_MEASURED}. Set penalize_structured=True to penalize all the same"
            )
        warnings.warn(message, SamplingWarning, stacklevel=3)

    def _nothing_left(
        self, start: Candidates, allowed: NDArray[np.bool_] | None, edits: dict[str, list[Edit]]
    ) -> SamplingError:
        if allowed is not None and not allowed.any():
            return SamplingError("the mask allows no token: the constraint's output is complete, or at a dead end")
        if allowed is not None and not len(start.allow(allowed)):
            return SamplingError("every token that the mask allows has logit -inf: the model can produce none of them")
        bans = [stage for stage, found in edits.items() if any(edit.kind == "ban" for edit in found)]
        if bans:
            return SamplingError(f"{' and '.join(bans)} excluded every token that was left: relax it or the constraint")
        return SamplingError(
            f"the order {self.sampling.stages} cut away every token that the mask allows: put 'mask' before the cuts"
        )


def _model_mass(row: FloatArray, allowed: NDArray[np.bool_] | None) -> tuple[float, float | None]:
    """The logarithm of the row's sum of exponentials, and the share of it that a mask keeps.

    Both only report, so float32 will do: numpy sums pairwise, which keeps the relative error near 1e-7.
    """
    highest = row.max()
    weights = np.exp(row - highest)
    total = float(weights.sum())
    if allowed is None:
        return float(highest) + math.log(total), None
    kept = float(np.multiply(weights, allowed, out=weights).sum())
    return float(highest) + math.log(total), min(1.0, kept / total)


def _top_logprobs(candidates: Candidates, log_total: float, count: int) -> tuple[TokenLogprob, ...]:
    if not count:
        return ()
    best = candidates.top_k(count, "lowest-id").compact()
    order = np.argsort(-best.logits, kind="stable")
    return tuple(TokenLogprob(best.token_id(i), float(best.logits[i]) - log_total) for i in order.tolist())
