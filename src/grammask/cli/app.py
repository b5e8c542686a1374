"""The program: its commands, and what they have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from grammask.cli import batch, check, explain, explore, generate, lab, providers, serve, tokens

EPILOG = """
Exit status: 0 success; 1 not valid; 2 wrong usage; 3 the constraint cannot be enforced; 4 model or tokenizer trouble;
5 the output was cut before it was complete; 130 interrupted. Standard output carries the result alone.
"""

app = typer.Typer(
    help="Language-model output that is well-formed by construction.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        import grammask

        typer.echo(grammask.__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Language-model output that is well-formed by construction."""


def _add(name: str, command: Callable[..., Any], examples: str) -> None:
    """Registers a command; its examples follow its description in ``--help``."""
    description = inspect.getdoc(command) or ""
    app.command(name, help=f"{description}\n\n{_escape(examples)}")(command)


def _escape(text: str) -> str:
    """Square brackets in examples are brackets, not markup."""
    return text.replace("[", "\\[")


_add("generate", generate.generate, generate.EXAMPLES)
_add("batch", batch.batch, batch.EXAMPLES)
_add("check", check.check, check.EXAMPLES)
_add("tokens", tokens.tokens, tokens.EXAMPLES)
_add("explain", explain.explain, explain.EXAMPLES)
_add("providers", providers.providers, providers.EXAMPLES)
_add("lab", lab.lab, lab.EXAMPLES)
_add("explore", explore.explore, explore.EXAMPLES)
_add("serve", serve.serve, serve.EXAMPLES)
_add("proxy", serve.proxy, serve.PROXY_EXAMPLES)
