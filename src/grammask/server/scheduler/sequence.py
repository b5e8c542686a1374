"""One output on its way: the decoding loop turned inside out, so that a scheduler can drive many of them.

``prepare`` does all that needs no model (certain tokens, the end), ``unread`` is what the model must read, ``choose``
takes its logits. What is chosen is what ``grammask.decoding.Decoding`` chooses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grammask._core import Matcher
from grammask.decoding.budget import Budget
from grammask.decoding.forced import CertainText
from grammask.decoding.result import FinishReason
from grammask.decoding.text import TextAssembler
from grammask.engine.vocabulary import Vocabulary
from grammask.sampling import SampledToken, Sampler
from grammask.server.scheduler.job import Ended, Job, Piece
from grammask.server.scheduler.patience import PatientMatcher, patient_budget


class OutputSequence:
    """One of the n outputs of a job.

    Args:
        index: which one.
        certain: spells certain text.

    Attributes:
        slot: in the batch; None while it has none.
        unread: tokens that the model has not read.
        finish_reason: why it ended; None while it has not.
        queued_at: on the clock of ``time.monotonic``.
        last_turn: the step in which it last read many tokens.
        mask_seconds: what its masks have cost.

    Raises:
        BudgetTooSmall: the job must not be cut, and no output is known to fit.
    """

    def __init__(self, job: Job, index: int, sampler: Sampler, vocabulary: Vocabulary, certain: CertainText) -> None:
        self.job = job
        self.index = index
        self.slot: int | None = None
        self.unread = list(job.prompt_ids)
        self.finish_reason: FinishReason | None = None
        self.queued_at = 0.0
        self.last_turn = 0
        self.mask_seconds = 0.0
        self._vocabulary = vocabulary
        self._certain = certain
        self._matcher = job.compiled.matcher()
        self._state = sampler.start(job.prompt_ids, seed=job.seed, sample=index)
        sampling = sampler.sampling
        self._with_logits = sampling.logprobs
        self._min_tokens = sampling.min_tokens
        self._eos_ids = frozenset(vocabulary.eos_token_ids)
        self._stop_ids = frozenset(sampling.stop_token_ids)
        self._end_ids = sorted(
            self._eos_ids | {token for token in self._stop_ids if vocabulary.token_bytes(token) is None}
        )
        self._budget: Budget | None = None
        self._patience: PatientMatcher | None = None
        if job.never_cut:
            self._budget, self._patience = patient_budget(
                self._matcher, job.max_tokens, vocabulary, self._end_ids.__contains__
            )
        self._assembler = TextAssembler(sampling.stop, include_stop=sampling.include_stop)
        self._pending: list[int] = []
        self._token_ids: list[int] = []
        self._bytes: list[bytes] = []
        self._forced = 0
        self._text = ""
        self._marks: list[int] = []
        self._tokens: list[SampledToken] = []

    @property
    def matcher(self) -> Matcher:
        """The constraint's state."""
        return self._matcher

    @property
    def written(self) -> int:
        """How many tokens the output has."""
        return len(self._token_ids)

    @property
    def needs_mask(self) -> bool:
        """Whether the next token is open."""
        return not self._pending

    def prepare(self) -> None:
        """Writes what is certain; afterwards either the output has ended, or the model must read ``unread``."""
        if not self._pending:
            certain = self._certain_tokens()
            room = self.job.max_tokens - len(self._token_ids)
            if self._with_logits:
                self._pending = certain[:room]
            else:
                for token_id in certain[:room]:
                    self.unread.append(token_id)
                    self._take(self._state.sampler.sample(None, self._state, forced=token_id))
                    if self.finish_reason is not None:
                        return
        if not self._pending and self._matcher.is_complete and not self._allows_more():
            self.finish_reason = "stop"
        elif len(self._token_ids) >= self.job.max_tokens:
            self.finish_reason = "length"

    def choose(self, logits: NDArray[np.float32], mask: NDArray[np.int32]) -> None:
        """Writes the next token.

        Args:
            logits: float32 [vocabulary size], after all of ``unread``.
            mask: what ``fill_mask`` gave, if ``needs_mask``.

        Raises:
            SamplingError: no token can be drawn.
        """
        sampler, state = self._state.sampler, self._state
        if self._pending:
            choice = sampler.sample(logits, state, forced=self._pending.pop(0))
        else:
            self._add_ends(mask)
            choice = sampler.sample(logits, state, mask=mask)
            if self._budget is not None:
                within = self._budget.choose(choice, logits, state, mask)
                choice = within if self._keeps_budget() else choice
        self.unread.append(choice.token_id)
        self._take(choice)

    def piece(self) -> Piece | None:
        """What was written since the last call."""
        if self.finish_reason is not None:
            self._text += self._assembler.finish()
        if not self._text and not self._tokens:
            return None
        piece = Piece(self.index, self._text, tuple(self._marks), tuple(self._tokens) if self._with_logits else ())
        self._text, self._marks, self._tokens = "", [], []
        return piece

    def ended(self) -> Ended:
        """The end of the output, which has a ``finish_reason``."""
        assert self.finish_reason is not None
        complete = self.finish_reason == "stop" or self._matcher.is_complete
        return Ended(self.index, self.finish_reason, tuple(self._token_ids), self._forced, complete)

    def _certain_tokens(self) -> list[int]:
        certain = self._certain.tokens(self._matcher, self._bytes)
        if self._budget is None or not certain:
            return certain
        within = self._budget.forced(certain, len(self._matcher.forced_bytes()))
        return within if self._keeps_budget() else certain

    def _keeps_budget(self) -> bool:
        """Whether the budget still holds; if not, it is given up."""
        if self._patience is not None and self._patience.exhausted:
            self._budget = None
        return self._budget is not None

    def _allows_more(self) -> bool:
        """Whether anything but an end may come. Bytes tell it at once; only where none may, a special token might."""
        if self._matcher.next_bytes():
            return True
        return any(token not in self._end_ids for token in self._matcher.allowed_token_ids().tolist())

    def _add_ends(self, mask: NDArray[np.int32]) -> None:
        if self._matcher.is_complete:
            words = mask.view(np.uint32)
            for token in self._end_ids:
                words[token >> 5] |= np.uint32(1 << (token & 31))

    def _take(self, choice: SampledToken) -> None:
        token_id = choice.token_id
        ends = token_id in self._end_ids
        # Only end-of-text tokens are known to the matcher; the other ends were added to the mask.
        if (not ends or token_id in self._eos_ids) and not self._matcher.accept(token_id):
            raise RuntimeError(f"the matcher refuses token {token_id}, which it allowed: please report this as a bug")
        if self._budget is not None:
            self._budget.take(token_id)
            self._keeps_budget()
        self._state.append(token_id)
        data = self._vocabulary.token_bytes(token_id) or b""
        self._token_ids.append(token_id)
        self._bytes.append(data)
        self._forced += choice.report.forced
        self._tokens.append(choice)
        if ends:
            self.finish_reason = "stop"
        elif token_id in self._stop_ids:
            self.finish_reason = "stop_sequence"
        self._show(token_id, data)

    def _show(self, token_id: int, data: bytes) -> None:
        mark = self.job.marks.get(token_id)
        if mark is not None:
            self._text += self._assembler.finish()
            self._marks.append(len(self._text))
            self._text += mark
            return
        self._text += self._assembler.feed(data, may_stop=len(self._token_ids) > self._min_tokens)
        if self._assembler.stopped:
            self.finish_reason = "stop_sequence"
