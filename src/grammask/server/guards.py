"""What every request passes on its way in: keys, hosts, the size of bodies; and the log on its way out."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grammask.server.endpoints.context import LogRecord
from grammask.server.errors import ApiError
from grammask.server.logs import log_request
from grammask.server.metrics import Metrics

OPEN_PATHS = ("/health",)
"""Answered without a key."""


class Guards:
    """An ASGI app around another one.

    Args:
        keys: of which a client must send one; none for no check.
        hosts: accepted values of the Host header, without port; none for no check.
        max_body_bytes: of a request.
    """

    def __init__(
        self, app: ASGIApp, *, keys: Sequence[str], hosts: Sequence[str], max_body_bytes: int, metrics: Metrics
    ) -> None:
        self._app = app
        # Digests, so that comparing takes the same time whatever is sent, and logs and queues never see a key.
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]
        self._hosts = [host.lower() for host in hosts]
        self._max_body_bytes = max_body_bytes
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 499  # the client hung up before there was an answer
        limited = _LimitedBody(receive, self._max_body_bytes)

        async def watched(message: Message) -> None:
            nonlocal status
            if limited.exceeded:
                return  # whatever was made of half a body is not the answer
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        record = LogRecord()
        scope["grammask.log"] = record
        try:
            try:
                self._check(scope)
                await self._app(scope, limited, watched)
                if limited.exceeded:
                    limited.exceeded = False
                    raise self._too_large()
            except ApiError as error:
                answer = JSONResponse(error.body(), error.status, error.headers)
                await answer(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - start
            route = scope.get("route")
            endpoint = getattr(route, "path", "other")
            self._metrics.requests.labels(endpoint, str(status)).inc()
            self._metrics.request_seconds.labels(endpoint).observe(seconds)
            client = scope.get("grammask.key") or (scope["client"][0] if scope.get("client") else "")
            log_request(scope["method"], scope["path"], status, seconds, client, record)

    def _check(self, scope: Scope) -> None:
        """Refuses what may not come in.

        Raises:
            ApiError: it may not.
        """
        headers = Headers(scope=scope)
        if self._hosts:
            host = headers.get("host", "").lower()
            name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
            if name not in self._hosts:
                raise ApiError(
                    403, f"the host {host!r} is not served here", type="permission_error", code="host_refused"
                )
        if self._keys and scope["path"] not in OPEN_PATHS and scope["method"] != "OPTIONS":
            scope["grammask.key"] = self._key_name(headers)
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:18]) > self._max_body_bytes:
            raise self._too_large()

    def _key_name(self, headers: Headers) -> str:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(token.strip().encode("latin-1", "replace")).digest()
        # All are compared, so that the time does not tell which one was near.
        found = [hmac.compare_digest(digest, key) for key in self._keys]
        if scheme.lower() != "bearer" or True not in found:
            raise ApiError(
                401,
                "Incorrect API key provided: send one of the server's keys as Authorization: Bearer KEY",
                type="authentication_error",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return f"key-{digest.hex()[:8]}"

    def _too_large(self) -> ApiError:
        return ApiError(
            413, f"the body has more than the {self._max_body_bytes} bytes that the server takes", code="body_too_large"
        )


class _LimitedBody:
    """A ``receive`` that gives out so many bytes of a body and no more.

    Attributes:
        exceeded: the body is longer.
    """

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most
        self.exceeded = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.exceeded = True
                return {"type": "http.request", "body": b"", "more_body": False}
        return message
