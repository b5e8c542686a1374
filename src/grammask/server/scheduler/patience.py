"""A token limit that keeps a completion within reach, as long as that is quick to work out.

For constraints in use the shortest completion takes microseconds, and an output asks for it a few times a token. One
that was made to be slow must not hold up the others, which share the scheduler's thread: after ``SECONDS`` in all, the
output goes on without the guarantee, and may be cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from grammask._core import Matcher
from grammask.decoding.budget import Budget
from grammask.engine.vocabulary import Vocabulary

SECONDS = 0.5
"""Of processor time, so that a busy machine does not count against an output."""


class PatientMatcher:
    """What a Budget asks of a matcher, with a limit on the time.

    Attributes:
        exhausted: the time is used up; completions are not looked for any more.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._left = SECONDS
        self.accept = matcher.accept
        self.rollback = matcher.rollback
        self.copy = matcher.copy

    @property
    def exhausted(self) -> bool:
        return self._left <= 0

    def shortest_completion(self) -> list[int] | None:
        """Tokens that complete the output; None if none are known, or for lack of time."""
        if self.exhausted:
            return None
        start = time.thread_time()
        try:
            return self._matcher.shortest_completion()
        finally:
            self._left -= time.thread_time() - start


def patient_budget(
    matcher: Matcher, max_tokens: int, vocabulary: Vocabulary, ends: Callable[[int], bool]
) -> tuple[Budget, PatientMatcher]:
    """A budget, and what tells whether it still holds.

    Raises:
        BudgetTooSmall: no output is known to fit.
    """
    patient = PatientMatcher(matcher)
    return Budget(cast(Matcher, patient), max_tokens, vocabulary, ends), patient
