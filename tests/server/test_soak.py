"""Sixteen clients with mixed schemas, hanging up at random, and hostile requests in between.

``GRAMMASK_SOAK_SECONDS`` says for how long (`make soak` for minutes, with a real model); a few seconds without it.
"""

from __future__ import annotations

import os

from grammask.models import Model
from support.server import random_model, served
from support.soak import live_outputs, soak

SECONDS = float(os.environ.get("GRAMMASK_SOAK_SECONDS", "6"))


def model() -> Model:
    name = os.environ.get("GRAMMASK_SOAK_MODEL")
    if not name:
        return random_model()
    from grammask.models import load_model

    return load_model(name)


def test_soak() -> None:
    before = live_outputs()
    limits = {"compile_seconds": 0.5, "cache_bytes": 16 << 20, "compile_cache_entries": 32, "max_waiting": 8}
    with served(model(), whitespace="compact", **limits) as server:
        report = soak(server, SECONDS)
        print(f"\n{dict(report.counts)}\nresident megabytes: {[round(value) for value in report.memory]}")
        assert report.faults == []
        assert report.counts["valid"] > 0
        assert report.counts["hung up"] > 0
        assert server.get("/health").json() == {"status": "ok", "running": 0, "waiting": 0}
        assert server.chat(guided_choice=["still here"]).json()["choices"][0]["message"]["content"] == "still here"
    assert live_outputs() == before
    if SECONDS >= 60:
        # Level: what is resident at the end is not far from what was once everything had been seen.
        settled = max(report.memory[len(report.memory) // 3 : len(report.memory) // 2])
        assert report.memory[-1] < settled * 1.25 + 64, report.memory
