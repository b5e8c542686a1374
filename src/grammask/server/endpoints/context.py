"""What handlers get at: the service, and who asks."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import Request

from grammask.server.service import Service


@dataclass
class LogRecord:
    """What the access log says of a request, filled in as it is answered; never prompt or output text, unless the
    setting ``log_content`` asks for them."""

    id: str = ""
    constraint: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    first_token_seconds: float | None = None
    finish_reasons: list[str] = field(default_factory=list)
    content: dict[str, object] = field(default_factory=dict)


def service_of(request: Request) -> Service:
    """The service of the app."""
    service: Service = request.app.state.service
    return service


def client_of(request: Request) -> str:
    """Whose turn it is: the key that was sent, or the address."""
    key = request.scope.get("grammask.key")
    return str(key) if key else (request.client.host if request.client else "")


def record_of(request: Request) -> LogRecord:
    """The log record of the request."""
    record: LogRecord = request.scope.setdefault("grammask.log", LogRecord())
    return record
