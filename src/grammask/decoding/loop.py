"""The decoding loop: forced tokens for free, a mask and a draw for the rest.

At its simplest: ask the model for logits, mask them, draw a token, tell constraint and model, repeat. Two refinements
save forward passes, and neither changes which outputs are possible:

* Tokens that the constraint makes certain are appended without asking the model. They are read together with the next
  forward pass that is needed anyway; at the start, together with the prompt.
* When nothing but the end of the text is possible, the output ends without asking the model for it.

With a Budget, every choice moreover leaves enough tokens to complete the output.

The loop knows no text and no particular model: bytes, characters and stop texts are the caller's business, and a model
is whatever has a ``Session``. Covered by tests/decoding/test_loop.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grammask.decoding.budget import Budget
from grammask.decoding.forced import CertainText
from grammask.decoding.result import FinishReason, Usage

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.engine.vocabulary import Vocabulary
    from grammask.models.prefix_cache import PromptSession
    from grammask.sampling import SampledToken, SamplerState


class Decoding:
    """One run of the loop. Iterate over it once: it yields each token as soon as it is certain.

    Args:
        session: a sequence of the model; its first forward pass is given the whole prompt.
        prompt_ids: at least one token.
        vocabulary: the model's.
        matcher: the constraint's state before the first token.
        state: the sampler's.
        max_tokens: the most tokens to produce, forced ones and the end-of-text token included.
        interrupted: asked before each forward pass: a reason to end there, or None.
        may_cut: the output may be cut at ``max_tokens``; else it is completed within them.

    Raises:
        BudgetTooSmall: the output may not be cut, and none is known to fit.

    Attributes (while and after iterating):
        finish_reason: why it ended; None while it has not.
        tokens: what was yielded.
        pieces: the bytes of each of them, none for special tokens.
        prompt_seconds: from the start of the iteration to the end of the first forward pass.
    """

    def __init__(
        self,
        session: PromptSession,
        prompt_ids: Sequence[int],
        vocabulary: Vocabulary,
        matcher: Matcher,
        state: SamplerState,
        *,
        max_tokens: int,
        interrupted: Callable[[], FinishReason | None],
        may_cut: bool,
    ) -> None:
        self._session = session
        self._prompt_ids = list(prompt_ids)
        self._matcher = matcher
        self._state = state
        self._max_tokens = max_tokens
        self._interrupted = interrupted
        self._vocabulary = vocabulary
        self._certain = CertainText(vocabulary)
        self.pieces: list[bytes] = []
        self._eos_ids = frozenset(vocabulary.eos_token_ids)
        self._stop_ids = frozenset(state.sampler.sampling.stop_token_ids)
        # A stop token that is no text, such as an end of turn, acts like end of text: it may come where the output may
        # end.
        self._end_ids = sorted(
            self._eos_ids | {token for token in self._stop_ids if vocabulary.token_bytes(token) is None}
        )
        self._budget = None if may_cut else Budget(matcher, max_tokens, vocabulary, self._end_ids.__contains__)
        self._mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
        self._forced_count = 0
        self._model_calls = 0
        self.finish_reason: FinishReason | None = None
        self.tokens: list[SampledToken] = []
        self.prompt_seconds = 0.0

    @property
    def usage(self) -> Usage:
        """The counts so far."""
        cached = self._session.cached_tokens
        return Usage(len(self._prompt_ids), len(self.tokens), self._forced_count, self._model_calls, cached)

    @property
    def is_limited(self) -> bool:
        """Whether the limit had a say: it forbade a token that the constraint allows, or ended the output."""
        return self.finish_reason == "length" or (self._budget is not None and self._budget.refusals > 0)

    @property
    def is_complete(self) -> bool:
        """Whether the tokens so far are a valid output."""
        return self.finish_reason == "stop" or self._matcher.is_complete

    @property
    def seed(self) -> int:
        """The seed of the random numbers."""
        return self._state.seed

    def __iter__(self) -> Iterator[SampledToken]:
        """Yields the tokens; ``finish_reason`` is set when it is over.

        Raises:
            SamplingError: no token can be drawn (NaN logits, or a vocabulary that cannot spell what must come next).
        """
        start = time.perf_counter()
        unread = self._prompt_ids.copy()
        while True:
            for token_id in self._forced_tokens():
                if len(self.tokens) >= self._max_tokens:
                    break
                unread.append(token_id)
                yield self._take(self._state.sampler.sample(None, self._state, forced=token_id))
                if self._has_ended():
                    return
            self.finish_reason = self._reason_to_end()
            if self._has_ended():
                return
            logits = self._session.forward(unread)
            unread = []
            self._model_calls += 1
            if self._model_calls == 1:
                self.prompt_seconds = time.perf_counter() - start
            choice = self._state.sampler.sample(logits, self._state, mask=self._mask)
            if self._budget is not None:
                choice = self._budget.choose(choice, logits, self._state, self._mask)
            unread.append(choice.token_id)
            yield self._take(choice)
            if self._has_ended():
                return

    def _forced_tokens(self) -> list[int]:
        token_ids = self._certain.tokens(self._matcher, self.pieces)
        if self._budget is None or not token_ids:
            return token_ids
        return self._budget.forced(token_ids, len(self._matcher.forced_bytes()))

    def close(self) -> None:
        """Gives the session back; to be called when the iteration is over or given up."""
        self._session.close()

    def _has_ended(self) -> bool:
        return self.finish_reason is not None

    def _reason_to_end(self) -> FinishReason | None:
        """Why no forward pass is needed; if one is, the mask for it is filled."""
        reason = self._interrupted()
        if reason is not None:
            return reason
        self._fill_mask()
        if self._matcher.is_complete and not self._allows_more():
            return "stop"
        return "length" if len(self.tokens) >= self._max_tokens else None

    def _fill_mask(self) -> None:
        self._matcher.fill_mask(self._mask)
        if self._matcher.is_complete:
            words = self._mask.view(np.uint32)
            for token in self._end_ids:
                words[token >> 5] |= np.uint32(1 << (token & 31))

    def _allows_more(self) -> bool:
        """Whether the mask allows anything but an end."""
        words = self._mask.view(np.uint32).copy()
        for token in self._end_ids:
            words[token >> 5] &= np.uint32(0xFFFFFFFF ^ (1 << (token & 31)))
        return bool(words.any())

    def _take(self, choice: SampledToken) -> SampledToken:
        """Tells constraint and sampler of a token."""
        token_id = choice.token_id
        ends = token_id in self._end_ids
        # Only end-of-text tokens are known to the matcher; the other ends were added to the mask above.
        if (not ends or token_id in self._eos_ids) and not self._matcher.accept(token_id):
            raise RuntimeError(f"the matcher refuses token {token_id}, which it allowed: please report this as a bug")
        if self._budget is not None:
            self._budget.take(token_id)
        self._state.append(token_id)
        self.pieces.append(self._vocabulary.token_bytes(token_id) or b"")
        self.tokens.append(choice)
        self._forced_count += choice.report.forced
        if ends:
            self.finish_reason = "stop"
        elif token_id in self._stop_ids:
            self.finish_reason = "stop_sequence"
        return choice
