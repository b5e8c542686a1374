"""``grammask explore``: the local page that shows masks, distributions and automata."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grammask.cli.console import UsageError, errors_as_exit_codes, note

if TYPE_CHECKING:
    from grammask.models import Model

EXAMPLES = """
Examples:

  grammask explore

  grammask explore --model ./my-model --port 9000 --no-browser

  grammask explore --tokenizer llama=llama/tokenizer.json --tokenizer qwen=qwen.tokenizer.json.gz

Exit status:

  0; 2 wrong usage, or the port is taken.
"""


def explore(
    model: Annotated[
        str,
        typer.Option("--model", "-m", envvar="GRAMMASK_MODEL", help='"smollm2", a folder, a .gguf file, or a hub id.'),
    ] = "smollm2",
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on. Anything but this machine lets others use the model.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 is any free one.")] = 8765,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(
            "--tokenizer",
            metavar="NAME=FILE",
            help="A further tokenizer.json for the tokenization view, also packed with gzip; repeat for several.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads that torch uses; by default all cores.")
    ] = None,
) -> None:
    """Open a page that shows, step by step, what constraints and samplers do to a model's distribution."""
    with errors_as_exit_codes():
        missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
        if missing:
            raise UsageError(f'the explorer needs {" and ".join(missing)}: pip install "grammask[explorer]"')
        import uvicorn

        from grammask.explorer.server import Explorer, create_app

        files = {**_known_tokenizers(), **dict(_named_file(value) for value in tokenizer or [])}
        explorer = Explorer(model, lambda: _load(model, threads), files)
        hosts = ("localhost", "127.0.0.1", "[::1]") if host in ("127.0.0.1", "localhost", "::1") else ("*",)
        listening = _listen(host, port)
        address = f"http://{'localhost' if host == '127.0.0.1' else host}:{listening.getsockname()[1]}/"
        note(f"the explorer is at {address} (stop it with Ctrl+C)")
        if browser:
            threading.Timer(0.8, webbrowser.open, (address,)).start()
        config = uvicorn.Config(create_app(explorer, allowed_hosts=hosts), log_level="warning", lifespan="off")
        uvicorn.Server(config).run(sockets=[listening])


def _load(name: str, threads: int | None) -> Model:
    from grammask.models import load_model

    loaded = load_model(name)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    return loaded


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # from here on connections wait, also while the server starts
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen on {host}, port {port}: {error.strerror}; try --port 0") from error
    return listening


def _named_file(value: str) -> tuple[str, Path]:
    name, equals, path = value.partition("=")
    if not (name and equals and path):
        raise UsageError(f"--tokenizer must look like NAME=FILE, not {value!r}")
    if not Path(path).is_file():
        raise UsageError(f"--tokenizer {name}: there is no file {path}")
    return name, Path(path)


def _known_tokenizers() -> dict[str, Path]:
    """The tokenizers in the folder of test data, if there is one."""
    from grammask.explorer.tokenization import files_in

    folder = os.environ.get("GRAMMASK_DATA")
    return files_in(Path(folder) / "tokenizers") if folder else {}
