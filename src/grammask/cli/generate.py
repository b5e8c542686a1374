"""``grammask generate``: one output, a stream of it, several, or one for each line of a file."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grammask.cli.console import UsageError, complain, errors_as_exit_codes, note
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
)
from grammask.cli.exit_codes import ExitCode
from grammask.cli.inputs import Request, read_messages, read_requests, read_text, stdin_is_piped
from grammask.cli.ways import Method, StrategyName, Truncate, Way

if TYPE_CHECKING:
    from grammask.decoding import Result
    from grammask.models import LanguageModel, Prompt

EXAMPLES = """
Examples:

  grammask generate --choice positive --choice negative "How does this sound? The room was spotless."

  grammask generate --regex "[0-9]{4}-[0-9]{2}-[0-9]{2}" "On which date did Apollo 11 land?"

  grammask generate --schema invoice.json --input letter.txt "Extract the invoice."

  grammask generate --type shop:Order --messages examples.json --stream < message.txt

  grammask generate --schema record.json --json-lines --input in.jsonl --output out.jsonl

  grammask generate --strategy draft --stream --regex "[0-9]+" "How many legs do three spiders have?"

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
            help='"smollm2", a folder, a .gguf file, a hub id such as org/model, or a hosted model as provider:name.',
        ),
    ] = "smollm2",
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", envvar="GRAMMASK_BASE_URL", metavar="URL", help="Server with OpenAI's interface that has it."
        ),
    ] = None,
    schema: SchemaOption = None,
    type_name: TypeOption = None,
    regex: RegexOption = None,
    choice: ChoiceOption = None,
    grammar: GrammarOption = None,
    any_json: JsonOption = False,
    property_order: PropertyOrderOption = PropertyOrder.SCHEMA,
    whitespace: WhitespaceOption = FLEXIBLE,
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
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Longest output, in tokens. The output is completed within them.")
    ] = 512,
    truncate: Annotated[
        Truncate, typer.Option("--truncate", help='"allow" cuts outputs at --max-tokens instead.')
    ] = Truncate.NEVER,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="End the output after so many seconds.")
    ] = None,
    strategy: Annotated[
        StrategyName | None,
        typer.Option(
            "--strategy",
            help="Search with a beam, write a free draft first, reason in a field, let thinking tags through, or vote.",
        ),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="How many outputs; with --strategy vote, how many vote.")
    ] = None,
    vote_on: Annotated[
        str | None, typer.Option("--vote-on", metavar="FIELD", help="Vote on one member of the value, such as total.")
    ] = None,
    method: Annotated[
        Method, typer.Option("--method", help='"smc" corrects the bias of masking by sequential Monte Carlo.')
    ] = Method.MASK,
    particles: Annotated[
        int | None, typer.Option("--particles", min=1, help="Outputs that --method smc carries along (8).")
    ] = None,
    heal: Annotated[
        bool, typer.Option("--heal", help="With --raw, let the last token of the prompt grow (token healing).")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            "-t",
            help="0 always takes the likeliest token. By default 0; 0.7 for several outputs, 1 for --method smc.",
        ),
    ] = None,
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
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With --json-lines, append results here; a run that was interrupted goes on.",
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="With --json-lines, outputs written at once.")
    ] = 8,
    stats: Annotated[bool, typer.Option("--stats", help="Token counts and speed, on standard error.")] = False,
) -> None:
    """Write text that satisfies a constraint, and print nothing else on standard output."""
    with errors_as_exit_codes(), _usage_errors():
        constraint = ConstraintOptions(
            schema, type_name, regex, choice or [], grammar, any_json, property_order, whitespace
        ).resolve()
        prompts = _Prompts(system, read_messages(str(messages)) if messages else [], raw)
        way = Way(strategy, n, vote_on, method, particles)
        options = {
            "sampling": _sampling(way.default_temperature if temperature is None else temperature, top_p, top_k, seed),
            "max_tokens": max_tokens,
            "truncate": truncate.value,
            "stop": stop or [],
            "timeout": timeout,
            **({"heal": True} if heal else {}),
            **way.options(),
        }
        way.check(options)
        job = _Job(constraint, options)
        if json_lines:
            if stream:
                raise UsageError("--stream and --json-lines exclude each other")
            requests = read_requests(input_path or "-")
            code = _generate_lines(_load(model, base_url), prompts, prompt, requests, job, output, batch_size)
        else:
            if output is not None:
                raise UsageError("--output goes with --json-lines; a single output is on standard output")
            text = _prompt_text(prompt, input_path)
            code = _generate_one(_load(model, base_url), prompts, text, job, stream=stream, stats=stats)
        raise typer.Exit(code)


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """Options that turn out to be impossible are wrong usage."""
    from grammask.decoding.budget import BudgetTooSmall
    from grammask.decoding.vote import MissingField

    try:
        yield
    except (BudgetTooSmall, MissingField) as error:
        raise UsageError(str(error)) from error


@dataclasses.dataclass(frozen=True)
class _Prompts:
    """What stands around every prompt."""

    system: str | None
    before: list[dict[str, Any]]
    raw: bool

    def build(self, model: LanguageModel, prompt: str | list[dict[str, Any]]) -> Prompt:
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
    """What is asked of the model for every prompt.

    Attributes:
        options: of ``LanguageModel.generate``.
    """

    constraint: Any
    options: dict[str, Any]


