"""The errors of client libraries as ``HostedError``. The libraries of OpenAI and Anthropic come from one generator and
have the same tree of errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from grammask.hosted.errors import HostedError
from grammask.hosted.protocol import Client

_HINTS = {
    401: "check api_key, or the environment variable that the client library reads it from",
    403: "the key has no access to this model",
    404: "check the model's name and base_url (OpenAI-compatible ones end with the version, /v1)",
    429: "over a limit of the account: wait, or pass max_retries",
}


def status_error(client: Client, status: int, message: str, code: Any = None) -> HostedError:
    """The error for an answer with an HTTP status other than success."""
    return HostedError(
        f"{client.provider} ({client.model}) answers with HTTP {status}: {message}",
        hint=_HINTS.get(status),
        status=status,
        code=str(code) if code else None,
    )


def unreachable(client: Client, error: BaseException) -> HostedError:
    """The error where there was no answer."""
    return HostedError(
        f"{client.provider} ({client.model}) cannot be reached: {error.__cause__ or error}",
        hint="check base_url and the network",
    )


def timed_out(client: Client) -> HostedError:
    """The error where the answer did not come in time."""
    return HostedError(
        f"{client.provider} ({client.model}) did not answer in time", hint="pass a longer timeout=seconds"
    )


@contextmanager
def client_errors(library: Any, client: Client) -> Iterator[None]:
    """Within, errors of the module ``openai`` or ``anthropic`` become ``HostedError``."""
    base: type[Exception] = getattr(library, "OpenAIError", None) or library.AnthropicError
    try:
        yield
    except library.APIStatusError as error:
        body: Mapping[str, Any] = error.body if isinstance(error.body, Mapping) else {}
        nested = body.get("error")
        inner: Mapping[str, Any] = nested if isinstance(nested, Mapping) else body
        message = inner.get("message") or error.message
        raise status_error(client, error.status_code, message, inner.get("code") or inner.get("type")) from error
    except library.APITimeoutError as error:
        raise timed_out(client) from error
    except library.APIConnectionError as error:
        raise unreachable(client, error) from error
    except base as error:
        raise HostedError(f"{client.provider} ({client.model}): {error}") from error
