"""``grammask generate``: one output, a stream of it, or one for each line of a file."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grammask.cli.console import UsageError, complain, diagnostics, errors_as_exit_codes, note
from grammask.cli.constraints import (
    ChoiceOption,
    ConstraintOptions,
    GrammarOption,
    JsonOption,
    PropertyOrder,
    PropertyOrderOption,
    RegexOption,
    SchemaOption,
    TypeOption,
    Whitespace,
    WhitespaceOption,
)
from grammask.cli.exit_codes import ExitCode
from grammask.cli.inputs import Request, read_messages, read_requests, read_text, stdin_is_piped

if TYPE_CHECKING:
    from grammask.decoding import Result
    from grammask.models import Model, Prompt

EXAMPLES = """
Examples:

  grammask generate --choice positive --choice negative "How does this sound? The room was spotless."

  grammask generate --regex "[0-9]{4}-[0-9]{2}-[0-9]{2}" "On which date did Apollo 11 land?"

  grammask generate --schema invoice.json --input letter.txt "Extract the invoice."

  grammask generate --type shop:Order --messages examples.json --stream < message.txt

  grammask generate --schema record.json --json-lines --input in.jsonl > out.jsonl

Exit status:

  0 a complete output; 2 wrong usage; 3 the constraint cannot be enforced;

  4 the model cannot be loaded or run; 5 the output was cut before it was complete.
