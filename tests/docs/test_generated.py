"""The parts of the site that are generated: every exported name is there, and docstrings survive the way."""

from __future__ import annotations

import importlib.util
import re

import grammask
from support.pages import ROOT

_SPEC = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "hooks" / "generated.py")
assert _SPEC is not None
assert _SPEC.loader is not None
generated = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generated)


def test_every_exported_name_is_described() -> None:
    page = generated.on_page_markdown((ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8"))
    described = set(re.findall(r"\{: #grammask\.(\w+) \}", page))
    wanted = {name for name in grammask.__all__ if callable(getattr(grammask, name))}
    assert wanted <= described
    assert ":::" not in page


def test_a_docstring() -> None:
    text = generated.described("grammask.Sampling.replace".rpartition(".")[0])
    assert "**Raises**" in text
    assert "* `ValueError`: a value out of its range" in text
    assert "top_k: int | None = None" in text


def test_the_suite() -> None:
    table = generated.suite()
    for draft in ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"):
        row = next(line for line in table.splitlines() if line.startswith(f"| {draft} "))
        tests, right = (int(cell.replace(",", "")) for cell in row.split("|")[2:4])
        assert 0 < right <= tests
