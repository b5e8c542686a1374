"""Servers for tests: real ones, in a thread of this process, on a free port, with a model made of a few lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("pydantic_settings")

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI
from numpy.typing import NDArray

from grammask.models import FunctionModel, Model
from grammask.server.app import create_app
from grammask.server.running import uvicorn_options
from grammask.server.service import Service
from grammask.server.settings import HttpSettings, ServerSettings
from support.models import byte_vocabulary


def random_model() -> FunctionModel:
    """Logits that are a fixed random function of the last tokens, over single bytes, with a chat template."""
    vocabulary = byte_vocabulary()

    def logits(tokens: Sequence[int]) -> NDArray[np.float64]:
        return np.random.default_rng([len(tokens), *tokens[-8:]]).normal(scale=2.0, size=vocabulary.size)

    def chat(messages: Sequence[Any]) -> str:
        return "".join(f"{message['role']}: {message['content']}\n" for message in messages)

    return FunctionModel(vocabulary, logits, chat=chat, name="random", context_length=8192)


@contextmanager
def running(app: FastAPI, settings: HttpSettings) -> Iterator[str]:
    """Serves an app; gives its URL."""
    server = uvicorn.Server(uvicorn.Config(app, **{**uvicorn_options(settings), "port": 0}))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"


class Served:
    """A running server.

    Attributes:
        url: its root.
        service: what is behind it.
    """

    def __init__(self, url: str, service: Service) -> None:
        self.url = url
        self.service = service

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=120, **options)

    def chat(self, text: str = "Go.", **fields: Any) -> httpx.Response:
        body = {"model": self.service.name, "messages": [{"role": "user", "content": text}], **fields}
        return self.post("/v1/chat/completions", body)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30, **options)


def until(condition: Callable[[], bool]) -> None:
    """Waits for what another thread brings about."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


@contextmanager
def served(model: Model, **settings: Any) -> Iterator[Served]:
    """A server for a model."""
    configured = ServerSettings(model=model.name, port=0, **settings)
    service = Service(model, configured)
    with running(create_app(service), configured) as url:
        yield Served(url, service)
