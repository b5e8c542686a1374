"""Errors in the shape that OpenAI's clients know: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetail


class ApiError(Exception):
    """An answer other than the one that was asked for.

    Attributes:
        status: of the HTTP response.
        message: for a person: what is wrong and what to do.
        type: the family, such as ``invalid_request_error``.
        code: for programs.
        param: the place in the request, as a path.
        headers: to send along.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """As JSON."""
        detail = ErrorDetail(message=self.message, type=self.type, param=self.param, code=self.code)
        return ErrorBody(error=detail).model_dump()


class ConstraintTooSlow(ApiError):
    """400: the masks of an output take so long that others would have to wait for them."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            400,
            f"the constraint is too slow: computing which tokens may come next takes more than {seconds:g} seconds for "
            "one output. Simplify it, or raise mask_seconds",
            code="constraint_too_large",
        )


def invalid(message: str, param: str | None = None, code: str | None = "invalid_value") -> ApiError:
    """400: something in the request cannot be as it is."""
    return ApiError(400, message, param=param, code=code)


def unsupported(message: str, param: str | None = None) -> ApiError:
    """400: the API knows this, this server does not."""
    return ApiError(400, message, param=param, code="unsupported_parameter")


def overloaded(message: str, retry_after: int) -> ApiError:
    """429 with Retry-After in seconds."""
    return ApiError(
        429, message, type="rate_limit_error", code="server_overloaded", headers={"Retry-After": str(retry_after)}
    )


def timed_out(seconds: float) -> ApiError:
    """504. Sending the same request again would only add to the load, so clients are told not to."""
    return ApiError(
        504,
        f"the request took longer than the {seconds:g} seconds that the server allows: "
        "ask for fewer tokens, or raise request_timeout",
        type="timeout_error",
        code="request_timeout",
        headers={"x-should-retry": "false"},
    )


def unavailable() -> ApiError:
    """503: the model has stopped."""
    return ApiError(
        503, "the model does not run (any more)", type="server_error", code="unavailable", headers={"Retry-After": "5"}
    )
