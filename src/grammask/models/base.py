"""What a model offers its user, and what the decoding loop needs from it.

``LanguageModel`` is what every model can do, a hosted one included: write an output. ``Model`` adds what only a model
with logits can do.

A backend of a ``Model`` supplies four things: a ``vocabulary`` (which bytes each token id stands for), ``encode``
(prompt to token ids), a ``context_length``, and ``session`` (one sequence's running state). Everything else, sampling
and constraints included, happens outside of the model, so a test can stand a few lines of Python in for billions of
weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, overload

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from grammask.constraints.base import Constraint
    from grammask.decoding.classify import Classification
    from grammask.decoding.result import Result
    from grammask.decoding.strategy import Strategy
    from grammask.decoding.streams import AsyncTextStream, TextStream
    from grammask.engine.vocabulary import Vocabulary
    from grammask.models.prefix_cache import PrefixCache
    from grammask.sampling import Sampling

Message = Mapping[str, Any]
"""One turn of a chat: ``role`` ("system", "user", "assistant" ...) and ``content``."""

Prompt = str | Sequence[Message]
"""Plain text, which is tokenized as it is, or a list of messages, to which the model's chat template is applied."""

T = TypeVar("T")


class GenerateOptions(TypedDict, total=False):
    """The options of ``generate`` and ``stream``.

    sampling: how tokens are drawn; None is greedy, the same as ``Sampling(temperature=0)``.
    max_tokens: upper bound on the tokens of the output, forced ones included; None is what ``sampling`` says, or 512.
        The model's context is a bound in any case.
    truncate: ``"never"`` keeps a completion within reach, so that the output is valid at the limit, and refuses a limit
        that is too small for any output; ``"allow"`` cuts.
    seed: seed of the random numbers, in place of the one in ``sampling``.
    request: tells apart calls with the same seed: each number draws its own random numbers.
    stop: texts that end the output where they first appear, beside those of ``sampling``.
    timeout: seconds after which the output ends, with the finish reason "timeout".
    cancelled: asked before each forward pass; True ends the output there.
    strategy: how outputs are made: ``"beam"``, ``"draft"``, ``"reasoning"``, ``"thinking"``, ``"vote"``, or a Strategy
        with settings, such as ``Draft(max_tokens=200)``; None is in one pass.
    n: how many outputs: ``Result.samples`` holds all of them. With ``strategy="vote"``, how many vote.
    method: ``"mask"`` draws each token under the constraint's mask; ``"smc"`` corrects the bias of that by sequential
        Monte Carlo.
    particles: how many outputs ``"smc"`` carries along.
    heal: of a prompt that is plain text, take back the last token where a longer one may stand there (token healing).
    session: a session of this model, to be used instead of a new one: what it holds in common with the prompt is not
        read again, and afterwards it holds prompt and output.
    """

    sampling: Sampling | None
    max_tokens: int | None
    truncate: Literal["never", "allow"]
    seed: int | None
    request: int
    stop: str | Sequence[str]
    timeout: float | None
    cancelled: Callable[[], bool] | None
    strategy: str | Strategy | None
    n: int | None
    method: Literal["mask", "smc"]
    particles: int | None
    heal: bool
    session: Session | None


