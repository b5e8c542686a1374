"""The log: one line for each request, for people or as JSON. Prompts and outputs are left out unless asked for."""

from __future__ import annotations

import datetime
import json
import logging
import sys
from dataclasses import asdict
from typing import Any

from grammask.server.endpoints.context import LogRecord

log = logging.getLogger("grammask.server")


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        entry: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Time, level, message, and what else there is as name=value."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name is logging's)
        fields = getattr(record, "fields", {})
        return " ".join([super().formatMessage(record), *(f"{name}={value}" for name, value in fields.items())])


def set_up_logging(format: str, level: str) -> None:
    """Sends the logs of the server, and the warnings of what it runs on, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    for name in ("grammask.server", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())


def log_request(method: str, path: str, status: int, seconds: float, client: str, record: LogRecord) -> None:
    """The line of one request."""
    fields = {name: value for name, value in asdict(record).items() if value not in (None, "", 0, [], {})}
    fields.update(fields.pop("content", {}))
    if "first_token_seconds" in fields:
        fields["first_token_seconds"] = round(fields["first_token_seconds"], 4)
    fields = {"status": status, "seconds": round(seconds, 4), "client": client, **fields}
    level = logging.DEBUG if path in ("/health", "/metrics") else logging.INFO
    log.log(level, "%s %s", method, path, extra={"fields": fields})
