"""``grammask serve`` with a real model, for frameworks that have an environment of their own: ``make test-clients``."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.update({"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"})


class Server:
    """A running server, and what its log says about constraints.

    Attributes:
        url: of its API, ``http://.../v1``.
    """

    def __init__(self, port: int, log: Path) -> None:
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/v1"
        self._log = log
        self._seen = 0

    def kinds(self, count: int) -> list[str]:
        """The kinds of constraint of the next ``count`` requests: what a client only asked the model for is "text"."""
        for _ in range(100):
            kinds = re.findall(r"status=200 .*\bconstraint=(\w+)", self._log.read_text())[self._seen :]
            if len(kinds) >= count:
                break
            time.sleep(0.1)
        self._seen += len(kinds)
        return kinds


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = os.environ.get("GRAMMASK_COMMAND") or str(Path(sys.executable).with_name("grammask"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [command, "serve", "--model", "smollm2", "--port", str(port)], stdout=output, stderr=subprocess.STDOUT
        )
    server = Server(port, log)
    try:
        _wait_until_ready(process, server, log)
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_ready(process: subprocess.Popen[bytes], server: Server, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.root}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")
