"""Figures that are put into the page of benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.publish import PAGE, filled, sections
from benchmarks.regex_grammar import constraint_cases

from benchmarks import micro

EMPTY = {"machine": {"date": "today", "cores": 2, "processor": "P", "system": "S", "python": "3"}, "tokenizer": "t"}


def test_marked_sections_are_replaced_and_the_rest_is_kept() -> None:
    page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n"
    page = filled(page, {"x": "new \\1", "y": "more"})
    assert page == "a\n<!-- begin x -->\n\nnew \\1\n\n<!-- end x -->\nb\n<!-- begin y -->\n\nmore\n\n<!-- end y -->\n"
    assert filled(page, {"x": "new \\1", "y": "more"}) == page


def test_a_section_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="no section z"):
        filled("", {"z": ""})


def test_the_page_has_every_section() -> None:
    comparison = {**EMPTY, "summary": {"one": _no_cases()}, "ratios": {}}
    table = {"title": "T", "columns": ["a", "b"], "rows": [["x", "1"]]}
    names = ("calls", "vocabulary", "batch", "sizes", "growth")
    micro_data = {name: {"table": table, "machine": EMPTY["machine"]} for name in names}
    steps = {side: {"p50": 1.0 + place, "p95": 5.0} for place, side in enumerate(("grammask", "transformers"))}
    sampled = {
        **EMPTY, "versions": {"torch": "9"}, "vocabulary": 7, "clock": "CPU time", "others": ["transformers", "vllm"],
        "rows": [{"logits": "flat", "batch": 1, "settings": "top_p", **steps, "vllm": {"p50": 1.5, "p95": 2.0}},
                 {"logits": "flat", "batch": 1, "settings": "typical_p", **steps}],
    }  # fmt: skip
    data = {"maskbench": comparison, "regex_grammar": comparison, "micro": micro_data, "sampling": sampled}
    page = filled(PAGE.read_text("utf-8"), sections(data))
    assert page.count("| x | 1 |") == len(names)
    assert "| flat | 1 | top_p | 1 / 5 | 2 / 5 | 2.0 | 2 / 2 | 1.5 |" in page
    assert "| flat | 1 | typical_p | 1 / 5 | 2 / 5 | 2.0 | – | – |" in page
    assert "2.0 to 2.0 times than transformers, 1.5 to 1.5 times than vllm" in page


def test_sections_without_figures_stay() -> None:
    comparison = {**EMPTY, "summary": {"one": _no_cases()}, "ratios": {}}
    assert sections({"regex_grammar": comparison}).keys() == {"regex_grammar"}


def _no_cases() -> dict[str, object]:
    from benchmarks.maskbench.summary import EngineResults, summarize

    return summarize(EngineResults("one", "1"))


def test_constraints_are_what_they_say() -> None:
    """Every regular expression takes its valid outputs and refuses the invalid ones, by Python's own reading."""
    import re

    cases = constraint_cases()
    assert {case.kind for case in cases} == {"regex", "gbnf"}
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert {instance.valid for instance in case.instances} == {True, False}
        if case.kind == "regex":
            for instance in case.instances:
                matched = re.fullmatch(case.source, instance.text) is not None
                assert matched == instance.valid, (case.id, instance.text)


def test_growing_schemas_take_the_prefix_that_is_measured() -> None:
    import json

    import grammask

    vocabulary = grammask.Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], eos_token_ids=[256])
    for make, _ in micro.SHAPES.values():
        schema = make(3)
        json.loads(schema)
        matcher = grammask.compile(grammask.JsonSchema(schema), vocabulary).matcher()
        assert matcher.accept_bytes(b'{"property_0": ')


def test_the_calls_are_measured() -> None:
    table, data = micro.calls()
    assert {"fill_mask", "accept", "forced_tokens"} <= data["nanoseconds"].keys()
    assert all(value > 0 for value in data["nanoseconds"].values())
    assert len(table.rows) == len(data["nanoseconds"])


def test_the_peers_are_pinned() -> None:
    lines = (Path(PAGE).parents[1] / "benchmarks" / "requirements.txt").read_text("utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    assert pinned == {"llguidance", "outlines-core", "xgrammar"}
