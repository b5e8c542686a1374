"""``grammask serve``: an OpenAI-compatible server, and ``grammask proxy``: the same checks in front of another one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from grammask.cli.console import UsageError, complain, errors_as_exit_codes
from grammask.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from grammask.server.settings import ServerSettings

EXAMPLES = """
Examples:

  grammask serve --model smollm2 --port 8000

  grammask serve --model org/model --host 0.0.0.0 --api-key "$KEY" --log-format json

  GRAMMASK_MODEL=smollm2 grammask serve --config server.toml

  grammask serve --backend vllm --model org/model -- --tensor-parallel-size 2

Exit status:

  0 stopped; 2 wrong usage or settings; 4 the model cannot be loaded; 130 interrupted twice. With --backend vllm, that
  of vLLM.
"""

PROXY_EXAMPLES = """
Examples:

  grammask proxy --upstream http://localhost:8080/v1

  grammask proxy --upstream https://api.example.com/v1 --upstream-key "$KEY" --no-upstream-tools --port 8001

Exit status:

  0 stopped; 2 wrong usage or settings; 130 interrupted twice.
"""

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML file with settings; flags and GRAMMASK_* win.")
]
HostOption = Annotated[str | None, typer.Option("--host", help="Address to listen on \\[default: 127.0.0.1].")]
PortOption = Annotated[int | None, typer.Option("--port", "-p", help="Port; 0 takes a free one \\[default: 8000].")]
KeyOption = Annotated[
    list[str] | None, typer.Option("--api-key", metavar="KEY", help="Key that clients must send; repeat for several.")
]
NoAuthOption = Annotated[
    bool | None, typer.Option("--no-auth", help="Listen on an address that others can reach without any key.")
]
HostsOption = Annotated[
    list[str] | None, typer.Option("--allowed-host", metavar="NAME", help="Accepted Host header; repeat for several.")
]
CorsOption = Annotated[
    list[str] | None, typer.Option("--cors-origin", metavar="URL", help="Web page that may call; repeat for several.")
]
TimeoutOption = Annotated[
    float | None, typer.Option("--request-timeout", help="Seconds for one request \\[default: 600].")
]
LogFormatOption = Annotated[str | None, typer.Option("--log-format", help="text or json \\[default: text].")]
LogLevelOption = Annotated[str | None, typer.Option("--log-level", help="debug, info, warning, error.")]
LogContentOption = Annotated[bool | None, typer.Option("--log-content", help="Log prompts and outputs, too.")]


def serve(
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help='"smollm2", a folder, a .gguf file, or a hub id \\[default: smollm2].'),
    ] = None,
    config: ConfigOption = None,
    host: HostOption = None,
    port: PortOption = None,
    api_key: KeyOption = None,
    no_auth: NoAuthOption = None,
    allowed_host: HostsOption = None,
    cors_origin: CorsOption = None,
    served_name: Annotated[str | None, typer.Option("--served-name", help="Name that clients use.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="torch device.")] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="torch dtype by name.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads of torch.")] = None,
    tool_format: Annotated[
        str | None, typer.Option("--tool-format", help="How the model writes tool calls \\[default: auto].")
    ] = None,
    max_sequences: Annotated[
        int | None, typer.Option("--max-sequences", help="Outputs written at the same time \\[default: 16].")
    ] = None,
    max_waiting: Annotated[
        int | None, typer.Option("--max-waiting", help="Outputs that may wait; more get status 429 \\[default: 64].")
    ] = None,
    request_timeout: TimeoutOption = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    log_content: LogContentOption = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="grammask or vllm: what runs the model \\[default: grammask].")
    ] = None,
    vllm_python: Annotated[
        Path | None,
        typer.Option("--vllm-python", metavar="FILE", help="Python that has vLLM \\[default: the one that runs this]."),
    ] = None,
    vllm_arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGUMENTS", help="Further arguments for vLLM's server.")
    ] = None,
) -> None:
    """Serve a model over HTTP as OpenAI's API does, with structured outputs that hold."""
    _require("fastapi", "uvicorn", "pydantic_settings", "prometheus_client")
    from grammask.server.settings import ServerSettings

    flags = {
        "model": model,
        "host": host,
        "port": port,
        "api_keys": api_key,
        "no_auth": no_auth,
        "allowed_hosts": allowed_host,
        "cors_origins": cors_origin,
        "served_name": served_name,
        "device": device,
        "dtype": dtype,
        "threads": threads,
        "tool_format": tool_format,
        "max_sequences": max_sequences,
        "max_waiting": max_waiting,
        "backend": backend,
        "vllm_python": vllm_python,
        "vllm_arguments": vllm_arguments or None,
        "request_timeout": request_timeout,
        "log_format": log_format,
        "log_level": log_level,
        "log_content": log_content,
    }
    with errors_as_exit_codes():
        settings = _settings(ServerSettings, config, flags)
        if settings.backend == "vllm":
            _serve_with_vllm(settings)
        from grammask.server.running import serve as run

        run(settings)


def proxy(
    upstream: Annotated[
        str | None, typer.Option("--upstream", metavar="URL", help="OpenAI-compatible endpoint, ending in /v1.")
    ] = None,
    upstream_key: Annotated[str | None, typer.Option("--upstream-key", help="API key for the upstream.")] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", help="Answers to ask for before giving up \\[default: 3].")
    ] = None,
    upstream_tools: Annotated[
        bool | None,
        typer.Option("--upstream-tools/--no-upstream-tools", help="Whether the upstream takes tools \\[default: yes]."),
    ] = None,
    config: ConfigOption = None,
    host: HostOption = None,
    port: PortOption = None,
    api_key: KeyOption = None,
    no_auth: NoAuthOption = None,
    allowed_host: HostsOption = None,
    cors_origin: CorsOption = None,
    request_timeout: TimeoutOption = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    log_content: LogContentOption = None,
) -> None:
    """Put exact checks, and asking again, in front of an endpoint that cannot constrain."""
    _require("fastapi", "uvicorn", "httpx", "pydantic_settings", "prometheus_client")
    from grammask.server.settings import ProxySettings

    flags = {
        "upstream": upstream,
        "upstream_key": upstream_key,
        "attempts": attempts,
        "upstream_tools": upstream_tools,
        "host": host,
        "port": port,
        "api_keys": api_key,
        "no_auth": no_auth,
        "allowed_hosts": allowed_host,
        "cors_origins": cors_origin,
        "request_timeout": request_timeout,
        "log_format": log_format,
        "log_level": log_level,
        "log_content": log_content,
    }
    with errors_as_exit_codes():
        settings = _settings(ProxySettings, config, flags)
        from grammask.server.running import serve_proxy

        serve_proxy(settings)


def _serve_with_vllm(settings: ServerSettings) -> NoReturn:
    from grammask.server.vllm import VllmUnavailable, serve_with_vllm

    try:
        serve_with_vllm(settings)
    except VllmUnavailable as error:
        raise UsageError(str(error)) from error


def _require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        complain(f'serving needs {", ".join(missing)}\n  hint: pip install "grammask[server]"')
        raise typer.Exit(ExitCode.USAGE)


def _settings(kind: Any, config: Path | None, flags: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    from grammask.server.settings import load_settings

    try:
        return load_settings(kind, config, flags)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors()]
        raise UsageError("; ".join(problems)) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"the settings cannot be read: {error}") from error
