"""Server-sent events, and noticing that a client has hung up."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from grammask.server.errors import ApiError

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 15.0
"""After so long without an event a comment is sent, so that proxies keep the connection open."""


class ClientGone(Exception):
    """The client has closed the connection."""


class EventStream(Response):
    """Sends events while they are made. When the client hangs up, the iterator is closed.

    Args:
        events: each is sent as it is; see ``data_event`` and ``named_event``.
        close: called when it is over, whatever happened.
        headers: of the response.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncIterator[str], close: Callable[[], None], headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **(headers or {})},
            media_type=self.media_type,
        )
        del self.headers["content-length"]
        self._events = events
        self._on_close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_until_disconnect(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await sending
            await self._close()
            self._on_close()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        following = asyncio.ensure_future(anext(self._events))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_SECONDS)
                if not done:
                    await send({"type": "http.response.body", "body": b": keep-alive\n\n", "more_body": True})
                    continue
                try:
                    event = following.result()
                except StopAsyncIteration:
                    break
                following = asyncio.ensure_future(anext(self._events))
                await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if not following.done():
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                    await following

    async def _close(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()


def data_event(value: dict[str, Any]) -> str:
    """An event without a name, as chat completions are streamed."""
    return f"data: {_json(value)}\n\n"


def named_event(value: dict[str, Any]) -> str:
    """An event named by its ``type``, as responses are streamed."""
    return f"event: {value['type']}\ndata: {_json(value)}\n\n"


DONE = "data: [DONE]\n\n"


def error_event(error: ApiError) -> str:
    """What clients expect where a stream breaks off."""
    return data_event(error.body())


async def or_gone(request: Request, work: Awaitable[T]) -> T:
    """The result of ``work``, which is cancelled when the client hangs up.

    Raises:
        ClientGone: it has hung up.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_disconnect(request.receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await working


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
