"""Diagnostics on standard error, and errors as messages with an exit status instead of tracebacks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.markup import escape

from grammask.cli.exit_codes import ExitCode


def diagnostics() -> Console:
    """A console on the current standard error (made anew each time, since tests and callers may redirect it)."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def note(message: str) -> None:
    """A line for the person at the terminal; never part of the result."""
    diagnostics().print(escape(message), style="dim")


def complain(message: str) -> None:
    """An error message."""
    diagnostics().print(f"[bold red]error:[/] {escape(message)}")


class UsageError(Exception):
    """Options that do not make sense together, or a file that cannot be read."""


@contextlib.contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """Turns the errors that a user can act on into a message and an exit status. Programming errors pass through."""
    from grammask.decoding.result import InvalidValue
    from grammask.engine.errors import ConstraintError
    from grammask.engine.vocabulary import VocabularyError
    from grammask.models.errors import ModelError
    from grammask.sampling.errors import SamplingError

    try:
        yield
    except UsageError as error:
        complain(str(error))
        raise typer.Exit(ExitCode.USAGE) from error
    except ConstraintError as error:
        complain(f"{_kind(error)}: {error}")
        raise typer.Exit(ExitCode.CONSTRAINT) from error
    except (InvalidValue, ModelError, SamplingError, VocabularyError) as error:
        complain(str(error))
        raise typer.Exit(ExitCode.MODEL) from error
    except KeyboardInterrupt:
        complain("interrupted")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _kind(error: Exception) -> str:
    """The class of a constraint error in words: ``UnsupportedConstraint`` is "unsupported constraint"."""
    name = type(error).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