class Session(Protocol):
    """The state of one sequence inside a model: the tokens it has read, and its key-value cache."""

    @property
    def length(self) -> int:
        """How many tokens the sequence holds."""
        ...

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the sequence."""
        ...

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Appends tokens, all in one pass, and returns the logits of the position after the last one.

        Args:
            token_ids: at least one token.

        Returns:
            Float32 array of shape (vocabulary size,), unnormalized log-probabilities; the caller may write to it.
        """
        ...

    def forward_all(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Like ``forward``, but returns the logits after each of these tokens: shape (tokens, vocabulary size)."""
        ...

    def truncate(self, length: int) -> None:
        """Forgets all tokens from position ``length`` on (0 ≤ length ≤ self.length)."""
        ...

    def fork(self) -> Session:
        """An independent sequence with the same tokens."""
        ...


class LanguageModel(ABC):
    """Anything that writes outputs, in this process or elsewhere."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the user asked for: a built-in name, a path or a hub id."""

    @property
    def has_chat_template(self) -> bool:
        """Whether prompts may be lists of messages."""
        return True

    def knows_role(self, role: str) -> bool:
        """Whether messages may have this role, beside those that every chat has (system, user, assistant, tool ...)."""
        return False

    @abstractmethod
    def _stream_one(
        self,
        prompt: Prompt,
        constraint: Any,
        *,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        truncate: Literal["never", "allow"] = "never",
        seed: int | None = None,
        request: int = 0,
        stop: str | Sequence[str] = (),
        timeout: float | None = None,
        cancelled: Callable[[], bool] | None = None,
        heal: bool = False,
        session: Session | None = None,
    ) -> TextStream[Any]:
        """One output in one pass; the arguments are those of GenerateOptions. What a backend cannot do it refuses with
        a ModelError, it never ignores it."""

    @overload
    def generate(self, prompt: Prompt, constraint: type[T], **options: Unpack[GenerateOptions]) -> Result[T]: ...

    @overload
    def generate(self, prompt: Prompt, constraint: None = ..., **options: Unpack[GenerateOptions]) -> Result[str]: ...

    @overload
    def generate(
        self, prompt: Prompt, constraint: Constraint | Any, **options: Unpack[GenerateOptions]
    ) -> Result[Any]: ...

    def generate(self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerateOptions]) -> Result[Any]:
        """Writes one output that satisfies ``constraint``.

        Args:
            prompt: text, or a list of chat messages.
            constraint: a Constraint, a CompiledConstraint for this model's vocabulary, or a Python type
                (``constraint_for`` says which); None for free text.
            options: see GenerateOptions: ``sampling``, ``max_tokens``, ``truncate``, ``seed``, ``request``, ``stop``,
                ``timeout``, ``cancelled``, ``strategy``, ``n``, ``method``, ``particles``, ``heal``, ``session``.

        Returns:
            The Result. Its ``value`` is parsed: by ``json.loads`` for JSON constraints, into the type for types, else
            text.

        Raises:
            ConstraintError: the constraint cannot be enforced.
            BudgetTooSmall: no output fits into ``max_tokens``.
            ModelError: the prompt cannot be encoded or does not fit.
            SamplingError: no token can be drawn, because logits are NaN for example.
            InvalidValue: the output is valid under the constraint, but the type's own validators refuse it.
            TypeError: an option that does not exist, or a prompt that is neither text nor messages.
        """
        from grammask.decoding import generate
        from grammask.decoding.arguments import check_options

        check_options("generate", options)
        return generate(self, prompt, constraint, **options)

    def stream(self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerateOptions]) -> TextStream[Any]:
        """Like ``generate``, but an iterator over pieces of text; ``.partial`` is the value so far, ``.result`` the
        Result afterwards, ``.cancel()`` ends it at any time."""
        from grammask.decoding import stream
        from grammask.decoding.arguments import check_options

        check_options("stream", options)
        return stream(self, prompt, constraint, **options)

    async def agenerate(
        self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerateOptions]
    ) -> Result[Any]:
        """``generate`` in a thread of its own. Cancelling the task cancels the output before the next forward pass."""
        from grammask.decoding.arguments import check_options

        check_options("agenerate", options)
        return await self.astream(prompt, constraint, **options).result()

    def astream(
        self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerateOptions]
    ) -> AsyncTextStream[Any]:
        """``stream`` for asyncio: ``async for piece in model.astream(...)``."""
        from grammask.decoding.arguments import check_options
        from grammask.decoding.streams import AsyncTextStream

        check_options("astream", options)
        return AsyncTextStream(lambda: self.stream(prompt, constraint, **options))

    def generate_many(
        self,
        prompts: Iterable[Prompt],
        constraint: Any = None,
        *,
        output: str | os.PathLike[str] | None = None,
        batch_size: int = 8,
        progress: bool | Callable[[int, int], None] = False,
        **options: Unpack[GenerateOptions],
    ) -> list[Result[Any]]:
        """Writes one output for each prompt, several at a time.

        Args:
            prompts: the prompts; each gets its place in the list as its ``request``, counted from that in ``options``.
            constraint: as for ``generate``.
            output: a JSON-lines file, to which each result is appended as soon as it is there. If the file has results
                of an earlier run, which was interrupted, those are not made again.
            batch_size: how many outputs are written at once.
            progress: True shows a bar on standard error (needs rich); or a function that is called with the number of
                outputs done and their total.
            options: as for ``generate``; ``cancelled`` and ``timeout`` are for each output, ``session`` is refused.

        Returns:
            The results in the order of the prompts. An output that failed has the finish reason "error", and ``error``
            says why; the others are made all the same. Results read back from the file have no ``tokens``.

        Raises:
            ConstraintError: the constraint cannot be enforced.
            ValueError: the file holds results of other prompts or settings.
        """
        from grammask.decoding.arguments import check_options, check_prompts
        from grammask.decoding.many import generate_many

        check_options("generate_many", options, more=("output", "batch_size", "progress"))
        check_prompts(prompts)
        return generate_many(
            self, prompts, constraint, output=output, batch_size=batch_size, progress=progress, options=dict(options)
        )


class Model(LanguageModel):
    """A language model with a known vocabulary and access to its logits."""

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

    @property
    def prefix_cache(self) -> PrefixCache | None:
        """Keys and values of prompts of earlier calls; None if the model keeps none."""
        return None

    @abstractmethod
    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, with the special tokens that the model expects; at least one.

        Raises:
            ModelError: messages for a model without a chat template, or messages that the template refuses.
        """

    @abstractmethod
    def session(self) -> Session:
        """A new, empty sequence."""

    def _stream_one(self, prompt: Prompt, constraint: Any, **options: Any) -> TextStream[Any]:
        from grammask.decoding.generate import stream_one

        return stream_one(self, prompt, constraint, **options)

    def classify(
        self,
        prompt: Prompt,
        choices: Any,
        *,
        tokenizations: Literal["canonical", "all"] = "canonical",
        ends: bool | None = None,
        tolerance: float = 0.01,
    ) -> Classification[Any]:
        """The probability of each of several outputs.

        Args:
            prompt: text, or a list of chat messages.
            choices: a Choice, an Enum, a Literal type, or the values themselves.
            tokenizations: ``"canonical"`` scores the tokens that the model's tokenizer writes for a choice;
                ``"all"`` sums over every way of spelling it in tokens, the likely ones first.
            ends: the choice is the whole output, so that the probability of ending after it counts. None: for chat
                messages, and where one choice is the beginning of another.
            tolerance: with ``"all"``, stop when the spellings left out could add no more than this share.

        Returns:
            The Classification: the best choice, normalized probabilities, and the sequences' log-probabilities.
        """
        from grammask.decoding.classify import classify

        return classify(self, prompt, choices, tokenizations=tokenizations, ends=ends, tolerance=tolerance)
