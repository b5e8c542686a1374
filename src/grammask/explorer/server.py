"""The explorer over HTTP: a page, and one JSON endpoint per question.

Long work answers as lines of JSON, one per step; it stops when the page goes away or asks it to. The server is meant
for the person at this machine: it answers to local host names only, so that no other page can reach it by a name of its
own (DNS rebinding), and takes JSON bodies only, which pages of other origins cannot send unasked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammask.explorer import automaton, determinism, doctor, knobs, step, tokenization
from grammask.explorer.constraints import KINDS, ConstraintSpec
from grammask.explorer.examples import EXAMPLES
from grammask.explorer.fields import fields, whole
from grammask.explorer.problems import Problem
from grammask.explorer.workbench import Workbench

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from grammask.models import Model

MAX_BODY = 4_000_000
MAX_STEPS = 512

Stream = Callable[[Any, threading.Event], Iterator[dict[str, Any]]]


@dataclass
class Explorer:
    """What all requests share: the model, loaded by the first request that needs it.

    Attributes:
        model_name: what to call the model before it is loaded.
        load: loads it.
        tokenizer_files: name to file, for the tokenization view.
    """

    model_name: str
    load: Callable[[], Model]
    tokenizer_files: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._bench: Workbench | None = None
        self._tokenizers: tokenization.Tokenizers | None = None
        self._failure: Problem | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the model is there."""
        return self._bench is not None

    def bench(self) -> Workbench:
        """The model, loaded if it is not.

        Raises:
            Problem: it cannot be loaded.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._bench is None:
                try:
                    self._bench = Workbench(self.load())
                except (ValueError, RuntimeError, OSError) as error:
                    self._failure = Problem.of_error(error, "model")
                    raise self._failure from error
            return self._bench

    def tokenizers(self) -> tokenization.Tokenizers:
        """The model's vocabulary and the files."""
        bench = self.bench()
        with self._lock:
            if self._tokenizers is None:
                self._tokenizers = tokenization.Tokenizers(bench.vocabulary, self.model_name, self.tokenizer_files)
            return self._tokenizers

    def state(self, _: Any = None) -> dict[str, Any]:
        """What the page needs to begin with."""
        from grammask import __version__
        from grammask.constraints.tools import FORMATS

        return {
            "version": __version__,
            "model": self.model_name,
            "loaded": self.is_loaded,
            "tokenizers": [self.model_name, *(name for name in self.tokenizer_files if name != self.model_name)],
            "kinds": KINDS,
            "tool_formats": list(FORMATS),
            "examples": EXAMPLES,
            "knobs": knobs.choices(),
            "experiments": determinism.offered(),
        }

    # -- questions, each from a JSON value to a JSON value

    def ready(self, _: Any) -> dict[str, Any]:
        """Loads the model."""
        bench = self.bench()
        return {"model": bench.model.name, "vocabulary": bench.vocabulary.size, "chat": bench.model.has_chat_template}

    def check(self, request: Any) -> dict[str, Any]:
        """Whether a constraint compiles."""
        from grammask.explorer.constraints import byte_vocabulary

        compiled = ConstraintSpec.of(fields(request).get("constraint")).compile(byte_vocabulary())
        matcher = compiled.matcher()
        return {"ok": True, "complete": matcher.is_complete}

    def inspect(self, request: Any) -> dict[str, Any]:
        """One position of an output."""
        return step.inspect(self.bench(), step.StepRequest.of(request))

    def knobs(self, request: Any) -> dict[str, Any]:
        """One row of logits under settings."""
        return knobs.knobs(self.bench, request)

    def tokenization(self, request: Any) -> dict[str, Any]:
        """A text under several tokenizers."""
        return tokenization.tokenizations(self.tokenizers(), request)

    # -- long work

    def run(self, request: Any, cancelled: threading.Event) -> Iterator[dict[str, Any]]:
        """An output, token by token."""
        wanted = step.StepRequest.of(request)
        steps = whole(fields(request), "steps", 1, 0, MAX_STEPS)
        known = whole(fields(request), "known", 0, 0, len(wanted.path))
        return step.run(self.bench(), wanted, steps, cancelled, known=known)

    def measure(self, request: Any, cancelled: threading.Event) -> Iterator[dict[str, Any]]:
        """An experiment of the lab."""
        return determinism.measure(self.bench().model, request, cancelled)


def create_app(
    explorer: Explorer, *, allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
) -> Starlette:
    """The application (ASGI).

    Args:
        explorer: what it is about.
        allowed_hosts: names under which it answers, without port.
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import FileResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    static = Path(str(resources.files("grammask.explorer").joinpath("static")))

    async def page(_: Request) -> Response:
        return FileResponse(static / "index.html", headers=_HEADERS)

    questions: dict[str, Callable[[Any], dict[str, Any]]] = {
        "state": explorer.state,
        "ready": explorer.ready,
        "check": explorer.check,
        "inspect": explorer.inspect,
        "knobs": explorer.knobs,
        "automaton": automaton.automaton,
        "tokenization": explorer.tokenization,
        "doctor": doctor.examine,
        "judge": doctor.judge,
    }
    streams: dict[str, Stream] = {"run": explorer.run, "measure": explorer.measure}
    return Starlette(
        routes=[
            Route("/", page),
            *(Route(f"/api/{name}", _answering(answer), methods=["POST"]) for name, answer in questions.items()),
            *(Route(f"/api/{name}", _streaming(work), methods=["POST"]) for name, work in streams.items()),
            Mount("/static", StaticFiles(directory=static)),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts), www_redirect=False)],
    )


_HEADERS = {
    # Everything comes from this server; pictures for export are made in the page.
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def _answering(answer: Callable[[Any], dict[str, Any]]) -> Callable[[Request], Any]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        try:
            value = await _body(request)
            return _json(await run_in_threadpool(answer, value))
        except Problem as problem:
            return _json({"problem": problem.as_json()}, 422)

    return endpoint


def _streaming(work: Stream) -> Callable[[Request], Any]:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import StreamingResponse

    async def lines(value: Any) -> AsyncIterator[bytes]:
        cancelled = threading.Event()
        try:
            items = await run_in_threadpool(work, value, cancelled)
            while (item := await run_in_threadpool(next, items, None)) is not None:
                yield _line(item)
        except Problem as problem:
            yield _line({"problem": problem.as_json()})
        finally:
            cancelled.set()

    async def endpoint(request: Request) -> Response:
        try:
            value = await _body(request)
        except Problem as problem:
            return _json({"problem": problem.as_json()}, 422)
        return StreamingResponse(lines(value), media_type="application/x-ndjson", headers={"cache-control": "no-store"})

    return endpoint


async def _body(request: Request) -> Any:
    """The JSON body of a request; nothing is an empty object.

    Raises:
        Problem: it is too large, of another type, or not JSON.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Problem("request", "malformed request", "the body must be JSON (content-type: application/json)")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Problem("request", "too large", f"the request has more than {MAX_BODY:,} bytes")
    try:
        return json.loads(bytes(body) or b"{}")
    except (ValueError, RecursionError) as error:
        raise Problem("request", "malformed request", "the body is not JSON") from error


def _json(value: dict[str, Any], status: int = 200) -> Response:
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    return Response(_line(value), status, headers=headers, media_type="application/json")


def _line(value: dict[str, Any]) -> bytes:
    # Lone surrogates cannot be encoded, so everything beyond ASCII is escaped.
    return json.dumps(value, allow_nan=False).encode() + b"\n"
