"""The errors of models behind an API.

ModelError
└── HostedError                 the provider refused, failed or could not be reached
InvalidValue
└── InvalidOutput               the model's answers never satisfied the constraint
"""

from __future__ import annotations

from collections.abc import Sequence

from grammask.decoding import InvalidValue
from grammask.models.errors import ModelError
from grammask.validation.history import Attempt
from grammask.validation.problems import CheckError, listing


class HostedError(ModelError):
    """The provider refused the request, failed, or could not be reached.

    Attributes:
        status: HTTP status, or None where there was no answer.
        code: the provider's own word for it, or None.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, status: int | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code

    @property
    def is_refusal(self) -> bool:
        """The request itself was at fault (HTTP 400 or 422): another form of it may pass."""
        return self.status in (400, 422)


class InvalidOutput(InvalidValue):
    """No answer of the model satisfied the constraint, the last one included.

    Attributes:
        text: the last answer.
        attempts: all of them, with what was wrong.
    """

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        last = attempts[-1]
        super().__init__(last.text, CheckError(*last.problems))
        self.attempts = tuple(attempts)
        tries = "the answer does not satisfy" if len(attempts) == 1 else f"none of {len(attempts)} answers satisfies"
        self.args = (f"{tries} the constraint; the last one:\n{listing(last.problems)}",)


class HostedWarning(UserWarning):
    """A setting is lost or changed on the way to the provider."""
