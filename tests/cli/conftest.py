"""Running the program in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import grammask.models
from grammask.cli.app import app
from grammask.models import Prompt
from support.models import WritingModel

RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "size": {"enum": ["small", "large"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["name", "size"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Run:
    """What one run of the program gave."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    """``run("check", "--regex", "a+", "aa", stdin="...")``, in a folder of its own with record.json in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "record.json").write_text(json.dumps(RECORD), encoding="utf-8")

    def run(*arguments: str, stdin: str | bytes | None = None, env: Mapping[str, str] | None = None) -> Run:
        result = CliRunner().invoke(app, list(arguments), input=stdin, env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Run(result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())

    return run


class Recorder:
    """Stands in for ``load_model``: gives models that write the texts in turn, and keeps the prompts they got."""

    def __init__(self, texts: Sequence[str], **options: Any) -> None:
        self._texts = list(texts)
        self._options = options
        self.prompts: list[Prompt] = []
        self.names: list[str] = []

    def __call__(self, name: str) -> WritingModel:
        recorder = self
        self.names.append(name)

        class Recording(WritingModel):
            def encode(self, prompt: Prompt) -> list[int]:
                recorder.prompts.append(prompt)
                self._goal = recorder._texts[len(recorder.prompts) - 1].encode()
                return super().encode(prompt)

        return Recording("", **self._options)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recorder]:
    """``writes("text", ...)`` lets the model of the next runs write these texts, one a prompt."""

    def writes(*texts: str, **options: Any) -> Recorder:
        recorder = Recorder(texts, **options)
        monkeypatch.setattr(grammask.models, "load_model", recorder)
        return recorder

    return writes
