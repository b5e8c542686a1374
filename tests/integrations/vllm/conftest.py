"""vLLM with a real model. These tests run in vLLM's own environment: ``make test-vllm``."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

os.environ.update(
    {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        # The engine in this process: it starts in half the time, and what it holds can be looked at.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "GRAMMASK_VLLM_BACKEND": "all",
    }
)

# Not loaded here: it reads settings then, and test modules have more of them.
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed in this environment: make test-vllm", allow_module_level=True)


@pytest.fixture(scope="session")
def model_folder() -> Path:
    folder = os.environ.get("GRAMMASK_VLLM_MODEL")
    if not folder:
        pytest.skip("GRAMMASK_VLLM_MODEL names no folder with SmolLM2: make test-vllm")
    return Path(folder)
