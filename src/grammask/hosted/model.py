"""``HostedModel``: a model behind an API, with the same ``generate`` and ``stream`` as one in this process.

What a provider enforces is less than what a constraint says, and some enforce nothing, so every answer is judged by
grammask's own matcher and by the type. One that fails is sent back with the specific errors, a bounded number of times.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from grammask.decoding import FinishReason, Result, Usage
from grammask.decoding.partial import partial_reader
from grammask.decoding.streams import StreamEvent, TextStream
from grammask.decoding.text import TextAssembler
from grammask.hosted.answer import Answer, Form, Judgement
from grammask.hosted.errors import HostedError, HostedWarning, InvalidOutput
from grammask.hosted.messages import as_messages, with_instructions
from grammask.hosted.protocol import FREE, Client, Format, Reply, Request
from grammask.hosted.subset import Subset, subset_for
from grammask.models.base import LanguageModel
from grammask.models.errors import ModelError
from grammask.providers import Translation, find, translate
from grammask.validation.history import Attempt, total_usage
from grammask.validation.problems import Problem, listing

if TYPE_CHECKING:
    from grammask.models.base import Prompt
    from grammask.sampling import Sampling

T = TypeVar("T")


@dataclass(frozen=True)
class HostedResult(Result[T]):
    """A Result from a provider.

    Attributes:
        notes: what the provider was not asked to enforce, and settings that it takes otherwise.
        format: what it was asked to enforce.
        reply: the client library's object of the last answer, None when it was streamed.
    """

    notes: tuple[str, ...] = field(default=(), repr=False)
    format: Format = field(default=FREE, repr=False)
    reply: Any = field(default=None, repr=False, compare=False)


class HostedModel(LanguageModel):
    """A model behind a provider's API.

    Args:
        client: how to reach it.
        attempts: how many answers to ask for before giving up; each sees what was wrong with the one before.
        subset: what schemas the provider takes; None goes by its name.
        strict_settings: raise where ``Sampling`` cannot be said to the provider exactly, instead of warning.
        extra: fields to add to every request, for this provider alone.
        max_tokens: the limit where the provider requires one and neither the call nor ``Sampling`` has one.
    """

    def __init__(
        self,
        client: Client,
        *,
        attempts: int = 3,
        subset: Subset | None = None,
        strict_settings: bool = False,
        extra: Mapping[str, Any] | None = None,
        max_tokens: int = 4096,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}: use at least 1")
        self.client = client
        self.attempts = attempts
        self._subset = subset or subset_for(client.provider)
        self._strict_settings = strict_settings
        self._extra = dict(extra or {})
        self._max_tokens = max_tokens
        self._refused: set[str] = set()
        """Kinds of formats that this model turned out not to take."""
        self._live = True
        """Whether pieces are wanted before an answer has been judged."""

    @property
    def name(self) -> str:
        return f"{self.client.provider}:{self.client.model}"

    def __repr__(self) -> str:
        return f"HostedModel({self.name!r})"

    def generate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> Result[Any]:
        """See ``LanguageModel.generate``. An answer that does not satisfy the constraint is sent back with its errors.

        Without ``sampling``, the provider's own defaults hold. ``heal`` and ``session`` are for models in this process.
        The text of a JSON answer may have its members in any order.

        Raises:
            HostedError: the provider refused, failed, or could not be reached.
            InvalidOutput: no answer satisfied the constraint.
        """
        unseen = copy.copy(self)
        unseen._live = False
        return super(HostedModel, unseen).generate(prompt, constraint, **options)

    async def agenerate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> Result[Any]:
        import asyncio

        from grammask.decoding.arguments import check_options

        check_options("agenerate", options)
        return await asyncio.to_thread(self.generate, prompt, constraint, **options)

    def _stream_one(
        self,
        prompt: Prompt,
        constraint: Any,
        *,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        truncate: str = "never",
        seed: int | None = None,
        request: int = 0,
        stop: str | Sequence[str] = (),
        timeout: float | None = None,
        cancelled: Callable[[], bool] | None = None,
        heal: bool = False,
        session: Any = None,
    ) -> TextStream[Any]:
        """One output. Pieces come as the provider sends them where the answer can be shown as it is; then there is no
        second attempt. Otherwise the whole text comes at once when it has been accepted."""
        if heal or session is not None:
            raise ModelError(f"heal and session are for models in this process, and {self.name} is not")
        settings, notes = self._settings(sampling, max_tokens, seed, stop)
        run = _Run(
            self,
            Answer(constraint),
            as_messages(prompt),
            settings,
            notes,
            [stop] if isinstance(stop, str) else list(stop),
            sampling,
            seed,
            None if timeout is None else time.monotonic() + timeout,
            cancelled,
        )
        return TextStream(run.events(), cancel=run.cancel, partial=partial_reader(constraint))

    def ask(
        self, messages: Prompt, *, sampling: Sampling | None = None, max_tokens: int | None = None, **fields: Any
    ) -> Reply:
        """One request, and the provider's answer as it is: for tool calls.

        Args:
            fields: of ``Request``: tools, tool_choice, parallel.
        """
        settings, _ = self._settings(sampling, max_tokens, None, ())
        request = Request(as_messages(messages), settings, max_tokens=self._max_tokens, extra=self._extra, **fields)
        return self.client.complete(request)

    def _settings(
        self, sampling: Sampling | None, max_tokens: int | None, seed: int | None, stop: str | Sequence[str]
    ) -> tuple[Mapping[str, Any], list[str]]:
        """The request fields of the settings, and what they do not say. Without ``sampling``, only what the call itself
        names is sent, and the rest is the provider's choice."""
        from grammask.sampling import Sampling

        stops = [stop] if isinstance(stop, str) else list(stop)
        given = sampling
        sampling = sampling or Sampling()
        changes: dict[str, Any] = {}
        if max_tokens is not None:
            changes["max_tokens"] = max_tokens
        if seed is not None:
            changes["seed"] = seed
        if stops:
            changes["stop"] = (*sampling.stop, *stops)
        translation = translate(
            sampling.replace(n=1, **changes), self.client.provider, strict=self._strict_settings and given is not None
        )
        issues = [issue for issue in translation.issues if issue.kind != "note"]
        issues = [issue for issue in issues if issue.setting != "stop"]  # stop texts are also looked for here
        if given is None:
            issues = [issue for issue in issues if issue.setting in changes]
            return self._only(translation, changes), [str(issue) for issue in issues]
        for issue in issues:
            warnings.warn(f"{self.name}: {issue}", HostedWarning, stacklevel=5)
        return translation.request, [str(issue) for issue in issues]

    def _only(self, translation: Translation, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a translation that say one of the changes."""
        _, api = find(self.client.provider)
        kept: dict[str, Any] = {}
        for name in changes:
            path = (api.parameters[name].field or name).split(".")
            found: Any = translation.request
            for level in path:
                found = found.get(level) if isinstance(found, Mapping) else None
            if found is None:
                continue
            place = kept
            for level in path[:-1]:
                place = place.setdefault(level, {})
            place[path[-1]] = found
        return kept


@dataclass
class _Run:
    """One call: attempts until an answer is accepted."""

    model: HostedModel
    answer: Answer
    messages: list[dict[str, Any]]
    settings: Mapping[str, Any]
    notes: list[str]
    stops: list[str]
    sampling: Sampling | None
    seed: int | None
    deadline: float | None
    cancelled: Callable[[], bool] | None
    _flag: bool = False
    _attempts: list[Attempt] = field(default_factory=list)

    def cancel(self) -> None:
        self._flag = True

    def events(self) -> Generator[StreamEvent, None, Result[Any]]:
        start = time.perf_counter()
        messages = self.messages
        while True:
            form, reply, ended, live = yield from self._ask(messages)
            judged = self._judged(reply, form, ended)
            usage = Usage(reply.prompt_tokens, reply.completion_tokens, 0, 1)
            self._attempts.append(Attempt(judged.text, judged.problems, usage, judged.json, (), judged.repaired))
            if ended in ("length", "cancelled", "timeout") and not self.answer.is_free:
                judged = replace(judged, value=None)
            elif judged.problems:
                if live or len(self._attempts) >= self.model.attempts:
                    raise InvalidOutput(self._attempts)
                messages = [*messages, *_asked_again(reply.text, judged.problems)]
                continue
            complete = self.answer.is_free or ended in ("stop", "stop_sequence")
            if not live and judged.text:
                yield StreamEvent(judged.text)
            notes = [*self.notes, *form.notes]
            return HostedResult(
                value=judged.value if complete else None,
                text=judged.text,
                complete=complete,
                finish_reason=ended,
                usage=total_usage(self._attempts),
                seed=self.seed,
                seconds=time.perf_counter() - start,
                history=tuple(self._attempts),
                notes=tuple(notes),
                format=form.format,
                reply=reply.raw,
            )

    def _judged(self, reply: Reply, form: Form, ended: FinishReason) -> Judgement:
        """An answer that was cut is not judged: what is missing cannot be guessed."""
        if ended in ("length", "cancelled", "timeout"):
            return Judgement(reply.text, value=reply.text)
        if reply.refusal:
            return Judgement(reply.text, problems=(Problem(f"the model declined: {reply.refusal}"),))
        return self.answer.judge(reply.text, form)

    def _ask(
        self, messages: list[dict[str, Any]]
    ) -> Generator[StreamEvent, None, tuple[Form, Reply, FinishReason, bool]]:
        """Asks in the strongest form that the provider takes."""
        _, api = find(self.model.client.provider)
        refusal: HostedError | None = None
        for form in self.answer.forms(api, self.model.client.provider, self.model._subset):
            if form.format.kind in self.model._refused:
                continue
            request = Request(
                with_instructions(messages, form.instructions),
                self.settings,
                form.format,
                self.model._max_tokens,
                extra=self.model._extra,
            )
            live = self.model._live and form.exact
            try:
                reply, ended = yield from self._send(request, live)
                return form, reply, ended, live
            except HostedError as error:
                if not error.is_refusal or form.format.kind == "text":
                    raise
                refusal = error
                self.notes.append(f"{form.format.kind} was refused: {error.message}")
                self.model._refused.add(form.format.kind)
        assert refusal is not None
        raise refusal

    def _send(self, request: Request, live: bool) -> Generator[StreamEvent, None, tuple[Reply, FinishReason]]:
        stops = [*(self.sampling.stop if self.sampling is not None else ()), *self.stops]
        include = self.sampling is not None and self.sampling.include_stop
        if not live and self.deadline is None and self.cancelled is None:
            reply = self.model.client.complete(request)
            assembler = TextAssembler(stops, include_stop=include)
            assembler.feed(reply.text.encode())
            assembler.finish()
            ended: FinishReason = "stop_sequence" if assembler.stopped else reply.finish_reason
            return replace(reply, text=assembler.text), ended
        assembler = TextAssembler(stops, include_stop=include)
        pieces = self.model.client.stream(request)
        last = Reply("", "stop")
        early: FinishReason | None = None
        try:
            for piece in pieces:
                if isinstance(piece, Reply):
                    last = piece
                    break
                shown = assembler.feed(piece.encode())
                if shown and live:
                    yield StreamEvent(shown)
                early = self._reason_to_end(assembler)
                if early is not None:
                    break
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        rest = assembler.finish()
        if rest and live:
            yield StreamEvent(rest)
        return replace(last, text=assembler.text), early or last.finish_reason

    def _reason_to_end(self, assembler: TextAssembler) -> FinishReason | None:
        if assembler.stopped:
            return "stop_sequence"
        if self._flag or (self.cancelled is not None and self.cancelled()):
            return "cancelled"
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "timeout"
        return None


def _asked_again(text: str, problems: Sequence[Problem]) -> list[dict[str, str]]:
    """What is said to a model whose answer was wrong."""
    return [
        {"role": "assistant", "content": text or "(no answer)"},
        {
            "role": "user",
            "content": f"That answer is not valid:\n{listing(problems)}\n"
            "Answer again, complete and corrected, with nothing else.",
        },
    ]
