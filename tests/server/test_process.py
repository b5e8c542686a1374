"""``grammask serve`` as a process: it starts, refuses wrong settings, and finishes streams before it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
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
settings = ServerSettings(model="slow", port=int(sys.argv[2]), shutdown_timeout=30, log_format="json")
set_up_logging("json", "info")
run(create_app(Service(model, settings)), settings)
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_streams_are_finished_before_it_ends(signal_number: int) -> None:
    port = free_port()
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, tests, str(port)], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process)
        body = {"model": "slow", "messages": [{"role": "user", "content": "x"}], "max_tokens": 60, "stream": True}
        text = last = ""
        with httpx.stream("POST", url + "/v1/chat/completions", json=body, timeout=60) as answer:
            for number, line in enumerate(answer.iter_lines()):
                if number == 4:
                    process.send_signal(signal_number)
                if line.startswith("data: {"):
                    text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
                last = line or last
        assert text == "a" * 60
        assert last == "data: [DONE]"
        assert process.wait(30) == 0
        assert process.stderr is not None
        logged = [json.loads(line) for line in process.stderr]
        assert [entry["message"].split(":")[0] for entry in logged if "stop" in entry["message"]] == [
            "stopping",
            "stopped",
        ]
        [request] = [entry for entry in logged if entry["message"] == "POST /v1/chat/completions"]
        assert request["completion_tokens"] == 60
    finally:
        process.kill()
        process.wait()


def test_who_does_not_want_to_wait() -> None:
    """A second Ctrl-C ends the server at once."""
    port = free_port()
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen([sys.executable, "-c", SERVER, tests, str(port)], stderr=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process)
        body = {"model": "slow", "messages": [{"role": "user", "content": "x"}], "max_tokens": 4000, "stream": True}
        ended = False
        with httpx.stream("POST", url + "/v1/chat/completions", json=body, timeout=60) as answer:
            try:
                for number, line in enumerate(answer.iter_lines()):
                    ended = line == "data: [DONE]"
                    if number in (4, 12):
                        process.send_signal(signal.SIGINT)
            except httpx.RemoteProtocolError:
                pass
        assert not ended
        assert process.wait(30) == 1 or process.returncode == -signal.SIGINT  # the interrupt that was not caught
    finally:
        process.kill()
        process.wait()


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


def _wait(url: str, process: subprocess.Popen[str]) -> None:
    import time

    for _ in range(600):
        assert process.poll() is None, "the server ended"
        try:
            if httpx.get(url + "/health", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise AssertionError("the server did not start")
