"""``grammask lab``: measure what sampling settings do on a model, and what its logits depend on."""

from __future__ import annotations

import json
import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grammask.cli.console import UsageError, complain, diagnostics, errors_as_exit_codes, note
from grammask.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.progress import Progress

    from grammask.lab import Result
    from grammask.models import Model

EXAMPLES = """
Examples:

  grammask lab

  grammask lab nucleus

  grammask lab degeneration --model ./my-model --steps 256 --out results

  grammask lab all --out results

  grammask lab versions --out before        (then, after an upgrade:)

  grammask lab versions --against before/versions.json

Exit status:

  0; 2 wrong usage; 4 the model cannot be loaded or run, or the experiment cannot run on it.
"""


class Plots(str, Enum):
    """Formats of pictures."""

    PNG = "png"
    SVG = "svg"
    NONE = "none"


class Page(str, Enum):
    """Formats of the page with all results."""

    HTML = "html"
    MARKDOWN = "markdown"


def lab(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An experiment, or all. Without: a list.")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", envvar="GRAMMASK_MODEL", help='"smollm2", a folder, a .gguf file, or a hub id.'),
    ] = "smollm2",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for JSON, pictures and a page.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=2, help="Decoding steps per prompt; each experiment has its own number."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")] = 0,
    plots: Annotated[Plots, typer.Option("--plots", help="Format of pictures in --out.")] = Plots.PNG,
    page: Annotated[Page, typer.Option("--page", help="Format of the page in --out.")] = Page.HTML,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="FILE", help="An earlier versions.json, to compare with.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads that torch uses; by default all cores.")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help='Torch device, such as "cuda"; by default the processor.')
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="Torch dtype; by default float32 on the processor.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json-output", help="Results as JSON lines on standard output.")] = False,
) -> None:
    """Measure sampling and determinism on a model: tables, plots and JSON."""
    from grammask.lab import EXPERIMENTS, LabError

    with errors_as_exit_codes():
        if name is None:
            for known, what in EXPERIMENTS.items():
                typer.echo(f"{known:14}{what}")
            return
        names = list(EXPERIMENTS) if name == "all" else [name]
        if unknown := set(names) - EXPERIMENTS.keys():
            raise UsageError(f"no experiment {unknown.pop()!r}: use all, {', '.join(EXPERIMENTS)}")
        if against is not None and name != "versions":
            raise UsageError("--against goes with the experiment versions")
        earlier = None if against is None else _read(against)
        loaded = _load(model, threads, device, dtype)
        results = []
        for each in names:
            try:
                result = _run(each, loaded, steps, seed, earlier)
            except LabError as error:
                if name != "all":
                    complain(str(error))
                    raise typer.Exit(ExitCode.MODEL) from error
                note(f"left out {each}: {error}")
                continue
            results.append(result)
            _print(result, as_json)
        if out is not None and results:
            try:
                _write(out, results, plots, page)
            except LabError as error:
                raise UsageError(str(error)) from error
            except OSError as error:
                raise UsageError(f"cannot write to {out}: {error.strerror}") from error


def _load(name: str, threads: int | None, device: str | None, dtype: str | None) -> Model:
    from grammask import models

    with diagnostics().status(f"loading {name}"):
        model = models.load_model(name, device=device, dtype=dtype)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    return model


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} is no result of the lab: it holds no JSON object")
    return data


def _run(name: str, model: Model, steps: int | None, seed: int, against: dict[str, Any] | None) -> Result:
    from grammask import lab

    with _progress() as progress:
        task = progress.add_task(name, total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return lab.run(name, model, lab.Options(steps=steps, seed=seed, progress=told, against=against))


def _progress() -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:13}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=diagnostics(), transient=True)


def _print(result: Result, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
        return
    from rich.console import Console

    from grammask.lab.render import rich_result

    console = Console(file=sys.stdout, highlight=False)
    for shown in rich_result(result):
        console.print(shown)
    console.print()


def _write(out: Path, results: list[Result], plots: Plots, page: Page) -> None:
    """JSON and pictures per experiment, and one page."""
    from grammask.lab.drawing import draw
    from grammask.lab.render import markdown, web_page

    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["grammask", *sys.argv[1:]])
    files: dict[str, dict[str, str]] = {}
    inline: dict[str, dict[str, str]] = {}
    for result in results:
        text = json.dumps(result.to_json(), ensure_ascii=False, indent=1)
        (out / f"{result.NAME}.json").write_text(text + "\n", encoding="utf-8")
        if plots is Plots.NONE:
            continue
        for plot in result.plots():
            file = f"{result.NAME}-{plot.name}.{plots.value}"
            (out / file).write_bytes(draw(plot, plots.value))
            files.setdefault(result.NAME, {})[plot.name] = file
            if page is Page.HTML:
                svg = draw(plot, "svg").decode("utf-8")
                inline.setdefault(result.NAME, {})[plot.name] = svg[svg.index("<svg") :]
    if page is Page.HTML:
        (out / "index.html").write_text(web_page(results, inline, command), encoding="utf-8")
    else:
        (out / "index.md").write_text(markdown(results, files, command), encoding="utf-8")
    note(f"wrote {len(results)} results to {out}")
