"""Reading and choosing cases."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from benchmarks.maskbench.cases import Case, case_of, read_cases, select, spread
from benchmarks.tokenizer import end_of_text

RECORD = {
    "id": "one",
    "schema": {"type": "string", "const": "é"},
    "tests": [{"valid": True, "data": "é"}, {"valid": False, "data": [1, {"a": None}]}],
}


def cases(*ids: str) -> list[Case]:
    return [Case(name, "json_schema", "{}", ()) for name in ids]


@pytest.mark.parametrize("packed", [False, True])
def test_instances_are_written_as_json_dumps_does_without_escapes(tmp_path: Path, packed: bool) -> None:
    line = json.dumps(RECORD) + "\n\n"
    path = tmp_path / ("cases.jsonl.gz" if packed else "cases.jsonl")
    path.write_bytes(gzip.compress(line.encode()) if packed else line.encode())
    (case,) = read_cases(path)
    assert case.id == "one"
    assert json.loads(case.source) == RECORD["schema"]
    assert [(i.valid, i.text) for i in case.instances] == [(True, '"é"'), (False, '[1, {"a": null}]')]


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "x", "schema": {}}', '{"id": "x", "schema": {}, "tests": [{}]}'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(RECORD) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"cases\.jsonl:2 is no case"):
        list(read_cases(path))


def test_keys_of_the_schema_keep_their_order() -> None:
    case = case_of({"id": 1, "schema": {"b": 1, "a": 2}, "tests": []})
    assert case.source == '{"b": 1, "a": 2}'


def test_selection() -> None:
    some = cases("a1", "b1", "a2", "b2", "a3", "b3", "a4")
    assert [c.id for c in select(some, containing="a")] == ["a1", "a2", "a3", "a4"]
    assert [c.id for c in select(some, containing="a", every=2)] == ["a1", "a3"]
    assert [c.id for c in select(some, limit=2)] == ["a1", "b1"]
    drawn = select(some, sample=3, seed=7)
    assert drawn == select(some, sample=3, seed=7)
    assert len({c.id for c in drawn}) == 3
    assert [c.id for c in drawn] == sorted((c.id for c in drawn), key=[c.id for c in some].index)
    assert select(some, sample=100) == some


def test_spread_covers_the_range_evenly() -> None:
    assert spread(10, None) == spread(10, 10) == spread(10, 99) == set(range(10))
    assert spread(10, 3) == {0, 3, 6}
    assert spread(10, 0) == set()


def test_end_of_text_prefers_the_end_of_a_message() -> None:
    assert end_of_text({"<|endoftext|>": 0, "<|im_end|>": 2}) == 2
    with pytest.raises(ValueError, match="--eos-token-id"):
        end_of_text({"<pad>": 0})
