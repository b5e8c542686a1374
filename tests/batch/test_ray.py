"""Batches on a local Ray cluster; one worker is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from grammask.batch import Job, run_local
from grammask.batch.ray_engine import run_ray
from grammask.batch.shards import read_shard
from support.batch_runner import EchoRunner, echo_runner

ray = pytest.importorskip("ray", reason="Ray is not installed")

JOB = Job(constraint={"regex": ".*"}, shard_size=3, id_column="key")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A cluster in processes of this machine, which import the runners of tests/support."""
    folders = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": folders}},
    )
    yield
    ray.shutdown()


def write_input(path: Path, count: int) -> Path:
    lines = [json.dumps({"key": f"k{i}", "text": "fail: x" if i % 7 == 3 else f"text {i}"}) for i in range(count)]
    path.write_text("\n".join(lines) + "\n")
    return path


class KillOnce:
    """Kills its own process at one record, unless it has done so before."""

    def __init__(self, marker: Path, number: int) -> None:
        self._marker = marker
        self._number = number

    def __call__(self, job: Job) -> EchoRunner:
        return EchoRunner(job, on_record=self._perhaps_die)

    def _perhaps_die(self, record: object) -> None:
        if record.number == self._number and not self._marker.exists():  # type: ignore[attr-defined]
            self._marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    source = write_input(tmp_path / "in.jsonl", 20)
    marker = tmp_path / "killed"
    summary = run_ray(JOB, [source], tmp_path / "out", workers=2, runner=KillOnce(marker, 10))
    assert marker.exists()
    assert (summary.records, summary.failed, summary.errors) == (20, 3, {"Failure": 3})
    found = [each for path in sorted((tmp_path / "out").glob("part-*")) for each in read_shard(path)]
    assert [each["id"] for each in found] == [f"k{i}" for i in range(20)]
    assert not list((tmp_path / "out").glob(".partial*"))


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    source = write_input(tmp_path / "in.jsonl", 8)
    run_local(JOB, [source], tmp_path / "out", runner=echo_runner)
    kept = tmp_path / "out" / "part-000000.jsonl"
    kept_at = kept.stat().st_mtime_ns
    (tmp_path / "out" / "part-000001.jsonl").unlink()
    seen: list[tuple[int, int]] = []
    summary = run_ray(JOB, [source], tmp_path / "out", runner=echo_runner, progress=lambda *counts: seen.append(counts))
    assert summary.records == 8
    assert seen == [(8, 5)]
    assert kept.stat().st_mtime_ns == kept_at
