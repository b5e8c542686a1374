"""``generate`` and ``stream``: from a prompt to a Result, in one go or piece by piece. One is the other, drained."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from grammask.decoding.arguments import check_prompt
from grammask.decoding.healing import heal_prompt
from grammask.decoding.loop import Decoding
from grammask.decoding.output import Output, resolve_output
from grammask.decoding.result import FinishReason, InvalidValue, Result
from grammask.decoding.strategy import Interruption, resolve_strategy
from grammask.decoding.streams import StreamEvent, TextStream
from grammask.decoding.text import TextAssembler
from grammask.engine.compile import compile

if TYPE_CHECKING:
    from grammask.decoding.strategy import Strategy
    from grammask.decoding.thinking import Thinking, ThinkingSplitter
    from grammask.models import LanguageModel, Model, Prompt, Session
    from grammask.sampling import Sampling

DEFAULT_MAX_TOKENS = 512
"""The length limit when neither the call nor ``Sampling`` sets one."""


def stream(
    model: LanguageModel,
    prompt: Prompt,
    constraint: Any = None,
    *,
    strategy: str | Strategy | None = None,
    n: int | None = None,
    method: Literal["mask", "smc"] = "mask",
    particles: int | None = None,
    **options: Any,
) -> TextStream[Any]:
    """See ``LanguageModel.stream``; ``options`` are those of an output in one pass."""
    check_prompt(model, prompt)
    sampling = options.get("sampling")
    if n is None and sampling is not None and sampling.n > 1:
        n, options = sampling.n, {**options, "sampling": sampling.replace(n=1)}
    plan = resolve_strategy(strategy, n=n, method=method, particles=particles)
    if plan is None:
        return model._stream_one(prompt, constraint, **options)
    return plan.stream(model, prompt, constraint, options)


def generate(model: LanguageModel, prompt: Prompt, constraint: Any = None, **options: Any) -> Result[Any]:
    """See ``LanguageModel.generate``; the options are those of ``stream``."""
    return stream(model, prompt, constraint, **options).result


def stream_one(
    model: Model,
    prompt: Prompt,
    constraint: Any = None,
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
    thinking: Thinking | None = None,
) -> TextStream[Any]:
    """One output in one pass of the decoding loop.

    Args:
        thinking: lets thinking come before the output; the other arguments are those of GenerateOptions.
    """
    from grammask.models.prefix_cache import PromptSession
    from grammask.sampling import Sampler, Sampling

    if truncate not in ("never", "allow"):
        raise ValueError(f"truncate is {truncate!r}: use 'never' or 'allow'")
    sampling = sampling if sampling is not None else Sampling(temperature=0)
    vocabulary = model.vocabulary
    prompt_ids = model.encode(prompt)
    output = resolve_output(constraint, vocabulary)
    if thinking is not None:
        around = compile(thinking.around(output.compiled.constraint, vocabulary), vocabulary)
        output = dataclasses.replace(output, compiled=around)
    taken_back = b""
    if heal and isinstance(prompt, str):
        prompt_ids, taken_back, output = heal_prompt(prompt_ids, output, vocabulary)
    sampler = Sampler(
        sampling,
        vocabulary.size,
        eos_token_ids=vocabulary.eos_token_ids,
        structured=output.structured,
        token_bytes=vocabulary.token_bytes,
    )
    interruption = Interruption(cancelled, timeout)
    decoding = Decoding(
        PromptSession.resumed(session)
        if session is not None
        else PromptSession.cached(model.session, model.prefix_cache, len(prompt_ids)),
        prompt_ids,
        vocabulary,
        output.compiled.matcher(),
        sampler.start(prompt_ids, seed=seed, request=request),
        max_tokens=token_limit(model, prompt_ids, max_tokens, sampling),
        interrupted=interruption.reason,
        may_cut=truncate == "allow",
    )
    stops = [stop] if isinstance(stop, str) else list(stop)
    assembler = TextAssembler([*stops, *sampling.stop], include_stop=sampling.include_stop)
    splitter = None if thinking is None else thinking.splitter(vocabulary)
    run = _Run(model, decoding, output, assembler, taken_back, splitter, min_tokens=sampling.min_tokens)
    return TextStream(run.events(), cancel=interruption.cancel, partial=output.partial)


class _Run:
    """One output from tokens to a Result.

    Args:
        taken_back: bytes at the beginning of the output that belong to the prompt.
        splitter: tells thinking from output; None if all is output.
    """

    def __init__(
        self,
        model: Model,
        decoding: Decoding,
        output: Output,
        assembler: TextAssembler,
        taken_back: bytes,
        splitter: ThinkingSplitter | None,
        *,
        min_tokens: int,
    ) -> None:
        self._model = model
        self._decoding = decoding
        self._output = output
        self._assembler = assembler
        self._taken_back = taken_back
        self._splitter = splitter
        self._min_tokens = min_tokens
        self._thoughts = TextAssembler()

    def events(self) -> Generator[StreamEvent, None, Result[Any]]:
        start = time.perf_counter()
        finish_reason: FinishReason | None = None
        vocabulary = self._output.compiled.vocabulary
        unheard = len(self._taken_back)
        try:
            for count, token in enumerate(self._decoding, start=1):
                data = vocabulary.token_bytes(token.token_id) or b""
                unheard, data = max(0, unheard - len(data)), data[unheard:]
                if self._splitter is not None:
                    thought, data = self._splitter.split(token.token_id, data)
                    words = self._thoughts.feed(thought)
                    if words:
                        yield StreamEvent(words, "reasoning")
                piece = self._assembler.feed(data, may_stop=count > self._min_tokens)
                if piece:
                    yield StreamEvent(piece)
                if self._assembler.stopped:
                    finish_reason = "stop_sequence"
                    break
        finally:
            self._decoding.close()
        rest = self._assembler.finish()
        if rest:
            yield StreamEvent(rest)
        finish_reason = finish_reason or self._decoding.finish_reason
        assert finish_reason is not None
        return self._result(finish_reason, time.perf_counter() - start)

    def _result(self, finish_reason: FinishReason, seconds: float) -> Result[Any]:
        from grammask.models.fingerprint import fingerprint_of_results

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
            system_fingerprint=fingerprint_of_results(self._model),
            seconds=seconds,
            prompt_seconds=self._decoding.prompt_seconds,
            limited=self._decoding.is_limited,
            pieces=tuple(self._decoding.pieces),
            reasoning=None if self._splitter is None else self._thoughts.text,
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
            if self._splitter is not None:
                return False
            matcher = self._output.compiled.matcher()
            return matcher.accept_bytes(self._taken_back + self._assembler.text.encode()) and matcher.is_complete
        return self._decoding.is_complete


def token_limit(model: Model, prompt_ids: Sequence[int], max_tokens: int | None, sampling: Sampling) -> int:
    """How many tokens an output may have.

    Raises:
        ContextTooLong: not one fits behind the prompt.
    """
    from grammask.models.errors import ContextTooLong

    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}: use at least 1")
    if max_tokens is None:
        max_tokens = sampling.max_tokens
    limit = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    if model.context_length is None:
        return limit
    room = model.context_length - len(prompt_ids)
    if room < 1:
        raise ContextTooLong(
            f"the prompt has {len(prompt_ids)} tokens; {model.name} holds {model.context_length}, output included",
            hint="shorten the prompt, or use a model with a longer context",
        )
    return min(limit, room)
