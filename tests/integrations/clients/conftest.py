"""``grammask serve`` with a real model, for frameworks that have an environment of their own: ``make test-clients``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.update({"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"})


class Server:
    """A running server, and what its log says about constraints.

    Attributes:
        url: of its API, ``http://.../v1``.
    """

    def __init__(self, root: str, log: Path) -> None:
        self.url = f"{root}/v1"
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
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [command, "serve", "--model", "smollm2", "--port", "0"], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield Server(_address(process, log), log)
    finally:
        process.terminate()
        process.wait(60)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where the server says that it runs, once it does."""
    while process.poll() is None:
        if found := re.search(r"running on (http://\S+)", log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")
