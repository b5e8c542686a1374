"""The web application: endpoints, guards, and errors in OpenAI's shape."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response

import grammask
from grammask.server.endpoints import chat, completions, operations, responses
from grammask.server.errors import ApiError, ErrorBody
from grammask.server.guards import Guards
from grammask.server.metrics import Metrics
from grammask.server.service import Service
from grammask.server.settings import HttpSettings
from grammask.server.sse import ClientGone

log = logging.getLogger("grammask.server")

ERRORS = {
    400: "The request cannot be answered as it is; the message says why.",
    401: "An API key is needed.",
    404: "There is no such model or URL.",
    413: "The body is too large.",
    429: "The server is busy; Retry-After says when to try again.",
    500: "The output failed.",
    503: "The model does not run.",
    504: "The request took too long.",
}


def create_app(service: Service) -> FastAPI:
    """The application for a service, whose threads it starts and stops."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            service.stop()

    routers = [chat.router, responses.router, completions.router, operations.router]
    app = build_app("grammask", routers, service.settings, service.metrics, lifespan)
    app.state.service = service
    return app


def build_app(
    title: str, routers: Sequence[APIRouter], settings: HttpSettings, metrics: Metrics, lifespan: Callable[..., Any]
) -> FastAPI:
    """An application with what server and proxy have in common."""
    app = FastAPI(title=title, version=grammask.__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    described: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorBody, "description": text} for status, text in ERRORS.items()
    }
    for router in routers:
        app.include_router(router, responses=described)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientGone, _client_gone)
    app.add_exception_handler(Exception, _unexpected)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(
        Guards,
        keys=settings.api_keys,
        hosts=settings.allowed_hosts,
        max_body_bytes=settings.max_body_bytes,
        metrics=metrics,
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    return app


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return JSONResponse(error.body(), error.status, error.headers)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Of the members of a union, the one that got furthest is the one that was meant.
    errors = error.errors()
    first = max((found for found in errors if found["loc"][:2] == errors[0]["loc"][:2]), key=_depth)
    kind, message = str(first["type"]), str(first["msg"])
    param = _param(first["loc"])
    if kind in ("unknown_parameter", "unsupported_parameter"):
        name = (first.get("ctx") or {}).get("name")
        param = f"{param}.{name}" if param else name
    elif kind == "extra_forbidden":
        kind, message = "unknown_parameter", f"Unknown parameter: '{param}'"
    elif kind == "json_invalid":
        message, param = f"the body is not JSON: {(first.get('ctx') or {}).get('error', message)}", None
    else:
        message = f"Invalid value for '{param}': {message}" if param else f"Invalid request: {message}"
        kind = "missing_required_parameter" if kind == "missing" else "invalid_value"
    return JSONResponse(ApiError(400, message, param=param, code=kind).body(), 400)


def _depth(error: dict[str, Any]) -> tuple[int, bool]:
    """How far the reading of a request got: a value of the right type that is refused got further."""
    return len(error["loc"]), not error["type"].endswith("_type")


def _param(loc: Sequence[int | str]) -> str | None:
    """The place in the request as OpenAI writes it: messages[0].content. The names of union members, which Pydantic
    puts between, are left out."""
    path, parts = "", list(loc[1:])
    for position, part in enumerate(parts):
        before = parts[position - 1] if position else ""
        if isinstance(part, int):
            path += f"[{part}]"
        elif before in ("response_format", "format") or path in (f"messages[{before}]", f"input[{before}]"):
            continue
        elif part.isidentifier() and part[:1].islower() and part not in ("str", "bool", "dict", "int"):
            path += f".{part}" if path else part
    return path or None


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: f"there is no {request.url.path} here", 405: f"{request.url.path} does not take {request.method}"}
    status = error.status_code
    message = messages.get(status, str(error.detail))
    answer = ApiError(status, message, code="not_found" if status == 404 else None)
    return JSONResponse(answer.body(), status, error.headers)


async def _client_gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    answer = ApiError(500, "the server made a mistake; its log says which", type="server_error", code="internal_error")
    return JSONResponse(answer.body(), 500)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The document, without the 422 that FastAPI adds: wrong requests are answered with 400."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for methods in document["paths"].values():
            for operation in methods.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            document.get("components", {}).get("schemas", {}).pop(name, None)
        app.openapi_schema = document
    return app.openapi_schema