def _sampling(temperature: float, top_p: float | None, top_k: int | None, seed: int | None) -> Any:
    from grammask.sampling import Sampling

    try:
        return Sampling(temperature=temperature, top_p=top_p, top_k=top_k, seed=seed)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def _load(name: str, base_url: str | None) -> LanguageModel:
    from grammask.hosted import is_hosted, load_hosted
    from grammask.models import load_model

    if base_url is not None or is_hosted(name):
        return load_hosted(name, base_url=base_url)
    return load_model(name)


def _prompt_text(prompt: str | None, input_path: str | None) -> str:
    """The prompt, then the input text, with an empty line between them."""
    if input_path is None and (prompt is not None or not stdin_is_piped()):
        if prompt is None:
            raise UsageError("no prompt: give it as an argument, with --input FILE, or on standard input")
        return prompt
    text = read_text(input_path or "-").rstrip("\r\n")
    return text if prompt is None else f"{prompt}\n\n{text}"


def _generate_one(
    model: LanguageModel, prompts: _Prompts, text: str, job: _Job, *, stream: bool, stats: bool
) -> ExitCode:
    output = model.stream(prompts.build(model, text), job.constraint, **job.options)
    try:
        for event in output.events():
            if stream and event.channel == "output":
                _print(event.text, end="")
            elif stream:
                typer.secho(event.text, nl=False, err=True, dim=True)
    except KeyboardInterrupt:
        if stream:
            _print("")
        raise
    result = output.result
    if result.samples and result.vote is None:
        for sample in result.samples[1:] if stream else result.samples:
            _print(("\n" if stream else "") + sample.text, end="" if stream else "\n")
        if stream:
            _print("")
    else:
        _print("" if stream else result.text)
    if stats:
        note(_summary(result))
    incomplete = next((found for found in (result, *result.samples) if not found.complete), None)
    if incomplete is not None and result.vote is None:
        complain(_why_incomplete(incomplete))
        return ExitCode.INCOMPLETE
    if not result.complete:
        complain("none of the samples is complete")
        return ExitCode.INCOMPLETE
    return ExitCode.OK


def _generate_lines(
    model: LanguageModel,
    prompts: _Prompts,
    instruction: str | None,
    requests: list[Request],
    job: _Job,
    output: Path | None,
    batch_size: int,
) -> ExitCode:
    """One output line for each request; what fails is reported in its line and does not stop the others."""
    from grammask.decoding.many import as_finished, generate_many, reporting
    from grammask.decoding.result_file import as_line

    asked = []
    for request in requests:
        prompt = request.prompt
        if instruction is not None and isinstance(prompt, str):
            prompt = f"{instruction}\n\n{prompt}"
        asked.append(prompts.build(model, prompt))
    fields = [request.fields for request in requests]
    if output is not None:
        try:
            results = generate_many(
                model,
                asked,
                job.constraint,
                output=output,
                batch_size=batch_size,
                progress=True,
                options=job.options,
                fields=fields,
            )
        except ValueError as error:
            raise UsageError(str(error)) from error
        return _worst(results)
    finished: dict[int, Result[Any]] = {}
    printed: list[Result[Any]] = []
    with reporting(True, len(asked)) as report:
        for number, result in as_finished(
            model, asked, job.constraint, job.options, todo=range(len(asked)), batch_size=batch_size
        ):
            finished[number] = result
            report(len(finished) + len(printed), len(asked))
            while len(printed) in finished:
                ready = finished.pop(len(printed))
                line = {**fields[len(printed)], **as_line(ready)}
                if not ready.complete and ready.error is None:
                    line["error"] = _why_incomplete(ready)
                _print(json.dumps(line, ensure_ascii=False))
                printed.append(ready)
    return _worst(printed)


def _worst(results: list[Result[Any]]) -> ExitCode:
    worst = ExitCode.OK
    for result in results:
        if result.error is not None:
            worst = max(worst, ExitCode.MODEL)
        elif not result.complete:
            worst = max(worst, ExitCode.INCOMPLETE)
    return worst


def _why_incomplete(result: Result[Any]) -> str:
    if result.finish_reason == "length":
        return (
            f"the output was cut after {result.usage.completion_tokens} tokens, before it was complete (--max-tokens)"
        )
    if result.finish_reason == "timeout":
        return "the output was cut before it was complete (--timeout)"
    return "the output ended before it was complete (--stop)"


def _summary(result: Result[Any]) -> str:
    usage = result.usage
    summary = (
        f"{usage.completion_tokens} tokens ({usage.forced_tokens} forced, {usage.sampled_tokens} sampled) in "
        f"{usage.model_calls} forward passes after a prompt of {usage.prompt_tokens}; "
        f"{result.seconds:.2f} s, {result.tokens_per_second:.1f} tokens/s after the prompt; {result.finish_reason}"
    )
    if result.vote is not None:
        counts = ", ".join(f"{said!r}: {count}" for said, count in result.vote.counts)
        tied = ", tied" if result.vote.tied else ""
        summary += f"\nvotes: {counts}; agreement {result.vote.agreement:.0%}{tied}; invalid {result.vote.invalid}"
    if result.particles is not None:
        report = result.particles
        summary += (
            f"\nparticles: {report.effective:.1f} effective of {len(report.outputs)}, "
            f"{report.resamplings} resamplings, log evidence {report.log_evidence:.2f}"
        )
    return summary


def _print(text: str, end: str = "\n") -> None:
    """Writes to standard output as UTF-8, whatever the locale says, and at once."""
    sys.stdout.flush()
    sys.stdout.buffer.write((text + end).encode("utf-8"))
    sys.stdout.buffer.flush()
