"""What all tests share: hypothesis without deadlines, and the data that is too large to be committed.

``GRAMMASK_DATA`` names a folder with ``tokenizers/NAME.tokenizer.json.gz`` and the files that single tests ask for.
Tests that need it are skipped where it is absent.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow machine is not a wrong result. In CI hypothesis draws the same examples each time.
settings.register_profile(
    "grammask",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("grammask")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder that GRAMMASK_DATA names."""
    name = os.environ.get("GRAMMASK_DATA")
    if not name:
        pytest.skip("GRAMMASK_DATA names no folder with test data")
    path = Path(name)
    if not path.is_dir():
        pytest.skip(f"GRAMMASK_DATA is {name}, which is no folder")
    return path


@pytest.fixture(scope="session")
def tokenizer_path(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``tokenizer_path("llama3_1")`` is a tokenizer.json, unpacked once per session; skips where there is none."""
    unpacked: dict[str, Path] = {}

    def path_of(name: str) -> Path:
        if name not in unpacked:
            packed = data_dir / "tokenizers" / f"{name}.tokenizer.json.gz"
            if not packed.is_file():
                pytest.skip(f"no tokenizer {name} in GRAMMASK_DATA")
            target = tmp_path_factory.mktemp(name) / "tokenizer.json"
            with gzip.open(packed, "rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            unpacked[name] = target
        return unpacked[name]

    return path_of
