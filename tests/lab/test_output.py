"""Results as pages and pictures, and the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import grammask.models
from grammask import lab
from grammask.cli.app import app
from grammask.lab.render import markdown, web_page
from grammask.lab.report import Plot, Series, text_of
from support.models import indifferent_model


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs ``grammask lab`` on a toy model, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grammask.models, "load_model", lambda name, **place: indifferent_model())
    return lambda *arguments: CliRunner().invoke(app, ["lab", *arguments], env={"COLUMNS": "160"})


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "–"),
        ("a|b", "a|b"),
        (1234, "1,234"),
        (0.0, "0"),
        (1.23456e-5, "1.23e-05"),
        (12345.6, "12,346"),
        (2.5, "2.5"),
    ],
)
def test_cells(cell: Any, text: str) -> None:
    assert text_of(cell) == text


def test_pages() -> None:
    result = lab.run("mass", indifferent_model(), lab.Options(steps=3))
    page = markdown([result], {"mass": {"kept": "mass-kept.svg"}}, "grammask lab mass")
    assert "# Lab results" in page
    assert "![Probability kept at each step](mass-kept.svg)" in page
    assert "| top_k 40 |" in page
    assert "Made by: grammask lab mass" in page
    web = web_page([result], {"mass": {"kept": "<svg/>"}}, 'grammask lab mass --model "<x>"')
    assert "<svg/>" in web
    assert "&lt;x&gt;" in web
    assert "<td>top_k 40</td>" in web


LINE = Plot(
    "l", "Line", "x", "y", (Series("a", (1.0, 2.0), (3.0, 4.0)), Series("b", (1.0, 2.0), (1.0, 1.5))), log_x=True
)
BARS = Plot("b", "Bars", "", "y", (Series("a", ("one", "a rather long name"), (3.0, 4.0)),), kind="bar", log_y=True)


@pytest.mark.parametrize("plot", [LINE, BARS], ids=["line", "bar"])
def test_pictures(plot: Plot) -> None:
    pytest.importorskip("matplotlib")
    from grammask.lab.drawing import draw

    assert draw(plot, "png").startswith(b"\x89PNG")
    svg = draw(plot, "svg")
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert plot.title in text
    assert draw(plot, "svg") == svg


def test_pictures_need_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    from grammask.lab import drawing

    monkeypatch.setattr(drawing.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(lab.LabError, match=r'pip install "grammask\[lab\]"'):
        drawing.draw(LINE, "png")


def test_list(run: Any) -> None:
    result = run()
    assert result.exit_code == 0
    assert all(name in result.stdout for name in lab.EXPERIMENTS)


def test_one_experiment(run: Any) -> None:
    result = run("seeds", "--steps", "6", "--seed", "3")
    assert result.exit_code == 0
    assert "company in the batch" in result.stdout
    assert "The same tokens with" in result.stdout


def test_json_lines(run: Any) -> None:
    result = run("summation", "--steps", "2", "--json-output")
    assert json.loads(result.stdout)["experiment"] == "summation"


def test_all_with_files(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("all", "--steps", "4", "--out", "results", "--plots", "svg", "--page", "markdown")
    assert result.exit_code == 0, result.stderr
    assert "left out batching" in result.stderr
    written = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"index.md", "mass.json", "nucleus-sizes.svg", "versions.json"} <= written
    page = (tmp_path / "results" / "index.md").read_text(encoding="utf-8")
    for line in page.splitlines():
        if line.startswith("!["):
            assert line[line.index("](") + 2 : -1] in written
    assert json.loads((tmp_path / "results" / "mass.json").read_text(encoding="utf-8"))["steps_counted"] == 24


def test_html_without_pictures(run: Any, tmp_path: Path) -> None:
    assert run("mass", "--steps", "2", "--out", "results", "--plots", "none").exit_code == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"index.html", "mass.json"}


def test_versions_against_an_earlier_run(run: Any) -> None:
    assert run("versions", "--steps", "3", "--out", "before", "--plots", "none").exit_code == 0
    result = run("versions", "--against", "before/versions.json")
    assert result.exit_code == 0
    assert "bit for bit" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nucleos"], 2, "no experiment 'nucleos'"),
        (["mass", "--against", "x.json"], 2, "goes with the experiment versions"),
        (["versions", "--against", "x.json"], 2, "cannot read x.json"),
        (["versions", "--against", "list.json"], 2, "no JSON object"),
        (["versions", "--against", "text.json"], 2, "is not JSON"),
        (["versions", "--against", "other.json"], 4, "what to compare with"),
        (["batching"], 4, "does not run through transformers"),
        (["mass", "--steps", "2", "--out", "text.json"], 2, "cannot write to text.json"),
    ],
)
def test_errors(run: Any, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "other.json").write_text("{}")
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr


def test_the_lab_needs_no_heavy_package() -> None:
    """Importing the lab and all experiments loads neither torch nor matplotlib nor rich."""
    import sys

    program = (
        "import sys\nfrom grammask import lab\nfor name in lab.EXPERIMENTS: lab.find(name)\n"
        "import grammask.lab.render, grammask.lab.drawing\n"
        "print([m for m in ('torch', 'transformers', 'matplotlib', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
