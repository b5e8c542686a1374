"""What all endpoints work with: one model, its scheduler, and the way from a request to running outputs."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from grammask.decoding.budget import BudgetTooSmall
from grammask.engine.compile import Limits
from grammask.engine.vocabulary import Vocabulary
from grammask.models import Model, system_fingerprint
from grammask.models.batch import SequenceBatch, sequence_batch
from grammask.sampling import Sampling, SamplingError
from grammask.server.compiling import CompileCache
from grammask.server.errors import ApiError, ConstraintTooSlow, invalid, overloaded, unavailable
from grammask.server.metrics import Metrics
from grammask.server.prompting import Prompter
from grammask.server.scheduler import Ended, Event, Failed, Job, Piece, QueueFull, Scheduler
from grammask.server.settings import ServerSettings
from grammask.server.wanted import Wanted


@dataclass(frozen=True)
class Plan:
    """A request, checked and ready to run.

    Attributes:
        prompt_ids: the prompt.
        wanted: what each output must be.
        seed: of the request, or drawn.
        marks: names of special tokens that are part of the text, by id.
        client: for fair turns.
    """

    prompt_ids: Sequence[int]
    wanted: Wanted
    sampling: Sampling
    seed: int
    n: int
    max_tokens: int
    client: str
    marks: dict[int, str]


class Generation:
    """The outputs of one request, as they are written.

    Attributes:
        plan: what was asked for.
        started: on the clock of ``time.perf_counter``.
        first_token: likewise; None while there is none.
        completion_tokens, forced_tokens: of the outputs that have ended.
        reasons: why outputs ended, by index.
    """

    def __init__(self, plan: Plan, job: Job, service: Service) -> None:
        self.plan = plan
        self.started = time.perf_counter()
        self.first_token: float | None = None
        self.completion_tokens = 0
        self.forced_tokens = 0
        self.reasons: dict[int, str] = {}
        self._job = job
        self._service = service
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    def push(self, event: Event) -> None:
        """Called by the service, in the event loop."""
        self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[Piece | Ended]:
        """What happens, until all outputs have ended. Leaving early ends them, too.

        Raises:
            ApiError: an output cannot go on.
        """
        try:
            while len(self.reasons) < self.plan.n:
                event = await self._events.get()
                if isinstance(event, Failed):
                    if isinstance(event.error, ConstraintTooSlow):
                        self._service.cache.refuse(self.plan.wanted, event.error)
                    raise self._service.failure(event.error)
                if self.first_token is None:
                    self.first_token = time.perf_counter()
                    self._service.metrics.first_token_seconds.observe(self.first_token - self.started)
                if isinstance(event, Ended):
                    self.reasons[event.index] = event.reason
                    self.completion_tokens += len(event.token_ids)
                    self.forced_tokens += event.forced
                    self._service.metrics.finished.labels(event.reason, self.plan.wanted.kind).inc()
                yield event
        finally:
            self.close()

    def close(self) -> None:
        """Ends what still runs."""
        if len(self.reasons) < self.plan.n:
            self._service.scheduler.cancel(self._job)
        self._service.forget(self._job)


class Service:
    """A model that is being served.

    Args:
        model: the model.
        settings: of the server.
        batch: what runs the model; made from it by default.
    """

    def __init__(self, model: Model, settings: ServerSettings, *, batch: SequenceBatch | None = None) -> None:
        self.settings = settings
        self.model = model
        self.name = settings.served_name or model.name
        self.created = int(time.time())
        self.metrics = Metrics()
        self.prompter = Prompter(model, settings.tool_format)
        self.fingerprint = str(system_fingerprint(model))
        self.vocabulary.native.cache_budget = settings.cache_bytes
        self._batch = batch
        self._generations: dict[Job, Generation] = {}

    @property
    def vocabulary(self) -> Vocabulary:
        """Of the model."""
        return self.model.vocabulary

    def start(self) -> None:
        """Starts the scheduler; to be called in the event loop.

        Raises:
            RuntimeError: the model cannot be run.
        """
        loop = asyncio.get_running_loop()

        def deliver(events: list[tuple[Job, Event]]) -> None:
            loop.call_soon_threadsafe(self._distribute, events)

        settings = self.settings
        self.cache = CompileCache(
            self.vocabulary,
            Limits(
                expressions=settings.compile_expressions,
                seconds=settings.compile_seconds,
                # A mask of several outputs at once that takes too long is tried again for each of them.
                mask_seconds=settings.mask_seconds / 2,
            ),
            max_entries=settings.compile_cache_entries,
            max_bytes=settings.max_schema_bytes,
            metrics=self.metrics,
        )
        self.scheduler = Scheduler(
            lambda: self._batch or sequence_batch(self.model),
            self.vocabulary,
            deliver,
            self.metrics,
            max_sequences=settings.max_sequences,
            max_waiting=settings.max_waiting,
            chunk=settings.prefill_chunk,
            request_timeout=settings.request_timeout,
            mask_seconds=settings.mask_seconds,
        )
        self.scheduler.start()

    def stop(self) -> None:
        """Ends the threads."""
        self.scheduler.stop()
        self.cache.close()

    def check_model(self, name: str) -> None:
        """Refuses another model than the one that is served.

        Raises:
            ApiError: 404.
        """
        if name != self.name:
            raise ApiError(
                404,
                f"The model {name!r} does not exist. This server has {self.name!r}",
                param="model",
                code="model_not_found",
            )

    def check_tokens(self, ids: Sequence[int], param: str) -> list[int]:
        """Token ids from a request.

        Raises:
            ApiError: one is not in the vocabulary.
        """
        wrong = next((token for token in ids if not 0 <= token < self.vocabulary.size), None)
        if wrong is not None:
            raise invalid(f"{wrong} is no token: the model has {self.vocabulary.size}", param)
        return list(ids)

    def room(self, prompt_ids: Sequence[int], asked: int | None, param: str) -> int:
        """How many tokens an output may have.

        Args:
            asked: by the request.
            param: the name of the parameter that asks.

        Raises:
            ApiError: the prompt is too long, or too much is asked for.
        """
        settings, length = self.settings, len(prompt_ids)
        if settings.max_prompt_tokens is not None and length > settings.max_prompt_tokens:
            raise invalid(
                f"the prompt has {length} tokens, more than the {settings.max_prompt_tokens} that the server takes",
                "messages" if param != "prompt" else param,
                "context_length_exceeded",
            )
        if asked is not None and asked > settings.max_output_tokens:
            raise invalid(f"{param} is {asked}: at most {settings.max_output_tokens}", param)
        wanted = min(settings.default_max_tokens, settings.max_output_tokens) if asked is None else asked
        context = self.model.context_length
        if context is None:
            return wanted
        left = context - length
        if left < 1 or (asked is not None and asked > left):
            needed = f"{length} in the prompt" + (f" and {asked} in the answer" if asked else "")
            raise invalid(
                f"This model's maximum context length is {context} tokens; the request needs {needed}",
                "messages" if asked is None else param,
                "context_length_exceeded",
            )
        return min(wanted, left)

    async def generate(self, plan: Plan) -> Generation:
        """Compiles the constraint and starts the outputs.

        Raises:
            ApiError: the constraint cannot be enforced, or there is no room.
        """
        if not self.scheduler.is_alive:
            raise unavailable()
        compiled = await self.cache.get(plan.wanted)
        self.metrics.compile_cache_entries.set(len(self.cache))
        job = Job(
            plan.prompt_ids,
            compiled,
            plan.sampling,
            plan.seed,
            plan.n,
            plan.max_tokens,
            plan.client,
            time.monotonic() + self.settings.request_timeout,
            never_cut=plan.wanted.structured and self.settings.never_cut,
            marks=plan.marks,
        )
        generation = Generation(plan, job, self)
        self._generations[job] = generation
        try:
            await asyncio.to_thread(self.scheduler.submit, job)
        except BaseException as error:
            job.cancelled = True  # the client may have hung up while the job was on its way
            self.forget(job)
            if isinstance(error, Exception):
                raise self.failure(error) from error
            raise
        self.metrics.prompt_tokens.inc(len(plan.prompt_ids))
        return generation

    def failure(self, error: Exception) -> ApiError:
        """As an answer."""
        if isinstance(error, ApiError):
            return error
        if isinstance(error, QueueFull):
            return overloaded("the server is busy: try again later", self.scheduler.retry_after())
        if isinstance(error, BudgetTooSmall):
            return invalid(f"max_tokens is too small: {error.args[0].split(': raise')[0]}", "max_tokens")
        if isinstance(error, ValueError) and not isinstance(error, SamplingError):
            return invalid(str(error))
        return ApiError(500, f"the output failed: {error}", type="server_error", code="internal_error")

    def forget(self, job: Job) -> None:
        """Nobody wants a job's events any more."""
        self._generations.pop(job, None)

    @property
    def open_generations(self) -> int:
        """Requests that are being answered."""
        return len(self._generations)

    def _distribute(self, events: list[tuple[Job, Event]]) -> None:
        for job, event in events:
            generation = self._generations.get(job)
            if generation is not None:
                generation.push(event)


def new_seed() -> int:
    """For requests that set none."""
    return secrets.randbits(64)


def new_id(prefix: str) -> str:
    """An identifier such as chatcmpl-…"""
    return f"{prefix}{secrets.token_hex(14)}"