"""


def generate(
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="[PROMPT]", help="What to ask. With --input or piped text, stands before it."),
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
    whitespace: WhitespaceOption = Whitespace.FLEXIBLE,
    input_path: Annotated[
        str | None, typer.Option("--input", "-i", metavar="FILE", help="Text to work on; - is standard input.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="System message.")] = None,
    messages: Annotated[
        Path | None,
        typer.Option(
            "--messages",
            metavar="FILE",
            help="JSON list of chat messages that come before the prompt, e.g. worked examples.",
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Continue the prompt as plain text, without the model's chat template.")
    ] = False,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest output, in tokens.")] = 512,
    temperature: Annotated[
        float, typer.Option("--temperature", "-t", help="0 always takes the likeliest token.")
    ] = 0.0,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Nucleus: draw from this share of probability.")
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Draw from the k likeliest tokens.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Makes draws repeatable; without it each run differs.")
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", metavar="TEXT", help="Text that ends the output; repeat for several.")
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print the output while it is written.")] = False,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json-lines",
            help='Each line of the input is a request: a JSON string, or {"prompt": ...} or {"messages": [...]}.',
        ),
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Token counts and speed, on standard error.")] = False,
) -> None:
    """Write text that satisfies a constraint, and print nothing else on standard output."""
    with errors_as_exit_codes():
        constraint = ConstraintOptions(
            schema, type_name, regex, choice or [], grammar, any_json, property_order, whitespace
        ).resolve()
        prompts = _Prompts(system, read_messages(str(messages)) if messages else [], raw)
        job = _Job(
            constraint, type_name is not None, _sampling(temperature, top_p, top_k, seed), max_tokens, stop or []
        )
        if json_lines:
            if stream:
                raise UsageError("--stream and --json-lines exclude each other")
            requests = read_requests(input_path or "-")
            code = _generate_lines(_load(model), prompts, prompt, requests, job)
        else:
            text = _prompt_text(prompt, input_path)
            code = _generate_one(_load(model), prompts, text, job, stream=stream, stats=stats)
        raise typer.Exit(code)


@dataclasses.dataclass(frozen=True)
class _Prompts:
    """What stands around every prompt."""

    system: str | None
    before: list[dict[str, Any]]
    raw: bool

    def build(self, model: Model, prompt: str | list[dict[str, Any]]) -> Prompt:
        """The prompt as the model takes it: chat messages if it has a chat template, else text."""
        if self.raw or not model.has_chat_template:
            if not isinstance(prompt, str) or self.system or self.before:
                raise UsageError(
                    "chat messages need a model with a chat template"
                    + (" and exclude --raw" if self.raw else f", which {model.name} does not have")
                )
            return prompt
        head = [{"role": "system", "content": self.system}] if self.system is not None else []
        turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return [*head, *self.before, *turns]


@dataclasses.dataclass(frozen=True)
class _Job:
    """What is asked of the model for every prompt."""

    constraint: Any
    typed: bool
    sampling: Any
    max_tokens: int
    stop: list[str]

    def keywords(self) -> dict[str, Any]:
        return {"sampling": self.sampling, "max_tokens": self.max_tokens, "stop": self.stop}


def _sampling(temperature: float, top_p: float | None, top_k: int | None, seed: int | None) -> Any:
    from grammask.sampling import Sampling

    try:
        return Sampling(temperature=temperature, top_p=top_p, top_k=top_k, seed=seed)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def _load(name: str) -> Model:
    from grammask.models import load_model

    return load_model(name)


def _prompt_text(prompt: str | None, input_path: str | None) -> str:
    """The prompt, then the input text, with an empty line between them."""
    if input_path is None and (prompt is not None or not stdin_is_piped()):
        if prompt is None:
            raise UsageError("no prompt: give it as an argument, with --input FILE, or on standard input")
        return prompt
    text = read_text(input_path or "-").rstrip("\r\n")
    return text if prompt is None else f"{prompt}\n\n{text}"


def _generate_one(model: Model, prompts: _Prompts, text: str, job: _Job, *, stream: bool, stats: bool) -> ExitCode:
    output = model.stream(prompts.build(model, text), job.constraint, **job.keywords())
    try:
        for piece in output:
            if stream:
                _print(piece, end="")
    except KeyboardInterrupt:
        if stream:
            _print("")
        raise
    result = output.result
    _print("" if stream else result.text)
    if stats:
        note(_summary(result))
    if not result.complete:
        complain(_why_incomplete(result, job))
        return ExitCode.INCOMPLETE
    return ExitCode.OK


def _generate_lines(
    model: Model, prompts: _Prompts, instruction: str | None, requests: list[Request], job: _Job
) -> ExitCode:
    """One output line for each request, in order; what fails is reported in its line and does not stop the others."""
    from grammask.decoding import InvalidValue
    from grammask.models.errors import ModelError
    from grammask.sampling.errors import SamplingError

    worst = ExitCode.OK
    progress = Progress(
        TextColumn("generating"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=diagnostics(),
    )
    with progress:
        for number, request in enumerate(progress.track(requests)):
            prompt = request.prompt
            if instruction is not None and isinstance(prompt, str):
                prompt = f"{instruction}\n\n{prompt}"
            line = dict(request.fields)
            try:
                result = model.generate(prompts.build(model, prompt), job.constraint, request=number, **job.keywords())
            except (InvalidValue, ModelError, SamplingError) as error:
                line["error"] = str(error)
                worst = max(worst, ExitCode.MODEL)
            else:
                line.update(_line(result, job))
                if not result.complete:
                    worst = max(worst, ExitCode.INCOMPLETE)
            _print(json.dumps(line, ensure_ascii=False))
    return worst


def _line(result: Result[Any], job: _Job) -> dict[str, Any]:
    fields: dict[str, Any] = {"text": result.text}
    if result.complete:
        fields["value"] = json.loads(result.text) if job.typed else result.value
    else:
        fields["error"] = _why_incomplete(result, job)
    return {**fields, "finish_reason": result.finish_reason, "usage": dataclasses.asdict(result.usage)}


def _why_incomplete(result: Result[Any], job: _Job) -> str:
    if result.finish_reason == "length":
        return (
            f"the output was cut after {result.usage.completion_tokens} tokens, before it was complete (--max-tokens)"
        )
    return "the output ended before it was complete (--stop)"


def _summary(result: Result[Any]) -> str:
    usage = result.usage
    return (
        f"{usage.completion_tokens} tokens ({usage.forced_tokens} forced, {usage.sampled_tokens} sampled) in "
        f"{usage.model_calls} forward passes after a prompt of {usage.prompt_tokens}; "
        f"{result.seconds:.2f} s, {result.tokens_per_second:.1f} tokens/s after the prompt; {result.finish_reason}"
    )


def _print(text: str, end: str = "\n") -> None:
    """Writes to standard output as UTF-8, whatever the locale says, and at once."""
    sys.stdout.flush()
    sys.stdout.buffer.write((text + end).encode("utf-8"))
    sys.stdout.buffer.flush()
