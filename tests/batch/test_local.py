"""Batches in this process: every record answered once, whatever happens in between."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grammask.batch import BatchError, Job, run_local
from grammask.batch.shards import read_shard
from support.batch_runner import EchoRunner, echo_runner

JOB = Job(constraint={"regex": ".*"}, shard_size=4, id_column="key")


def write_jsonl(path: Path, count: int, first: int = 0) -> Path:
    path.write_text(
        "".join(json.dumps({"key": f"k{i}", "text": f"text {i}"}) + "\n" for i in range(first, first + count))
    )
    return path


def outcomes(folder: Path) -> list[dict[str, Any]]:
    return [each for path in sorted(folder.glob("part-*")) for each in read_shard(path)]


def test_records_of_all_kinds_of_files_in_order(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder = tmp_path / "in"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", 5)
    with (folder / "b.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["key", "text"], ["k5", "text\n5, with comma"], ["k6", "text 6"]])
    table = pyarrow.table({"key": [f"k{i}" for i in range(7, 10)], "text": [f"text {i}" for i in range(7, 10)]})
    pyarrow.parquet.write_table(table, folder / "c.parquet")
    summary = run_local(JOB, [folder], tmp_path / "out", runner=echo_runner)
    assert (summary.records, summary.succeeded, summary.shards) == (10, 10, 3)
    found = outcomes(tmp_path / "out")
    assert [each["record"] for each in found] == list(range(10))
    assert [each["id"] for each in found] == [f"k{i}" for i in range(10)]
    assert found[5]["text"] == "TEXT\n5, WITH COMMA"


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_failures_are_kept_with_their_reasons(tmp_path: Path, format: Any) -> None:
    pytest.importorskip("pyarrow")
    lines = ['{"text": "fine"}', "{broken", "[1]", '{"other": 1}', '{"text": 7}', "", '{"text": "fail: x"}']
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(lines))
    job = Job(constraint={"regex": ".*"}, shard_size=4, format=format)
    summary = run_local(job, [source], tmp_path / "out", runner=echo_runner)
    assert (summary.records, summary.succeeded) == (6, 1)
    assert summary.errors == {"unreadable": 2, "no_text": 2, "Failure": 1}
    found = outcomes(tmp_path / "out")
    messages = [None if each.get("error") is None else each["error"]["message"] for each in found]
    assert messages[0] is None
    assert "line 2" in messages[1]
    assert "expected an object" in messages[2]
    assert "'text'" in messages[3]
    assert "no text: 7" in messages[4]
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["failed"] == 5


def test_a_second_run_does_nothing_and_a_lost_shard_is_made_again(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", 10)
    asked: list[int] = []

    def counting(job: Job) -> EchoRunner:
        return EchoRunner(job, on_shard=lambda shard: asked.append(shard.number))

    run_local(JOB, [source], tmp_path / "out", runner=counting)
    before = outcomes(tmp_path / "out")
    assert asked == [0, 1, 2]
    seen: list[tuple[int, int]] = []
    run_local(JOB, [source], tmp_path / "out", runner=counting, progress=lambda *counts: seen.append(counts))
    assert asked == [0, 1, 2]
    assert seen == [(4, 4), (8, 8), (10, 10)]
    (tmp_path / "out" / "part-000001.jsonl").unlink()
    run_local(JOB, [source], tmp_path / "out", runner=counting)
    assert asked == [0, 1, 2, 1]
    assert outcomes(tmp_path / "out") == before


def changed_input(source: Path, job: Job) -> Job:
    write_jsonl(source, 10, first=1)
    return job


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda source, job: Job(constraint={"regex": ".+"}, shard_size=4, id_column="key"), "constraint"),
        (lambda source, job: Job(constraint={"regex": ".*"}, shard_size=5, id_column="key"), "shard_size"),
        (changed_input, "inputs"),
    ],
)
def test_a_folder_belongs_to_one_job(tmp_path: Path, change: Callable[[Path, Job], Job], what: str) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", 10)
    run_local(JOB, [source], tmp_path / "out", runner=echo_runner)
    with pytest.raises(BatchError, match=what):
        run_local(change(source, JOB), [source], tmp_path / "out", runner=echo_runner)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", 3)
    with pytest.raises(BatchError, match="no file"):
        run_local(JOB, [tmp_path / "absent.jsonl"], tmp_path / "out", runner=echo_runner)
    (tmp_path / "in.txt").write_text("x")
    with pytest.raises(BatchError, match="ends in"):
        run_local(JOB, [tmp_path / "in.txt"], tmp_path / "out", runner=echo_runner)
    with pytest.raises(BatchError, match="not empty"):
        run_local(JOB, [source], tmp_path, runner=echo_runner)
    run_local(JOB, [source], tmp_path / "out", runner=echo_runner)
    shard = tmp_path / "out" / "part-000000.jsonl"
    shard.write_text("".join(shard.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(BatchError, match="does not hold"):
        run_local(JOB, [source], tmp_path / "out", runner=echo_runner)


def test_killed_midway_and_run_again(tmp_path: Path) -> None:
    """A process is killed without warning in the middle of a shard, three times; then one runs to the end."""
    source = write_jsonl(tmp_path / "in.jsonl", 25)
    program = textwrap.dedent(
        """
        import os, signal, sys
        from support.batch_runner import EchoRunner
        from grammask.batch import Job, run_local
        last = int(sys.argv[3])
        def runner(job):
            def die(record):
                if record.number == last:
                    os.kill(os.getpid(), signal.SIGKILL)
            return EchoRunner(job, on_record=die)
        job = Job(constraint={"regex": ".*"}, shard_size=4, id_column="key")
        run_local(job, [sys.argv[1]], sys.argv[2], runner=runner)
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    for last in (2, 9, 23):
        command = [sys.executable, "-c", program, str(source), str(tmp_path / "out"), str(last)]
        done = subprocess.run(command, env=environment, timeout=120)
        assert done.returncode == -signal.SIGKILL
        assert len(list((tmp_path / "out").glob("part-*"))) == last // 4
    summary = run_local(JOB, [source], tmp_path / "out", runner=echo_runner)
    assert summary.succeeded == 25
    assert [each["id"] for each in outcomes(tmp_path / "out")] == [f"k{i}" for i in range(25)]


@pytest.mark.model
def test_a_real_model_from_the_command_line(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    texts = ["The room was spotless.", "The soup was cold and the waiter rude.", 5]
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    command = [sys.executable, "-m", "grammask.cli", "batch", "-i", str(source), "-o", str(tmp_path / "out")]
    command += ["--choice", "positive", "--choice", "negative", "--prompt", "How does this sound?", "--shard-size", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 5, done.stderr
    assert "1 of 3 records failed: 1 no_text" in " ".join(done.stderr.split())
    found = outcomes(tmp_path / "out")
    assert {each["value"] for each in found[:2]} <= {"positive", "negative"}
    assert found[2]["error"]["kind"] == "no_text"
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 5
    assert outcomes(tmp_path / "out") == found
