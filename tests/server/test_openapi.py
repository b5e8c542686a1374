"""The OpenAPI document: requests drawn from it are answered as it says (schemathesis)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Served, random_model, served, until

schemathesis = pytest.importorskip("schemathesis")

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(random_model(), max_output_tokens=8, default_max_tokens=4, compile_seconds=0.5) as running:
        yield running


def test_answers_are_as_the_document_says(server: Served, tmp_path: Path) -> None:
    tool = Path(sys.executable).with_name("schemathesis")
    command = [str(tool), "run", f"{server.url}/openapi.json", "--checks", CHECKS, "--max-examples", "25"]
    options = ["--seed", "1", "--generation-database", "none", "--suppress-health-check", "all", "--no-color"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    until(lambda: server.service.open_generations == 0)
    assert server.get("/health").json() == {"status": "ok", "running": 0, "waiting": 0}
