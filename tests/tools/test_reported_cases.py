"""The tool rows of the cases made after public bug reports on other engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import grammask
from grammask.constraints.tools import ToolCallError, ToolCalls
from support.grammars import accepts, byte_vocabulary


def test_every_tool_case(data_dir: Path) -> None:
    content = json.loads((data_dir / "reported-cases.json").read_text(encoding="utf-8"))
    vocabulary = byte_vocabulary()
    seen = 0
    for case in content if isinstance(content, list) else content["cases"]:
        if case["kind"] != "tool":
            continue
        seen += 1
        spec = case["spec"]
        calls = ToolCalls(spec["tools"], spec["format"], choice=spec["tool_choice"])
        compiled = grammask.compile(calls, vocabulary)
        for text in [*case["valid"], *case.get("valid_if_supported", [])]:
            assert accepts(compiled, text), (case["id"], text)
            assert bool(calls.parse(text)) == ("<" in text)
        for text in case["invalid"]:
            assert not accepts(compiled, text), (case["id"], text)
            with pytest.raises(ToolCallError):
                calls.parse(text)
    assert seen == 3
