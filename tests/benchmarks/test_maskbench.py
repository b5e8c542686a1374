"""The comparison end to end on small engines and, with grammask, on a small vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.clocks import Stopwatch
from benchmarks.engines.base import Engine, Refused, Session, no_error
from benchmarks.maskbench import cli, report
from benchmarks.maskbench.cases import Case as CaseSource
from benchmarks.maskbench.cases import Instance
from benchmarks.maskbench.measure import Case, Measurement, Outcome
from benchmarks.maskbench.pool import Answer, EngineUnavailable, Worker
from benchmarks.maskbench.summary import EngineResults, both_passed, case_records, judge, resident_curve, summarize

END = 9
"""The end-of-text token of the toy engine, whose vocabulary is 0 .. 39."""


class Words(Engine[list[list[int]]]):
    """Allows exactly the words listed in the "schema", a JSON list of lists of token ids."""

    def __init__(self, fault: Callable[[int], str] = lambda position: "") -> None:
        self.allocate(40)
        self._fault = fault

    def json_schema(self, schema: str) -> list[list[int]]:
        words: list[list[int]] = json.loads(schema)
        if not words:
            raise Refused("empty", "there is no word")
        return words

    def regex(self, pattern: str) -> list[list[int]]:
        raise Refused("regex", pattern)

    def session(self, compiled: list[list[int]]) -> Session:
        taken: list[int] = []
        return Session(
            partial(self._fill, compiled, taken), taken.append, partial(self._forced, compiled, taken), no_error
        )

    def _next(self, words: list[list[int]], taken: list[int]) -> set[int]:
        going = [word for word in words if word[: len(taken)] == taken]
        return {word[len(taken)] if len(word) > len(taken) else END for word in going}

    def _fill(self, words: list[list[int]], taken: list[int]) -> None:
        if message := self._fault(len(taken)):
            raise RuntimeError(message)
        self.mask[:] = 0
        for token in self._next(words, taken):
            self.mask[token // 32] |= 1 << (token % 32)

    def _forced(self, words: list[list[int]], taken: list[int]) -> list[int]:
        ahead: list[int] = []
        while len(following := self._next(words, taken + ahead)) == 1 and END not in following:
            ahead += following
        return ahead


def measure(words: list[list[int]], instances: Sequence[Sequence[int]], **options: Any) -> Measurement:
    engine = Words(**options)
    return Case(engine, END, Stopwatch(), seconds=60).run("json_schema", json.dumps(words), instances, forced=True)


def test_accepted_refused_and_incomplete() -> None:
    result = measure([[1, 35, 3]], [[1, 35, 3], [1, 2, 3], [1, 35], [1, 35, 3, 3]])
    assert result.outcomes == [Outcome(True, 3), Outcome(False, 1), Outcome(False, 2), Outcome(False, 3)]


def test_a_mask_before_every_token_and_one_for_the_end() -> None:
    result = measure([[1, 2, 3]], [[1, 2, 3], [1, 4]])
    assert len(result.mask_wall) == len(result.mask_cpu) == 4 + 2
    assert len(result.accept_wall) == len(result.accept_cpu) == 3 + 1
    assert result.first_mask is not None
    assert result.first_mask[0] >= result.compile[0]
    assert result.slowest[1:] in {(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)}


def test_forced_tokens_are_counted_along_accepted_instances_only() -> None:
    result = measure([[1, 2, 3], [1, 5, 6, 7]], [[1, 2, 3], [1, 5, 6, 7], [1, 9]])
    assert result.forced == (7, (1 + 1) + (1 + 2))
    assert result.forced_calls[0] > 0


def test_a_refused_schema_keeps_kind_and_message() -> None:
    assert measure([], [[1]]).refusal == ("empty", "there is no word")


def test_an_engine_that_gives_up_is_an_error_and_no_refusal_of_the_instance() -> None:
    result = measure([[1, 2]], [[1, 3]], fault=lambda position: "lost" if position else "")
    assert result.outcomes == [Outcome(False, 1, "RuntimeError: lost")]
    assert judge(Answer(result), [False])[0] == "error"


def test_time_that_runs_out_ends_the_case() -> None:
    engine = Words()
    result = Case(engine, END, Stopwatch(), seconds=-1).run("json_schema", "[[1]]", [[1]], forced=False)
    assert result.timed_out
    assert judge(Answer(result), [True])[0] == "timeout"


def test_measurements_travel_as_json() -> None:
    result = measure([[1, 2, 3]], [[1, 2, 3], [1, 4]])
    again = Measurement.from_json(json.loads(json.dumps(result.to_json())))
    assert again.outcomes == result.outcomes
    assert list(again.mask_cpu) == list(result.mask_cpu)
    assert tuple(again.slowest) == tuple(result.slowest)


@pytest.mark.parametrize(
    ("accepted", "valid", "status"),
    [
        ([True, False], [True, False], "passed"),
        ([True, True], [True, False], "over"),
        ([False, False], [True, False], "under"),
        ([False, True], [True, False], "under"),
        ([], [], "passed"),
    ],
)
def test_verdicts(accepted: list[bool], valid: list[bool], status: str) -> None:
    answer = Answer(Measurement(outcomes=[Outcome(yes, 1) for yes in accepted]))
    assert judge(answer, valid)[0] == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(Measurement(timed_out=True), "timeout"), "timeout"),
        (Answer(Measurement(), "crash: exit code -11"), "crash"),
        (Answer(Measurement(), "PanicException: index out of bounds"), "crash"),
        (Answer(Measurement(refusal=("Unsupported", "not"))), "refused"),
    ],
)
def test_verdicts_without_outcomes(answer: Answer, status: str) -> None:
    assert judge(answer, [True])[0] == status


def results_of(name: str, cases: dict[str, tuple[list[bool], int]]) -> EngineResults:
    """Cases of one valid and one invalid instance: what was accepted, and the time of each of three masks in µs."""
    results = EngineResults(name, "1.0")
    for case_id, (accepted, microseconds) in cases.items():
        times = [microseconds * 1000] * 3
        measured = Measurement(
            compile=(2_000_000, 1_000_000),
            first_mask=(2_100_000, 1_100_000),
            mask_wall=[2 * t for t in times],
            mask_cpu=times,
            accept_wall=[1000],
            accept_cpu=[1000],
            outcomes=[Outcome(yes, 1) for yes in accepted],
            slowest=(times[0], 0, 0),
            forced=(10, 4),
        )
        results.add(case_id, Answer(measured), [True, False])
    return results


def test_summary_counts_and_times() -> None:
    results = results_of("one", {"a": ([True, False], 10), "b": ([True, True], 30), "c": ([False, True], 50)})
    summary = summarize(results)
    assert summary["statuses"] == {
        "passed": 1, "refused": 0, "over": 1, "under": 1, "error": 0, "timeout": 0, "crash": 0,
    }  # fmt: skip
    assert (summary["cases_over"], summary["cases_under"]) == (2, 1)
    assert summary["times"]["mask"]["cpu"] == {
        "count": 9, "p50": 30, "p90": 50, "p99": 50, "mean": 30, "max": 50,
    }  # fmt: skip
    assert summary["times"]["mask"]["wall"]["p50"] == 60
    assert summary["times"]["compile"]["cpu"]["count"] == 3
    assert summary["forced"]["share"] == 0.4
    record = case_records(results)["b"]
    assert (record["status"], record["masks"], record["mask_sum"], record["mask_max"]) == ("over", 3, 90, 30)


def test_memory_is_sampled_evenly_and_to_the_end() -> None:
    assert resident_curve([]) == {"cases": [], "megabytes": []}
    assert resident_curve([1_000_000, 3_000_000]) == {"cases": [1, 2], "megabytes": [1, 3]}
    curve = resident_curve([i * 1_000_000 for i in range(1000)], points=10)
    assert curve["cases"] == [*range(1, 1000, 100), 1000]
    assert curve["megabytes"][-1] == 999


def test_ratios_compare_only_what_both_pass() -> None:
    own = results_of("own", {"a": ([True, False], 10), "b": ([True, False], 10), "c": ([True, False], 999)})
    peer = results_of("peer", {"a": ([True, False], 40), "b": ([True, True], 1), "d": ([True, False], 1)})
    assert both_passed(own, peer) == ["a"]
    data = report.ratios(own, peer)
    table = report.ratio_table("own", "peer", data)
    assert data["cases"] == 1
    assert data["times_faster"]["mask"]["cpu"] == {"p50": 4, "p90": 4, "p99": 4, "mean": 4, "max": 4}
    assert ["mask", "mean", "20.0", "80.0", "4.00×", "10.0", "40.0", "4.00×"] in table.rows


def test_comparison_names_what_changed() -> None:
    def run_of(results: EngineResults) -> dict[str, Any]:
        return {"summary": {"own": summarize(results)}, "cases": {"own": case_records(results)}}

    old = run_of(results_of("own", {"a": ([True, False], 40), "b": ([True, True], 40)}))
    new = run_of(results_of("own", {"a": ([False, False], 10), "b": ([True, False], 10)}))
    table, changed = report.comparison(old, new)
    assert changed == ["own: a passed -> under", "own: b over -> passed"]
    assert ["own mask p50", "40.0", "10.0", "4.00×"] in table.rows


def test_failures_show_the_place() -> None:
    results = results_of("own", {"a": ([False, False], 1), "b": ([True, True], 1)})
    texts = (Instance(True, "valid text"), Instance(False, "invalid text"))
    sources = {name: CaseSource(name, "json_schema", "{}", texts) for name in "ab"}
    lines = "\n".join(report.failures(results, sources, lambda text, position: text[: 5 * position], None))
    assert "## own: under (1)" in lines
    assert "instance 0 under at token 1: `valid` ⟪` text`⟫" in lines
    assert "instance 1 accepted, though invalid: `invalid text`" in lines


def test_failures_of_order_alone_are_only_counted() -> None:
    results = results_of("own", {"a": ([False, False], 1), "b": ([False, False], 1)})
    other = results_of("other", {"a": ([True, False], 1), "b": ([False, False], 1)})
    texts = (Instance(True, "valid text"), Instance(False, "invalid text"))
    sources = {name: CaseSource(name, "json_schema", "{}", texts) for name in "ab"}
    lines = report.failures(results, sources, lambda text, position: text[:position], None, other)
    assert "- 1 of them pass as other: a" in lines
    assert "- `a` **under**" not in lines
    assert "- `b` **under**" in lines


def tokenizer_of(folder: Path) -> Path:
    """A byte-level tokenizer of the 256 bytes, a few longer tokens and an end of text, as a tokenizer.json."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, "tr", "tru", "true"])}
    model = tokenizers.models.BPE(vocab=vocabulary, merges=[("t", "r"), ("tr", "u"), ("tru", "e")])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


