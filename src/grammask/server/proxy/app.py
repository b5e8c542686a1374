"""The proxy as a web application."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
from fastapi import APIRouter, FastAPI, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from grammask.engine.compile import Limits
from grammask.engine.errors import ConstraintError
from grammask.server.app import build_app
from grammask.server.compiling import CompileCache
from grammask.server.endpoints.context import record_of
from grammask.server.errors import invalid
from grammask.server.metrics import Metrics
from grammask.server.protocol.constraints import ExtraConstraints
from grammask.server.proxy.asking import Answer, Task, ask
from grammask.server.proxy.checking import byte_vocabulary
from grammask.server.proxy.request import ProxyRequest
from grammask.server.proxy.upstream import Upstream
from grammask.server.service import new_id
from grammask.server.settings import ProxySettings
from grammask.server.sse import DONE, EventStream, data_event, or_gone
from grammask.server.wanted import constraint_error, wanted_format, wanted_tools

router = APIRouter()

LENIENT = {"property_order": "any", "whitespace": "flexible", "escapes": "all"}
"""A text that was written without a constraint may order members and spell strings as it likes."""

_OWN = (*ExtraConstraints.model_fields, "response_format", "tools", "tool_choice", "parallel_tool_calls")
_OWN_STREAM = ("stream", "stream_options", "messages")


class Proxy:
    """What the handlers work with."""

    def __init__(self, settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.transport = transport

    def start(self) -> None:
        """Opens the way to the upstream; to be called in the event loop."""
        settings = self.settings
        self.upstream = Upstream(settings, self.transport)
        self.cache = CompileCache(
            byte_vocabulary(),
            Limits(expressions=settings.compile_expressions, seconds=settings.compile_seconds),
            max_entries=settings.compile_cache_entries,
            max_bytes=settings.max_schema_bytes,
            metrics=self.metrics,
        )

    async def task(self, body: ProxyRequest) -> Task:
        """What is to be asked for.

        Raises:
            ApiError: a constraint that cannot be enforced, or settings that do not go together.
        """
        given = body.model_dump(include=set(ExtraConstraints.model_fields), exclude_none=True, by_alias=True)
        wanted = wanted_format(body.response_format, ExtraConstraints.model_validate(given), options=LENIENT)
        tools = wanted_tools(body.tools, body.tool_choice, body.parallel_tool_calls)
        native = self.settings.upstream_tools
        passed = {
            name: value
            for name, value in body.model_dump(exclude_unset=True, by_alias=True).items()
            if name not in (*_OWN, *_OWN_STREAM)
        }
        passed["messages"] = body.messages
        if tools is not None:
            try:
                tools.calls_are_sound()
            except ConstraintError as error:
                raise constraint_error(error, "tools") from error
            if native:
                passed["tools"] = list(tools.tools)
                if tools.choice != "auto":
                    passed["tool_choice"] = body.model_dump(include={"tool_choice"})["tool_choice"]
                if not tools.parallel:
                    passed["parallel_tool_calls"] = False
        compiled = await self.cache.get(wanted) if wanted.structured else None
        if (compiled or tools) and (body.n or 1) > 1:
            raise invalid("one answer at a time is checked: use n=1", "n")
        return Task(passed, wanted, compiled, tools, native)


def create_proxy(settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None) -> FastAPI:
    """The application.

    Args:
        transport: stands in for the network, in tests.
    """
    proxy = Proxy(settings, transport)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        proxy.start()
        try:
            yield
        finally:
            await proxy.upstream.close()
            proxy.cache.close()

    app = build_app("grammask proxy", [router], settings, proxy.metrics, lifespan)
    app.state.proxy = proxy
    return app


@router.post("/v1/chat/completions", summary="The next message of a chat")
async def chat_completions(request: Request, body: ProxyRequest) -> Response:
    """Free chats are passed through. What must be JSON, match a pattern or call tools is checked, and asked for again
    until it is valid."""
    proxy: Proxy = request.app.state.proxy
    record = record_of(request)
    record.id = new_id("chatcmpl-")
    task = await or_gone(request, proxy.task(body))
    record.constraint = "tools" if task.tools else task.wanted.kind
    if task.compiled is None and task.tools is None:
        passed = {**task.body, **body.model_dump(include={"stream", "stream_options"}, exclude_none=True)}
        if body.stream:
            return await _passed_through(proxy.upstream.stream(passed))
        return JSONResponse(await or_gone(request, proxy.upstream.chat(passed)))
    answer = await or_gone(request, ask(task, proxy.upstream, proxy.settings.attempts, proxy.metrics))
    record.prompt_tokens = answer.usage["prompt_tokens"]
    record.completion_tokens = answer.usage["completion_tokens"]
    whole = _completion(record.id, answer, body)
    headers = {"Grammask-Attempts": str(answer.attempts)}
    if not body.stream:
        return JSONResponse(whole, headers=headers)
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    return EventStream(_chunks(whole, with_usage), lambda: None, headers)


@router.get("/v1/models", summary="The upstream's models")
async def models(request: Request) -> Response:
    """As the upstream lists them."""
    return JSONResponse(await request.app.state.proxy.upstream.models())


@router.get("/health", summary="Whether the proxy runs")
async def health() -> dict[str, str]:
    """200 as long as it does; the upstream is not asked."""
    return {"status": "ok"}


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics for Prometheus")
async def metrics(request: Request) -> PlainTextResponse:
    """In Prometheus's text format."""
    return PlainTextResponse(request.app.state.proxy.metrics.text(), media_type="text/plain; version=0.0.4")


async def _passed_through(stream: AsyncIterator[bytes]) -> Response:
    first = await anext(stream, b"")  # an upstream that refuses does so here, while a status can still be sent

    async def all_of_it() -> AsyncIterator[bytes]:
        yield first
        async for data in stream:
            yield data

    return StreamingResponse(all_of_it(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def _completion(answer_id: str, answer: Answer, body: ProxyRequest) -> dict[str, Any]:
    reason = answer.raw["choices"][0].get("finish_reason")
    message: dict[str, Any] = {"role": "assistant", "content": answer.content, "refusal": None}
    if answer.calls:
        message["tool_calls"] = answer.calls
        reason = "tool_calls"
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": str(answer.raw.get("model") or body.model),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason or "stop"}],
        "usage": answer.usage,
        "system_fingerprint": answer.raw.get("system_fingerprint"),
    }


async def _chunks(whole: dict[str, Any], with_usage: bool) -> AsyncIterator[str]:
    """A checked answer as a stream of one piece."""
    [choice] = whole["choices"]
    common = {name: whole[name] for name in ("id", "created", "model", "system_fingerprint")}
    common["object"] = "chat.completion.chunk"
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
    for part, reason in ((delta, None), ({}, choice["finish_reason"])):
        entry = {"index": 0, "delta": part, "logprobs": None, "finish_reason": reason}
        yield data_event({**common, "choices": [entry], **({"usage": None} if with_usage else {})})
    if with_usage:
        yield data_event({**common, "choices": [], "usage": whole["usage"]})
    yield DONE
