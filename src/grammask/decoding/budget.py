"""Never truncated: a token limit that keeps a completion within reach.

A token is admissible under a budget if, after it, the output can still be completed with the tokens that are left. The
core tells tokens that complete an output from where it stands (``Matcher.shortest_completion``): a short text, in the
fewest tokens that spell it. Its length is an upper bound, so what it admits can certainly be completed. Where it does
not fit to begin with, texts that take fewer tokens are searched for (``decoding.fewest``).

Asking for every token of a vocabulary would cost too much. So a token is chosen under the constraint's mask first, and
asked about afterwards; if it is not admissible it is excluded and another one is chosen. Drawing again among the rest
is drawing under the mask of admissible tokens: excluding what was refused leaves the proportions of all others as they
were. (Cuts such as top-p count inadmissible tokens until they have been refused.) Inside a long string with hardly any
budget left almost every token is refused; after ``MAX_REFUSALS`` the likeliest ``MAX_ASKED`` are asked about at once,
and the choice is among those admitted and the first token of the known completion, which always is.

Covered by tests/decoding/test_budget.py.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammask._core import ConstraintTooLargeError
from grammask.decoding.fewest import fewest_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from grammask._core import Matcher
    from grammask.engine.vocabulary import Vocabulary
    from grammask.sampling import SampledToken, SamplerState

MAX_REFUSALS = 24
MAX_ASKED = 256
_FIRST_DRAW = 2
"""Draws 0 and 1 of a step are the token's and XTC's (``sampling.random_numbers``); those after a refusal follow."""


class BudgetTooSmall(ValueError):
    """No output of the constraint is known that fits into the limit.

    Attributes:
        max_tokens: the limit.
        needed: a limit that is large enough, None if no completion is known at all.
        exhausted: not all outputs were looked at, so one that fits may exist.
    """

    def __init__(self, max_tokens: int, needed: int | None, *, exhausted: bool = True) -> None:
        self.max_tokens = max_tokens
        self.needed = needed
        self.exhausted = exhausted
        if needed is None:
            message = f"no short output of this constraint is known, so none is certain to fit into {max_tokens} tokens"
        else:
            message = f"the shortest known output of this constraint takes {needed} tokens, the limit is {max_tokens}"
            if exhausted:
                message += " (there may be one of fewer, but the search for it took too long)"
        super().__init__(f"{message}: raise max_tokens, or allow outputs to be cut with truncate='allow'")


class Budget:
    """The completion that is within reach at each step.

    Args:
        matcher: the constraint's state; asked, and always left as it was.
        max_tokens: the tokens that may be written from here.
        vocabulary: of the matcher.
        ends: whether a token ends the output; such a token is only allowed where the output is complete.

    Attributes:
        refusals: how many tokens were refused that the constraint allows.

    Raises:
        BudgetTooSmall: no output is known to fit.
    """

    def __init__(self, matcher: Matcher, max_tokens: int, vocabulary: Vocabulary, ends: Callable[[int], bool]) -> None:
        self._matcher = matcher
        self._left = max_tokens
        self._vocabulary = vocabulary
        self._ends = ends
        self.refusals = 0
        self._plan = completion_within(matcher, max_tokens, vocabulary)

    def forced(self, token_ids: list[int], forced_bytes: int) -> list[int]:
        """Of tokens that spell certain text, those to write: the same, or where there is no room for them, the fewest.

        Args:
            token_ids: the tokens, as the model would like to see them.
            forced_bytes: the length of the certain text, which may be longer than these tokens.
        """
        if len(token_ids) + self._length_after(token_ids) <= self._left:
            return token_ids
        kept, spelled = [], 0
        for token_id in self._plan:
            spelled += len(self._vocabulary.token_bytes(token_id) or b"")
            if spelled > forced_bytes:
                break
            kept.append(token_id)
        return kept

    def choose(
        self, choice: SampledToken, logits: NDArray[np.float32], state: SamplerState, mask: NDArray[np.int32]
    ) -> SampledToken:
        """The choice itself if it is admissible, else another one, drawn among what is.

        Args:
            choice: drawn under ``mask``.
            logits: float32 [vocabulary size].
            mask: the tokens that the constraint allows; refused ones are taken out of it.
        """
        words = mask.view(np.uint32)
        refused = 0
        while not self._admits(choice.token_id):
            refused += 1
            words[choice.token_id >> 5] &= np.uint32(0xFFFFFFFF ^ (1 << (choice.token_id & 31)))
            if refused == MAX_REFUSALS:
                self._narrow(logits, words)
            choice = _draw_again(choice, logits, state, mask, _FIRST_DRAW + min(refused, 250))
        self.refusals += refused
        return choice

    def take(self, token_id: int) -> None:
        """A token was written; the matcher has accepted it."""
        self._left -= 1
        found = None if self._ends(token_id) else known_completion(self._matcher)
        if self._plan and self._plan[0] == token_id and (found is None or len(found) >= len(self._plan)):
            found = self._plan[1:]
        self._plan = found or []

    def _admits(self, token_id: int) -> bool:
        if self._ends(token_id):
            return True
        return 1 + self._length_after([token_id]) <= self._left

    def _length_after(self, token_ids: list[int]) -> int:
        """Tokens that complete the output after these; more than any budget if none are known."""
        for count, token_id in enumerate(token_ids):
            if not self._matcher.accept(token_id):
                self._matcher.rollback(count)
                raise RuntimeError(
                    f"the matcher refuses token {token_id}, which is certain: please report this as a bug"
                )
        found = known_completion(self._matcher)
        self._matcher.rollback(len(token_ids))
        known = len(found) if found is not None else 1 << 62
        if token_ids == self._plan[: len(token_ids)]:
            known = min(known, len(self._plan) - len(token_ids))
        return known

    def _narrow(self, logits: NDArray[np.float32], words: NDArray[np.uint32]) -> None:
        """Leaves in the mask the admissible ones among the likeliest tokens, and the completion's next token."""
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(logits)].astype(bool)
        ids = np.flatnonzero(allowed)
        if len(ids) > MAX_ASKED:
            ids = ids[np.argpartition(-logits[ids], MAX_ASKED)[:MAX_ASKED]]
        admitted = [int(token_id) for token_id in ids if self._admits(int(token_id))]
        words[:] = 0
        for token_id in {*admitted, *self._plan[:1]}:
            words[token_id >> 5] |= np.uint32(1 << (token_id & 31))