CASES = [
    {
        "id": "object",
        "schema": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        "tests": [
            {"valid": True, "data": {"a": True}},
            {"valid": False, "data": {"a": 1}},
            {"valid": False, "data": {}},
        ],
    },
    {"id": "nothing", "schema": False, "tests": [{"valid": False, "data": 1}]},
    {"id": "mislabelled", "schema": {"type": "integer"}, "tests": [{"valid": True, "data": "x"}]},
]


def test_a_whole_run_with_grammask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    out, failures, markdown = tmp_path / "run.json", tmp_path / "failures.md", tmp_path / "run.md"
    arguments = [str(cases), "--tokenizer", str(tokenizer_of(tmp_path)), "--engines", "grammask", "--slowest", "2"]
    written = ["--json", str(out), "--failures-to", str(failures), "--markdown", str(markdown)]
    assert cli.main([*arguments, *written]) == 0

    data = json.loads(out.read_text("utf-8"))
    assert {name: case["status"] for name, case in data["cases"]["grammask"].items()} == {
        "object": "passed",
        "nothing": "refused",
        "mislabelled": "under",
    }
    assert data["cases"]["grammask"]["nothing"]["kind"] == "UnsatisfiableConstraint"
    summary = data["summary"]["grammask"]
    assert summary["times"]["compile"]["cpu"]["count"] == 2
    assert summary["times"]["mask"]["cpu"]["count"] == data["cases"]["grammask"]["object"]["masks"] + 1
    assert summary["forced"]["tokens"] > 0
    assert "mislabelled" in failures.read_text("utf-8")
    assert "| grammask" in markdown.read_text("utf-8")
    assert "3 cases" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["{cases}", "--engines", "nonsense"], "no engine 'nonsense'"),
        (["{cases}", "--filter", "no such id"], "no case is left"),
        (["{cases}", "--engines", "grammask", "--tokenizer", "no-such-tokenizer"], "no-such-tokenizer"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(CASES[0]), encoding="utf-8")
    assert cli.main([argument.format(cases=cases) for argument in arguments]) == 2
    assert message in capsys.readouterr().err


