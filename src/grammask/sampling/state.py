"""The state of one sequence: its tokens, its random key, and what penalties remember."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammask.sampling import random_numbers
from grammask.sampling.edits import (
    Edit,
    ban,
    bias_edits,
    dry_edit,
    no_repeat_ngram_edit,
    presence_frequency_edit,
    repetition_edit,
)
from grammask.sampling.history import NgramIndex, RepetitionLengths, TokenCounts
from grammask.sampling.order import Scope

if TYPE_CHECKING:
    from grammask.sampling.sampler import Sampler


class SamplerState:
    """Made by ``Sampler.start``, one per output. ``sample`` never changes it; ``append`` does.

    Attributes:
        sampler: the sampler that it belongs to.
        seed, request, sample: the key of its random numbers.
        prompt_ids, output_ids: the tokens so far.
    """

    def __init__(
        self, sampler: Sampler, prompt_ids: Sequence[int], *, seed: int | None, request: int, sample: int
    ) -> None:
        self.sampler = sampler
        self.seed = secrets.randbits(64) if seed is None else seed
        self.request = request
        self.sample = sample
        self.prompt_ids = [int(token_id) for token_id in prompt_ids]
        self.output_ids: list[int] = []
        self._forget_all()

    @property
    def step(self) -> int:
        """How many tokens of output there are."""
        return len(self.output_ids)

    def append(self, token_id: int) -> None:
        """Add a token to the output: the one sampled, or any other.

        Raises:
            ValueError: not a token of the vocabulary.
        """
        token_id = int(token_id)
        if not 0 <= token_id < self.sampler.vocab_size:
            raise ValueError(f"token {token_id} is not in the vocabulary of {self.sampler.vocab_size} tokens")
        self.output_ids.append(token_id)
        self._remember(token_id, "output")

    def rollback(self, n_tokens: int) -> None:
        """Take the last tokens of the output back.

        Raises:
            ValueError: the output is shorter than that.
        """
        if not 0 <= n_tokens <= self.step:
            raise ValueError(f"cannot take back {n_tokens} tokens: the output has {self.step}")
        if n_tokens:
            output_ids = self.output_ids[:-n_tokens]
            self.output_ids = []
            self._forget_all()
            for token_id in output_ids:
                self.append(token_id)

    def copy(self) -> SamplerState:
        """An independent state with the same tokens and the same random numbers."""
        state = SamplerState(self.sampler, self.prompt_ids, seed=self.seed, request=self.request, sample=self.sample)
        for token_id in self.output_ids:
            state.append(token_id)
        return state

    def uniform(self, draw: int = random_numbers.DRAW_TOKEN) -> float:
        """This step's random number from [0, 1)."""
        return random_numbers.uniform(self.seed, self.request, self.step, sample=self.sample, draw=draw)

    # -- penalties

    def edits(self) -> dict[str, list[Edit]]:
        """What each penalty stage changes at this step; stages that change nothing are left out."""
        sampling = self.sampler.sampling
        edits: dict[str, list[Edit]] = {}
        for stage in self.sampler.stages:
            if stage == "logit_bias":
                edits[stage] = bias_edits(dict(sampling.logit_bias))
            elif stage == "repetition" and self._repetition_counts is not None:
                edits[stage] = [repetition_edit(self._repetition_counts, sampling.repetition_penalty)]
            elif stage == "presence_frequency" and self._counts is not None:
                penalties = sampling.presence_penalty, sampling.frequency_penalty
                edits[stage] = [presence_frequency_edit(self._counts, *penalties)]
            elif stage == "dry" and self._lengths is not None:
                shape = sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length
                edits[stage] = [dry_edit(self._lengths, self._breakers, *shape)]
            elif stage == "no_repeat_ngram" and self._ngrams is not None:
                edits[stage] = [no_repeat_ngram_edit(self._ngrams)]
            elif stage == "min_tokens" and self.step < sampling.min_tokens:
                edits[stage] = [ban(stage, self.sampler.end_token_ids, may_yield=True)]
        return {
            stage: changing for stage, found in edits.items() if (changing := [edit for edit in found if edit.ids.size])
        }

    def _forget_all(self) -> None:
        sampler, sampling = self.sampler, self.sampler.sampling
        stages = sampler.stages
        order = sampling.stages
        window = order.window if sampling.penalty_window is None else sampling.penalty_window
        self._count_scope: Scope = sampling.penalty_scope or order.count_scope
        self._repetition_scope: Scope = sampling.repetition_scope or order.repetition_scope
        self._counts = TokenCounts(window) if "presence_frequency" in stages else None
        self._repetition_counts = TokenCounts(window) if "repetition" in stages else None
        self._ngrams = None
        if "no_repeat_ngram" in stages and sampling.no_repeat_ngram_size is not None:
            self._ngrams = NgramIndex(sampling.no_repeat_ngram_size)
        self._lengths = None
        if "dry" in stages:
            self._breakers = sampler.breaker_scan()
            self._lengths = RepetitionLengths(sampling.dry_window, self._breakers)
            self._lengths.extend(self.prompt_ids)
        if self._counts is not None or self._repetition_counts is not None or self._ngrams is not None:
            for token_id in self.prompt_ids:
                self._remember(token_id, "prompt")

    def _remember(self, token_id: int, part: Scope) -> None:
        if self._counts is not None and self._count_scope in (part, "all"):
            self._counts.append(token_id)
        if self._repetition_counts is not None and self._repetition_scope in (part, "all"):
            self._repetition_counts.append(token_id)
        if self._ngrams is not None:
            self._ngrams.append(token_id)
        if self._lengths is not None and part == "output":
            self._lengths.append(token_id)