def completion_within(matcher: Matcher, max_tokens: int, vocabulary: Vocabulary) -> list[int]:
    """Tokens that complete the output, at most ``max_tokens``.

    Raises:
        BudgetTooSmall: no output is known to fit.
    """
    known = known_completion(matcher)
    if known is None:
        raise BudgetTooSmall(max_tokens, None)
    if len(known) <= max_tokens:
        return known
    search = fewest_tokens(matcher.copy(), max_tokens, vocabulary)
    if search.tokens is None:
        raise BudgetTooSmall(max_tokens, len(known), exhausted=search.exhausted)
    return search.tokens


def known_completion(matcher: Matcher) -> list[int] | None:
    """Tokens that complete the output with a short text; None if the core finds none."""
    try:
        return matcher.shortest_completion()
    except ConstraintTooLargeError:
        return None


def _draw_again(
    refused: SampledToken, logits: NDArray[np.float32], state: SamplerState, mask: NDArray[np.int32], draw: int
) -> SampledToken:
    """Another choice of the same step, with a random number of its own."""
    sampler = state.sampler
    ids, probabilities = sampler.distribution(logits, state, mask)
    position = min(int(np.searchsorted(np.cumsum(probabilities), state.uniform(draw), side="right")), len(ids) - 1)
    token_id = int(ids[position])
    logprob = None
    if refused.logprob is not None:
        logprob = refused.logprob + float(logits[token_id]) - float(logits[refused.token_id])
    return dataclasses.replace(
        refused,
        token_id=token_id,
        logprob=logprob,
        final_logprob=math.log(float(probabilities[position])),
        top_final_logprobs=(),
        report=dataclasses.replace(refused.report, nucleus=len(ids)),
    )