CONFIG = {
    "engine": "grammask",
    "eos_token_id": 259,
    "settings": {},
    "seconds": 60,
    "forced": False,
    "gc": False,
    "memory_bytes": 0,
}


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    worker = Worker({**CONFIG, "tokenizer": str(tokenizer_of(tmp_path))}, patience=60)
    try:
        assert worker.ask("json_schema", "true", []).failure == ""
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        assert worker.ask("json_schema", "true", []).failure.startswith("crash: exit code")
        answer = worker.ask("json_schema", '{"type": "boolean"}', [[]])
        assert (answer.failure, worker.restarts) == ("", 1)
        assert answer.result.outcomes == [Outcome(False, 0)]
    finally:
        worker.close()


def test_a_silent_worker_is_stopped(tmp_path: Path) -> None:
    worker = Worker({**CONFIG, "tokenizer": str(tokenizer_of(tmp_path))}, patience=0)
    try:
        answer = worker.ask("json_schema", "true", [[0] * 5000] * 20)
        assert judge(answer, [True] * 20)[0] == "timeout"
    finally:
        worker.close()


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    worker = Worker({**CONFIG, "tokenizer": str(tokenizer_of(tmp_path)), "seconds": 0.2}, patience=600)
    try:
        slow = json.dumps({"enum": [f"value {number}" for number in range(400_000)]})
        assert judge(worker.ask("json_schema", slow, [[0]]), [True])[0] == "timeout"
        assert (worker.ask("json_schema", "false", []).result.refusal is None, worker.restarts) == (False, 1)
    finally:
        worker.close()


def test_an_engine_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="no-such-file"):
        Worker({**CONFIG, "tokenizer": str(tmp_path / "no-such-file")}, patience=10)


def test_the_order_of_properties_reaches_the_engine(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    cases = tmp_path / "cases.jsonl"
    cases.write_text(
        json.dumps({"id": "order", "schema": schema, "tests": [{"valid": True, "data": {"b": 1, "a": 2}}]})
    )
    out = tmp_path / "run.json"
    arguments = [str(cases), "--tokenizer", str(tokenizer_of(tmp_path)), "--json", str(out)]
    assert cli.main([*arguments, "--engines", "grammask,grammask-any"]) == 0
    found = json.loads(out.read_text("utf-8"))["cases"]
    assert {engine: cases["order"]["status"] for engine, cases in found.items()} == {
        "grammask": "under",
        "grammask-any": "passed",
    }
