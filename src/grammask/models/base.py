"""What the decoding loop needs from a model, and the methods that every model offers its user.

A backend supplies four things: a ``vocabulary`` (which bytes each token id stands for), ``encode`` (prompt to token
ids), a ``context_length``, and ``session`` (one sequence's running state). Everything else, sampling and constraints
included, happens outside of the model, so a test can stand a few lines of Python in for billions of weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grammask.constraints.base import Constraint
    from grammask.decoding import Result, TextStream
    from grammask.engine.vocabulary import Vocabulary
    from grammask.sampling import Sampling

Message = Mapping[str, Any]
"""One turn of a chat: ``role`` ("system", "user", "assistant" ...) and ``content``."""

Prompt = str | Sequence[Message]
"""Plain text, which is tokenized as it is, or a list of messages, to which the model's chat template is applied."""

T = TypeVar("T")


class Session(Protocol):
    """The state of one sequence inside a model: the tokens it has read, and its key-value cache."""

    @property
    def length(self) -> int:
        """How many tokens the sequence holds."""
        ...

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Appends tokens, all in one pass, and returns the logits of the position after the last one.

        Args:
            token_ids: at least one token.

        Returns:
            Float32 array of shape (vocabulary size,), unnormalized log-probabilities; the caller may write to it.
        """
        ...

    def truncate(self, length: int) -> None:
        """Forgets all tokens from position ``length`` on (0 ≤ length ≤ self.length)."""
        ...


class Model(ABC):
    """A language model with a known vocabulary and access to its logits."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the user asked for: a built-in name, a path or a hub id."""

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The bytes of each token; its size is the length of a row of logits, padding rows included."""

    @property
    @abstractmethod
    def context_length(self) -> int | None:
        """How many tokens the model can hold, prompt and output together; None if unbounded."""

    @property
    def has_chat_template(self) -> bool:
        """Whether ``encode`` takes lists of messages."""
        return False

    @abstractmethod
    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, with the special tokens that the model expects; at least one.

        Raises:
            ModelError: messages for a model without a chat template, or messages that the template refuses.
        """

    @abstractmethod
    def session(self) -> Session:
        """A new, empty sequence."""

    @overload
    def generate(
        self,
        prompt: Prompt,
        constraint: type[T],
        *,
        sampling: Sampling | None = ...,
        max_tokens: int | None = ...,
        seed: int | None = ...,
        request: int = ...,
        stop: str | Sequence[str] = ...,
        cancelled: Callable[[], bool] | None = ...,
    ) -> Result[T]: ...

    @overload
    def generate(
        self,
        prompt: Prompt,
        constraint: None = ...,
        *,
        sampling: Sampling | None = ...,
        max_tokens: int | None = ...,
        seed: int | None = ...,
        request: int = ...,
        stop: str | Sequence[str] = ...,
        cancelled: Callable[[], bool] | None = ...,
    ) -> Result[str]: ...

    @overload
    def generate(
        self,
        prompt: Prompt,
        constraint: Constraint | Any,
        *,
        sampling: Sampling | None = ...,
        max_tokens: int | None = ...,
        seed: int | None = ...,
        request: int = ...,
        stop: str | Sequence[str] = ...,
        cancelled: Callable[[], bool] | None = ...,
    ) -> Result[Any]: ...

    def generate(
        self,
        prompt: Prompt,
        constraint: Any = None,
        *,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        request: int = 0,
        stop: str | Sequence[str] = (),
        cancelled: Callable[[], bool] | None = None,
    ) -> Result[Any]:
        """Writes one output that satisfies ``constraint``.

        Args:
            prompt: text, or a list of chat messages.
            constraint: a Constraint, a CompiledConstraint for this model's vocabulary, or a Python type
                (``constraint_for`` says which); None for free text.
            sampling: how tokens are drawn; None is greedy, the same as ``Sampling(temperature=0)``.
            max_tokens: upper bound on the tokens of the output, forced ones included; None is what ``sampling`` says,
                or 512. The model's context is a bound in any case.
            seed: seed of the random numbers, in place of the one in ``sampling``.
            request: tells apart calls with the same seed: each number draws its own random numbers.
            stop: texts that end the output where they first appear, beside those of ``sampling``.
            cancelled: asked before each forward pass; True ends the output there.

        Returns:
            The Result. Its ``value`` is parsed: by ``json.loads`` for JSON constraints, into the type for types, else
            text.

        Raises:
            ConstraintError: the constraint cannot be enforced.
            ModelError: the prompt cannot be encoded or does not fit.
            SamplingError: no token can be drawn, because logits are NaN for example.
            InvalidValue: the output is valid under the constraint, but the type's own validators refuse it.
        """
        from grammask.decoding import generate

        return generate(
            self,
            prompt,
            constraint,
            sampling=sampling,
            max_tokens=max_tokens,
            seed=seed,
            request=request,
            stop=stop,
            cancelled=cancelled,
        )

    def stream(
        self,
        prompt: Prompt,
        constraint: Any = None,
        *,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        request: int = 0,
        stop: str | Sequence[str] = (),
    ) -> TextStream[Any]:
        """Like ``generate``, but an iterator over pieces of text; ``.result`` afterwards, ``.cancel()`` at any time."""
        from grammask.decoding import stream

        return stream(
            self,
            prompt,
            constraint,
            sampling=sampling,
            max_tokens=max_tokens,
            seed=seed,
            request=request,
            stop=stop,
        )
