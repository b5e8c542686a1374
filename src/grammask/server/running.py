"""From settings to a running process."""

from __future__ import annotations

import signal
from types import FrameType
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
    """Serves an application until SIGINT or SIGTERM; returns when what was running is finished.

    Raises:
        KeyboardInterrupt: a second SIGINT; what was running is lost.
    """
    server = _Server(uvicorn.Config(app, **uvicorn_options(settings)), settings.shutdown_timeout)
    # When it is done, uvicorn sends itself the signal once more, so that the process ends as it would have without it.
    # It has done what the signal asked for, so this is turned into an interrupt that can be told from others.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.run()
    except KeyboardInterrupt:
        if server.force_exit:
            raise
    finally:
        signal.signal(signal.SIGTERM, before)
    log.info("stopped")


class _Server(uvicorn.Server):
    """Says what happens when it is told to end."""

    def __init__(self, config: uvicorn.Config, patience: float) -> None:
        super().__init__(config)
        self._patience = patience

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            again = ", or until Ctrl-C again" if sig == signal.SIGINT else ""
            log.info("stopping: requests that are running are finished, for up to %g s%s", self._patience, again)
        super().handle_exit(sig, frame)


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
