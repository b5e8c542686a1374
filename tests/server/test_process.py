"""``grammask serve`` as a process: it starts, refuses wrong settings, and finishes streams before it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

SERVER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import numpy as np
from support.models import byte_vocabulary
from grammask.models import FunctionModel
from grammask.server.app import create_app
from grammask.server.running import run
from grammask.server.logs import set_up_logging
from grammask.server.service import Service
from grammask.server.settings import ServerSettings

def slow(tokens):
    time.sleep(0.02)
    return np.eye(258)[ord("a")] * 30

model = FunctionModel(byte_vocabulary(), slow, chat=lambda m: str(m[-1]["content"]), name="slow")
settings = ServerSettings(model="slow", port=0, shutdown_timeout=30, log_format="json")
set_up_logging("json", "info")
run(create_app(Service(model, settings)), settings)
"""


@contextmanager
def slow_server() -> Iterator[subprocess.Popen[str]]:
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen([sys.executable, "-c", SERVER, tests], stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def logged(process: subprocess.Popen[str], beginning: str) -> str:
    """The next message of the log that begins so."""
    assert process.stderr is not None
    for line in process.stderr:
        message = str(json.loads(line)["message"])
        if message.startswith(beginning):
            return message
    raise AssertionError(f"the server ended before it logged {beginning!r}")


@contextmanager
def answer_of(process: subprocess.Popen[str], max_tokens: int) -> Iterator[httpx.Response]:
    """A stream."""
    address = re.search("http://[^ ]+", logged(process, "Uvicorn running on "))
    assert address
    body = {"model": "slow", "messages": [{"role": "user", "content": "x"}], "max_tokens": max_tokens, "stream": True}
    with httpx.stream("POST", address[0] + "/v1/chat/completions", json=body, timeout=60) as answer:
        yield answer


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_streams_are_finished_before_it_ends(signal_number: int) -> None:
    with slow_server() as process:
        text = last = ""
        with answer_of(process, 60) as answer:
            for number, line in enumerate(answer.iter_lines()):
                if number == 4:
                    process.send_signal(signal_number)
                if line.startswith("data: {"):
                    text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
                last = line or last
        assert text == "a" * 60
        assert last == "data: [DONE]"
        assert process.wait(60) == 0
        assert process.stderr is not None
        entries = [json.loads(line) for line in process.stderr]
        assert [entry["message"].split(":")[0] for entry in entries if "stop" in entry["message"]] == [
            "stopping",
            "stopped",
        ]
        [request] = [entry for entry in entries if entry["message"] == "POST /v1/chat/completions"]
        assert request["completion_tokens"] == 60


def test_who_does_not_want_to_wait() -> None:
    """A second Ctrl-C ends the server at once."""
    with slow_server() as process:
        ended = False
        with answer_of(process, 4000) as answer, contextlib.suppress(httpx.RemoteProtocolError):
            for number, line in enumerate(answer.iter_lines()):
                ended = line == "data: [DONE]"
                if number == 4:
                    process.send_signal(signal.SIGINT)
                    logged(process, "stopping")
                    process.send_signal(signal.SIGINT)
        assert not ended
        assert process.wait(60) == 1 or process.returncode == -signal.SIGINT  # the interrupt that was not caught


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["serve", "--host", "0.0.0.0"], {}, "no API key is set"),
        (["serve", "--config", "/nowhere.toml"], {}, "cannot be read"),
        (["serve"], {"GRAMMASK_PORT": "many"}, "port"),
        (["serve", "--log-format", "xml"], {}, "log_format"),
        (["proxy"], {}, "upstream"),
    ],
)
def test_wrong_settings(arguments: list[str], environment: dict[str, str], message: str) -> None:
    done: Any = subprocess.run(
        [sys.executable, "-m", "grammask.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
