"""``grammask explore`` as a process: it tells its address, answers there, and stops when told to."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("uvicorn")
EXPLORE = [sys.executable, "-m", "grammask.cli", "explore", "--no-browser"]


def test_it_serves_and_stops() -> None:
    process = subprocess.Popen([*EXPLORE, "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://localhost:\d+/", process.stderr.readline())
        assert found
        request = urllib.request.Request(
            found[0] + "api/check",
            data=json.dumps({"constraint": {"kind": "regex", "text": "a+"}}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.loads(answer.read())["ok"] is True
        if sys.platform != "win32":  # where Ctrl+C goes to all processes of the console
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) in (0, -signal.SIGINT, 130)
    finally:
        process.kill()
        process.wait()


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run([*EXPLORE, "--port", port], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "try --port 0" in done.stderr


@pytest.mark.parametrize("value", ["nothing", "a=", "a=/no/such/file"])
def test_tokenizers_that_are_not_there(value: str) -> None:
    done = subprocess.run([*EXPLORE, "--tokenizer", value], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--tokenizer" in done.stderr
