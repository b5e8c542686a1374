"""From settings to a running process."""

from __future__ import annotations

from typing import Any

import uvicorn
from fastapi import FastAPI

from grammask.server.logs import log, set_up_logging
from grammask.server.settings import HttpSettings, ProxySettings, ServerSettings


def serve(settings: ServerSettings) -> None:
    """Loads the model and serves it until the process is told to end; running requests are finished first.

    Raises:
        ModelError: the model cannot be loaded.
    """
    from grammask.models import load_model
    from grammask.server.app import create_app
    from grammask.server.service import Service

    set_up_logging(settings.log_format, settings.log_level)
    if settings.threads is not None:
        import torch

        torch.set_num_threads(settings.threads)
    model = load_model(settings.model, device=settings.device, dtype=settings.dtype)
    service = Service(model, settings)
    log.info("serving %s", service.name, extra={"fields": {"fingerprint": service.fingerprint}})
    run(create_app(service), settings)


def serve_proxy(settings: ProxySettings) -> None:
    """Runs the proxy until the process is told to end."""
    from grammask.server.proxy.app import create_proxy

    set_up_logging(settings.log_format, settings.log_level)
    log.info("in front of %s", settings.upstream)
    run(create_proxy(settings), settings)


def run(app: FastAPI, settings: HttpSettings) -> None:
    """Serves an application."""
    server = uvicorn.Server(uvicorn.Config(app, **uvicorn_options(settings)))
    server.run()


def uvicorn_options(settings: HttpSettings) -> dict[str, Any]:
    """The web server's own settings."""
    return {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,
        "timeout_graceful_shutdown": settings.shutdown_timeout,
        "server_header": False,
        "h11_max_incomplete_event_size": 64 * 1024,
    }
