"""``grammask serve --backend vllm`` without vLLM: the arguments that settings become, what is refused, and the process.
With vLLM: tests/integrations/vllm/test_server.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_settings")
pytest.importorskip("typer")

from grammask.constraints.tools.formats import FORMATS
from grammask.server.settings import ServerSettings
from grammask.server.vllm import AS_VLLM_DOES, TOOL_PARSERS, WITH_COUNTERPART, VllmUnavailable, vllm_launch

PYTHON = Path("/opt/vllm/bin/python")
ALWAYS = [
    *("--served-model-name", "org/model", "--host", "127.0.0.1", "--port", "8000"),
    *("--shutdown-timeout", "30", "--uvicorn-log-level", "info"),
]


def launch(environment: dict[str, str] | None = None, *, has_cli: bool = True, **settings: Any) -> Any:
    configured = ServerSettings(backend="vllm", **{"model": "org/model", **settings})
    return vllm_launch(configured, PYTHON, has_cli=has_cli, environment=environment or {})


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({}, []),
        ({"dtype": "bfloat16"}, ["--dtype", "bfloat16"]),
        ({"max_sequences": 16}, ["--max-num-seqs", "16"]),
        ({"tool_format": "hermes"}, ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]),
        ({"tool_format": "harmony"}, ["--enable-auto-tool-choice", "--tool-call-parser", "openai"]),
        ({"cors_origins": ("http://a", "http://b")}, ["--allowed-origins", '["http://a", "http://b"]']),
        (
            {"whitespace": "compact"},
            ["--structured-outputs-config", '{"backend": "guidance", "disable_any_whitespace": true}'],
        ),
        ({"never_cut": False, "log_content": False, "log_format": "text"}, []),
        ({"vllm_arguments": ("--tensor-parallel-size", "2")}, ["--tensor-parallel-size", "2"]),
    ],
)
def test_arguments(settings: dict[str, Any], arguments: list[str]) -> None:
    found = launch(**settings)
    assert list(found.command) == [
        *(str(PYTHON), "-m", "vllm.entrypoints.cli.main", "serve", "org/model"),
        *ALWAYS,
        *arguments,
    ]
    assert found.environment == {"GRAMMASK_VLLM_BACKEND": "all"}


def test_arguments_that_replace_others() -> None:
    found = launch(served_name="m", host="0.0.0.0", port=9, api_keys=("s3cret",), log_level="warning", has_cli=False)
    assert list(found.command) == [
        *(str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", "org/model"),
        *("--served-model-name", "m", "--host", "0.0.0.0", "--port", "9"),
        *("--shutdown-timeout", "30", "--uvicorn-log-level", "warning"),
    ]
    assert found.environment == {
        "GRAMMASK_VLLM_BACKEND": "all",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_API_KEY": "s3cret",
    }
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    ("before", "after"), [("", "grammask"), ("lora", "lora,grammask"), ("lora,grammask", None), ("grammask", None)]
)
def test_a_choice_of_plugins_is_kept_and_added_to(before: str, after: str | None) -> None:
    assert launch({"VLLM_PLUGINS": before}).environment.get("VLLM_PLUGINS") == after


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threads": 2}, "no counterpart of threads"),
        ({"max_waiting": 64, "device": "cuda"}, "no counterpart of device, max_waiting"),
        ({"never_cut": True}, "no counterpart of never_cut"),
        ({"log_format": "json"}, "no counterpart of log_format"),
        ({"allowed_hosts": ("a",)}, "no counterpart of allowed_hosts"),
        ({"port": 0}, "no port 0"),
        ({"api_keys": ("a", "b")}, "one key"),
        ({"tool_format": "functionary"}, "no tool calls in the format functionary"),
        ({"whitespace": "python"}, "whitespace is python"),
        ({"model": "/nowhere/model.gguf"}, "no file"),
    ],
)
def test_what_vllm_would_ignore_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(VllmUnavailable, match=message):
        launch(**settings)


def test_every_name_is_one() -> None:
    fields = set(ServerSettings.model_fields)
    assert fields >= WITH_COUNTERPART
    assert fields >= AS_VLLM_DOES.keys()
    assert FORMATS.keys() - TOOL_PARSERS.keys() == {"functionary"}
    assert TOOL_PARSERS.keys() <= FORMATS.keys()


FAKE = """
import json, os, sys, time
print(json.dumps([os.getpid(), sys.argv[1:], os.environ["GRAMMASK_VLLM_BACKEND"]]), flush=True)
if "--wait" in sys.argv:
    time.sleep(60)
sys.exit(7)
"""


@pytest.fixture
def fake_vllm(tmp_path: Path) -> dict[str, str]:
    """An environment in which something that calls itself vLLM says how it was started."""
    package = tmp_path / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    (package / "api_server.py").write_text(FAKE)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def serve(arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "grammask.cli", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.skipif(os.name != "posix", reason="a process cannot turn into another one")
@pytest.mark.parametrize("killed", [False, True])
def test_the_process_becomes_vllm(fake_vllm: dict[str, str], killed: bool) -> None:
    """It has the same id, so signals reach vLLM, and its exit status is what one sees."""
    process = serve(
        ["--backend", "vllm", "--model", "org/m", "--port", "9", "--", "--wait" if killed else "--seed", "3"], fake_vllm
    )
    assert process.stdout is not None
    number, arguments, backend = json.loads(process.stdout.readline())
    assert number == process.pid
    assert arguments[:2] == ["--model", "org/m"]
    assert arguments[-1] == "3"
    assert backend == "all"
    if killed:
        process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == (-signal.SIGTERM if killed else 7)
    assert "starting GRAMMASK_VLLM_BACKEND=all" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "vllm"], "pip install vllm"),
        (["--backend", "vllm", "--vllm-python", "/nowhere/python"], "cannot be run"),
        (["--", "--seed", "3"], "is for vLLM alone"),
        (["--backend", "tgi"], "backend"),
    ],
)
def test_what_is_missing_is_said(arguments: list[str], message: str) -> None:
    process = serve(arguments, {**os.environ})
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert message in errors
    assert output == ""


@pytest.mark.skipif(os.name != "posix", reason="a process cannot turn into another one")
def test_vllm_without_grammask_is_refused(fake_vllm: dict[str, str], tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    process = serve(["--backend", "vllm", "--vllm-python", str(python)], fake_vllm)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "grammask is not installed for" in errors
