"""The endpoint behind the proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx

from grammask.server.errors import ApiError
from grammask.server.settings import ProxySettings


class Upstream:
    """Calls an OpenAI-compatible endpoint.

    Args:
        settings: where it is, its key, and how long it may take.
        transport: for tests.
    """

    def __init__(self, settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {settings.upstream_key}"} if settings.upstream_key else {}
        self._client = httpx.AsyncClient(
            base_url=settings.upstream.rstrip("/") + "/",
            headers=headers,
            timeout=settings.upstream_timeout,
            transport=transport,
        )

    async def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """A chat completion.

        Raises:
            ApiError: the upstream refuses or cannot be reached; its own error is passed on.
        """
        try:
            response = await self._client.post("chat/completions", json=body)
            answer = response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError) as error:
            raise _unreachable(error) from error
        if answer is None:
            raise _refused(response.status_code, response.text, response.headers)
        if not isinstance(answer, dict) or not answer.get("choices"):
            raise _unreachable(ValueError("its answer has no choices"))
        return answer

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        """The bytes of a stream, as they come.

        Raises:
            ApiError: as ``chat``.
        """
        try:
            async with self._client.stream("POST", "chat/completions", json=body) as response:
                if response.status_code != 200:
                    text = (await response.aread()).decode(errors="replace")
                    raise _refused(response.status_code, text, response.headers)
                async for data in response.aiter_bytes():
                    yield data
        except httpx.HTTPError as error:
            raise _unreachable(error) from error

    async def models(self) -> Any:
        """Its models.

        Raises:
            ApiError: as ``chat``.
        """
        try:
            response = await self._client.get("models")
            if response.status_code != 200:
                raise _refused(response.status_code, response.text, response.headers)
            return response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise _unreachable(error) from error

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()


def _unreachable(error: Exception) -> ApiError:
    return ApiError(
        502, f"the upstream does not answer: {error or type(error).__name__}", type="upstream_error", code="bad_gateway"
    )


def _refused(status: int, text: str, headers: httpx.Headers) -> ApiError:
    kept = {"Retry-After": headers["retry-after"]} if "retry-after" in headers else {}
    passed = status if status in (400, 404, 422, 429, 503) else 502
    return ApiError(
        passed,
        f"the upstream answered {status}: {text[:500]}",
        type="upstream_error",
        code="upstream_refused",
        headers=kept,
    )
