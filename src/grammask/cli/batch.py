"""``grammask batch``: one output for each record of files, resumable."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from grammask.cli.console import UsageError, complain, diagnostics, errors_as_exit_codes, note
from grammask.cli.constraints import (
    FLEXIBLE,
    ChoiceOption,
    ConstraintOptions,
    GrammarOption,
    JsonOption,
    PropertyOrder,
    PropertyOrderOption,
    RegexOption,
    SchemaOption,
    TypeOption,
    WhitespaceOption,
    load_schema,
)
from grammask.cli.exit_codes import ExitCode
from grammask.cli.inputs import read_text

EXAMPLES = """
Examples:

  grammask batch --input tickets.jsonl --output out/ --schema ticket.json --prompt "Extract the ticket as JSON."

  grammask batch --input data.parquet --output out/ --schema s.json --engine ray --workers 8 --column body --id id

  grammask batch --input data.csv --output out/ --schema s.json --backend vllm --model org/model --batch-size 256

Run the same command again to go on after an interruption.

Exit status:

  0 every record has an output; 2 wrong usage, or the folder holds another job; 3 the constraint cannot be enforced;

  4 the model cannot be loaded; 5 some records failed: their outcomes say why.
"""


class Engine(str, Enum):
    """Where the work is done."""

    LOCAL = "local"
    RAY = "ray"


class BackendOption(str, Enum):
    """What runs the model."""

    MODEL = "model"
    VLLM = "vllm"


class FormatOption(str, Enum):
    """Kinds of output files."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def batch(
    inputs: Annotated[
        list[Path],
        typer.Option("--input", "-i", metavar="PATH", help="A .jsonl, .csv or .parquet file, or a folder; repeatable."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the outcomes go.")],
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="What to ask; stands before each record's text.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            envvar="GRAMMASK_MODEL",
            help='"smollm2", a folder, a .gguf file, or a hub id such as org/model.',
        ),
    ] = "smollm2",
    schema: SchemaOption = None,
    type_name: TypeOption = None,
    regex: RegexOption = None,
    choice: ChoiceOption = None,
    grammar: GrammarOption = None,
    any_json: JsonOption = False,
    property_order: PropertyOrderOption = PropertyOrder.SCHEMA,
    whitespace: WhitespaceOption = FLEXIBLE,
    column: Annotated[str, typer.Option("--column", help="The member of a record that holds its text.")] = "text",
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="A member to copy into the outcome.")
    ] = None,
    engine: Annotated[Engine, typer.Option("--engine", help="This process, or a Ray cluster.")] = Engine.LOCAL,
    backend: Annotated[
        BackendOption, typer.Option("--backend", help="grammask's own models, or vLLM's offline engine.")
    ] = BackendOption.MODEL,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Models that run at once (--engine ray).")] = 1,
    gpus: Annotated[float, typer.Option("--gpus", min=0, help="GPUs of each worker (--engine ray).")] = 0,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Records that a model works on at once.")] = 8,
    shard_size: Annotated[int, typer.Option("--shard-size", min=1, help="Records in one output file.")] = 64,
    format: Annotated[FormatOption, typer.Option("--format", help="Of the output files.")] = FormatOption.JSONL,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="System message.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Plain text, without the model's chat template.")] = False,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest output, in tokens.")] = 512,
    temperature: Annotated[float, typer.Option("--temperature", "-t", help="0 takes the likeliest token.")] = 0.0,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes draws repeatable.")] = None,
    engine_options: Annotated[
        str | None, typer.Option("--engine-options", metavar="JSON", help="Further arguments of the model or of vLLM.")
    ] = None,
) -> None:
    """Answer every record of a data set under a constraint. No record is lost or answered twice."""
    with errors_as_exit_codes():
        from grammask.batch import BatchError, Job, run_local
        from grammask.batch.ray_engine import run_ray

        options = ConstraintOptions(
            schema, type_name, regex, choice or [], grammar, any_json, property_order, whitespace
        )
        options.resolve()
        sampling: dict[str, Any] = {"temperature": temperature}
        if seed is not None:
            sampling["seed"] = seed
        try:
            job = Job(
                constraint=_description(options),
                model=model,
                backend=backend.value,
                column=column,
                instruction=prompt,
                system=system,
                raw=raw,
                max_tokens=max_tokens,
                sampling=sampling,
                shard_size=shard_size,
                batch_size=batch_size,
                format=format.value,
                id_column=id_column,
                engine_options=_engine_options(engine_options),
            )
            with _progress() as report:
                if engine is Engine.RAY:
                    resources = {"num_cpus": 1, **({"num_gpus": gpus} if gpus else {})}
                    summary = run_ray(job, inputs, output, workers=workers, resources=resources, progress=report)
                else:
                    summary = run_local(job, inputs, output, progress=report)
        except BatchError as error:
            raise UsageError(str(error)) from error
        note(f"{summary.records} records, {summary.succeeded} with an output, {summary.failed} failed")
        if summary.failed:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(summary.errors.items()))
            complain(f"{summary.failed} of {summary.records} records failed: {kinds}")
            raise typer.Exit(ExitCode.INCOMPLETE)


def _description(options: ConstraintOptions) -> dict[str, Any] | None:
    """The constraint of the command line as JSON, which travels between processes."""
    given = {"property_order": options.property_order.value, "whitespace": options.whitespace.value}
    if options.schema is not None:
        return {"json_schema": load_schema(options.schema), **given}
    if options.type_name is not None:
        return {"json_schema": options.require().schema, **given}  # type: ignore[attr-defined]
    if options.regex is not None:
        return {"regex": options.regex}
    if options.choices:
        return {"choice": options.choices}
    if options.grammar is not None:
        return {options.grammar.suffix.removeprefix("."): read_text(str(options.grammar))}
    return {"json": True} if options.json else None


def _engine_options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--engine-options is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--engine-options is a JSON object")
    return value


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A line on standard error: records done, those of an earlier run among them."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=diagnostics()) as bar:
        task = bar.add_task("records", total=None)

        def report(done: int, earlier: int) -> None:
            said = f"{done} records" + (f", {earlier} of them earlier" if earlier else "")
            bar.update(task, description=said, completed=done)

        yield report
