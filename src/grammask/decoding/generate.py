"""``generate`` and ``stream``: from a prompt to a Result, in one go or piece by piece. One is the other, drained."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from grammask.decoding.loop import Decoding
from grammask.decoding.output import Output, resolve_output
from grammask.decoding.result import FinishReason, InvalidValue, Result
from grammask.decoding.text import TextAssembler

if TYPE_CHECKING:
    from grammask.models import Model, Prompt
    from grammask.sampling import Sampling

T = TypeVar("T")

DEFAULT_MAX_TOKENS = 512
"""The length limit when neither the call nor ``Sampling`` sets one."""


class TextStream(Generic[T]):
    """An output being written: an iterator over pieces of text.

    The pieces are whole characters, and put together they are ``result.text``. The first forward pass happens with the
    first ``next``. ``cancel`` may be called from any thread.
    """

    def __init__(
        self,
        decoding: Decoding,
        output: Output,
        assembler: TextAssembler,
        cancelled: threading.Event,
        *,
        min_tokens: int,
    ) -> None:
        self._decoding = decoding
        self._output = output
        self._assembler = assembler
        self._cancelled = cancelled
        self._min_tokens = min_tokens
        self._pieces = self._run()
        self._result: Result[T] | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def cancel(self) -> None:
        """Ends the output before the next forward pass; ``result.finish_reason`` is then "cancelled"."""
        self._cancelled.set()

    @property
    def result(self) -> Result[T]:
        """The whole output; what has not been iterated over is generated first.

        Raises:
            RuntimeError: generation had failed with an error.
        """
        for _ in self._pieces:
            pass
        if self._result is None:
            raise RuntimeError("there is no result: generation failed with an error")
        return self._result

    def _run(self) -> Iterator[str]:
        start = time.perf_counter()
        finish_reason: FinishReason | None = None
        vocabulary = self._output.compiled.vocabulary
        for count, token in enumerate(self._decoding, start=1):
            data = vocabulary.token_bytes(token.token_id) or b""
            piece = self._assembler.feed(data, may_stop=count > self._min_tokens)
            if piece:
                yield piece
            if self._assembler.stopped:
                finish_reason = "stop_sequence"
                break
        rest = self._assembler.finish()
        if rest:
            yield rest
        finish_reason = finish_reason or self._decoding.finish_reason
        assert finish_reason is not None
        self._result = self._make_result(finish_reason, time.perf_counter() - start)

    def _make_result(self, finish_reason: FinishReason, seconds: float) -> Result[T]:
        text = self._assembler.text
        complete = self._is_valid(finish_reason)
        return Result(
            value=self._parse(text) if complete else None,
            text=text,
            complete=complete,
            finish_reason=finish_reason,
            usage=self._decoding.usage,
            tokens=tuple(self._decoding.tokens),
            seed=self._decoding.seed,
            seconds=seconds,
            prompt_seconds=self._decoding.prompt_seconds,
        )

    def _parse(self, text: str) -> Any:
        try:
            return self._output.parse(text)
        except ValueError as error:
            raise InvalidValue(text, error) from error

    def _is_valid(self, finish_reason: FinishReason) -> bool:
        """Whether the text is a whole output. A stop text was taken off after the matcher had seen it, so it is asked
        anew."""
        if finish_reason == "stop_sequence":
            matcher = self._output.compiled.matcher()
            return matcher.accept_bytes(self._assembler.text.encode()) and matcher.is_complete
        return self._decoding.is_complete


def stream(
    model: Model,
    prompt: Prompt,
    constraint: Any = None,
    *,
    sampling: Sampling | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    request: int = 0,
    stop: str | Sequence[str] = (),
    cancelled: Callable[[], bool] | None = None,
) -> TextStream[Any]:
    """See ``Model.stream``."""
    from grammask.models.errors import ContextTooLong
    from grammask.sampling import Sampler, Sampling

    sampling = sampling if sampling is not None else Sampling(temperature=0)
    if sampling.n != 1:
        raise ValueError(f"one output is generated at a time, but sampling.n is {sampling.n}: use n=1")
    vocabulary = model.vocabulary
    output = resolve_output(constraint, vocabulary)
    prompt_ids = model.encode(prompt)
    limit = _limit(max_tokens, sampling)
    if model.context_length is not None:
        room = model.context_length - len(prompt_ids)
        if room < 1:
            raise ContextTooLong(
                f"the prompt has {len(prompt_ids)} tokens; {model.name} holds {model.context_length}, output included",
                hint="shorten the prompt, or use a model with a longer context",
            )
        limit = min(limit, room)
    sampler = Sampler(
        sampling,
        vocabulary.size,
        eos_token_ids=vocabulary.eos_token_ids,
        structured=output.structured,
        token_bytes=vocabulary.token_bytes,
    )
    flag = threading.Event()
    decoding = Decoding(
        model.session(),
        prompt_ids,
        vocabulary,
        output.compiled.matcher(),
        sampler.start(prompt_ids, seed=seed, request=request),
        max_tokens=limit,
        cancelled=lambda: flag.is_set() or (cancelled is not None and cancelled()),
    )
    stops = [stop] if isinstance(stop, str) else list(stop)
    assembler = TextAssembler([*stops, *sampling.stop], include_stop=sampling.include_stop)
    return TextStream(decoding, output, assembler, flag, min_tokens=sampling.min_tokens)


def generate(model: Model, prompt: Prompt, constraint: Any = None, **options: Any) -> Result[Any]:
    """See ``Model.generate``; the options are those of ``stream``."""
    return stream(model, prompt, constraint, **options).result


def _limit(max_tokens: int | None, sampling: Sampling) -> int:
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}: use at least 1")
    if max_tokens is None:
        max_tokens = sampling.max_tokens
    return DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
