"""The program as a whole: help, version, and the message when its extra is missing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import pytest

import grammask
from grammask import cli


@pytest.mark.parametrize("command", ["generate", "check", "tokens", "explain"])
def test_help_has_examples_and_exit_codes(run: Callable[..., Any], command: str) -> None:
    result = run(command, "--help")
    assert result.code == 0
    assert "Examples:" in result.out
    assert f"grammask {command} --" in result.out
    assert "Exit status" in result.out


def test_help_lists_the_commands(run: Callable[..., Any]) -> None:
    result = run("--help")
    assert all(f" {command} " in result.out for command in ("generate", "check", "tokens", "explain"))
    assert "130 interrupted" in result.out.replace("\n", " ")


def test_examples_in_help_keep_their_brackets(run: Callable[..., Any]) -> None:
    assert "[0-9]{4}-[0-9]{2}-[0-9]{2}" in run("generate", "--help").out


def test_version(run: Callable[..., Any]) -> None:
    assert run("--version").out == f"{grammask.__version__}\n"


def test_unknown_options_are_wrong_usage(run: Callable[..., Any]) -> None:
    assert run("check", "--nonsense").code == 2
    assert run("nonsense").code == 2


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "typer" else real(name, *rest))
    monkeypatch.setattr(sys, "argv", ["grammask", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert 'pip install "grammask[cli]"' in capsys.readouterr().err
