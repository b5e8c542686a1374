"""As many threads as there are free cores, unless the environment says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grammask.models import threads
from grammask.models.threads import thread_count, usable_cores


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_the_environment_decides(name: str) -> None:
    assert thread_count({name: "3"}) is None


@pytest.mark.parametrize(
    ("cores", "load", "expected"), [(8, 0.2, 8), (8, 1.6, 6), (8, 30.0, 1), (1, 0.0, 1), (2, 1.0, 1)]
)
def test_busy_cores_are_left_alone(monkeypatch: pytest.MonkeyPatch, cores: int, load: float, expected: int) -> None:
    monkeypatch.setattr(threads, "usable_cores", lambda: cores)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert thread_count({}) == expected


@pytest.mark.parametrize(("content", "limit"), [("150000 100000\n", 1), ("max 100000\n", None), ("garbage", None)])
def test_quota_of_a_container(tmp_path: Path, content: str, limit: int | None) -> None:
    (tmp_path / "cpu.max").write_text(content)
    everything = usable_cores(tmp_path / "missing")
    assert usable_cores(tmp_path / "cpu.max") == (everything if limit is None else limit)
