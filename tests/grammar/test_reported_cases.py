"""The GBNF and Lark rows of the cases made after public bug reports on other engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import grammask
from support.grammars import byte_vocabulary

GRAMMARS = {"gbnf": grammask.Grammar.gbnf, "lark": grammask.Grammar.lark}


def test_every_grammar_case(data_dir: Path) -> None:
    content = json.loads((data_dir / "reported-cases.json").read_text(encoding="utf-8"))
    cases: list[dict[str, Any]] = content if isinstance(content, list) else content["cases"]
    vocabulary = byte_vocabulary()
    seen = 0
    for case in cases:
        if case["kind"] not in GRAMMARS:
            continue
        seen += 1
        if not case["valid"]:
            with pytest.raises(grammask.ConstraintSyntaxError, match="line 2"):
                GRAMMARS[case["kind"]](case["spec"])
            continue
        compiled = grammask.compile(GRAMMARS[case["kind"]](case["spec"]), vocabulary)
        for text in case["valid"]:
            matcher = compiled.matcher()
            for byte in text.encode():
                assert byte in matcher.next_bytes(), (case["id"], text)
                assert matcher.accept_bytes(bytes([byte]))
            assert matcher.is_complete, (case["id"], text)
        for text in case["invalid"]:
            matcher = compiled.matcher()
            assert not (matcher.accept_bytes(text.encode()) and matcher.is_complete), (case["id"], text)
    assert seen >= 8
