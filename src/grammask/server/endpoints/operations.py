"""``/v1/models``, ``/health`` and ``/metrics``."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, PlainTextResponse, Response

from grammask.server.endpoints.context import service_of
from grammask.server.service import Service

router = APIRouter()


class ModelCard(BaseModel):
    """A model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "grammask"
    max_model_len: int | None = None


class ModelList(BaseModel):
    """The models of this server."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Health(BaseModel):
    """Whether requests can be answered."""

    status: Literal["ok", "failed"]
    running: int
    waiting: int


@router.get("/v1/models", summary="The model that is served")
async def models(request: Request) -> ModelList:
    """A list of one."""
    return ModelList(data=[_card(service_of(request))])


@router.get("/v1/models/{name:path}", summary="One model")
async def model(request: Request, name: str) -> ModelCard:
    """The model that is served, by its name."""
    service = service_of(request)
    service.check_model(name)
    return _card(service)


@router.get("/health", response_model=Health, summary="Whether the server can answer")
async def health(request: Request) -> Response:
    """200 while the model runs, 503 when it does not."""
    service = service_of(request)
    alive = service.scheduler.is_alive
    live, open_ = service.scheduler.live_sequences, service.open_generations
    state = Health(status="ok" if alive else "failed", running=open_, waiting=max(0, live - open_))
    return JSONResponse(state.model_dump(), 200 if alive else 503)


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics for Prometheus")
async def metrics(request: Request) -> PlainTextResponse:
    """In Prometheus's text format."""
    return PlainTextResponse(service_of(request).metrics.text(), media_type="text/plain; version=0.0.4")


def _card(service: Service) -> ModelCard:
    return ModelCard(id=service.name, created=service.created, max_model_len=service.model.context_length)
