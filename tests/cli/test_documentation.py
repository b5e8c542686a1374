"""The reference of the command line names every command, option and exit status, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from grammask.cli.app import app
from grammask.cli.exit_codes import ExitCode

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def options() -> set[str]:
    found = {"--help"}
    group = typer.main.get_command(app)
    for command in group.commands.values():  # type: ignore[attr-defined]
        found.update(
            name
            for parameter in command.params
            for name in (*parameter.opts, *parameter.secondary_opts)
            if name.startswith("-")
        )
    return found


def test_options() -> None:
    code = " ".join(re.findall(r"`([^`]*)`", REFERENCE.replace("```", "")))
    named = {name for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", code) if name != "--no-deps"}
    assert named == options() - {"-h"}


def test_commands() -> None:
    assert {f"## {command}" for command in typer.main.get_command(app).commands} <= set(REFERENCE.splitlines())  # type: ignore[attr-defined]


def test_exit_statuses() -> None:
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", REFERENCE, re.MULTILINE)} == set(ExitCode)
