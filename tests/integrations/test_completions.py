"""Engines that report all tokens so far: the state that they share, and the adapters that cannot be run here."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import grammask
from grammask.integrations.completions import Completions
from grammask.integrations.onnxruntime_genai import constrained_tokens
from grammask.integrations.tensorrt_llm import ConstraintLogitsProcessor as TensorRtProcessor

WORDS = [b"a", b"b", b"ab", b"1"]
EOS, TURN = 4, 5


@pytest.fixture
def compiled() -> grammask.CompiledConstraint:
    vocabulary = grammask.Vocabulary.from_tokens([*WORDS, None, None], [EOS], {"<turn>": TURN})
    return grammask.compile(grammask.Regex("ab1?"), vocabulary)


def ids(allowed: np.ndarray[Any, Any]) -> list[int]:
    return np.flatnonzero(allowed).tolist()


def test_completions_one_after_the_other_and_going_back(compiled: grammask.CompiledConstraint) -> None:
    completions = Completions(compiled, stop_ids=[TURN])
    assert ids(completions.allowed([3, 3], 9)) == [0, 2]
    assert ids(completions.allowed([3, 3, 0], 9)) == [1]
    assert ids(completions.allowed([3, 3, 2], 9)) == [3, EOS, TURN]
    assert ids(completions.allowed([3, 3, 2, TURN], 9)) == list(range(6))
    assert ids(completions.allowed([3, 3], 6)) == [0, 2]
    assert ids(completions.allowed([1], 6)) == [0, 2]
    assert ids(Completions(compiled, prompt_length=1).allowed([3, 0], 6)) == [1]


def test_onnxruntime_genai(compiled: grammask.CompiledConstraint) -> None:
    class Generator:
        """Takes the likeliest token, preferring those of high ids."""

        def __init__(self) -> None:
            self.tokens: list[int] = []
            self.logits = np.zeros(0)

        def append_tokens(self, tokens: Any) -> None:
            assert tokens.shape[0] == 1
            self.tokens += tokens[0].tolist()

        def is_done(self) -> bool:
            return self.tokens[-1] == EOS

        def get_logits(self) -> Any:
            return np.arange(8, dtype=np.float32).reshape(1, 1, 8)

        def set_logits(self, logits: Any) -> None:
            assert logits.shape == (1, 1, 8)
            self.logits = logits

        def generate_next_token(self) -> None:
            self.tokens.append(int(self.logits.argmax()))

        def get_next_tokens(self) -> Any:
            return np.array([self.tokens[-1]])

    assert list(constrained_tokens(Generator(), compiled, [3, 3])) == [2, EOS]


def test_tensorrt_llm(compiled: grammask.CompiledConstraint) -> None:
    torch = pytest.importorskip("torch")
    processor = TensorRtProcessor(compiled)

    def allowed(request: int, beams: list[list[int]]) -> list[list[int]]:
        logits = torch.zeros(1, len(beams), 8)
        processor(request, logits, beams, None)
        return [row.isfinite().nonzero().flatten().tolist() for row in logits[0]]

    assert allowed(1, [[3], [3]]) == [[0, 2], [0, 2]]
    assert allowed(2, [[3, 3]]) == [[0, 2]]
    assert allowed(1, [[3, 0], [3, 2]]) == [[1], [3, EOS]]
    processor.forget(1)
    assert allowed(1, [[3, 0]]) == [[0, 2]]


def test_mlx_with_numpy_in_its_place(compiled: grammask.CompiledConstraint, monkeypatch: pytest.MonkeyPatch) -> None:
    core: Any = ModuleType("mlx.core")
    core.array = np.array
    core.where = np.where
    package: Any = ModuleType("mlx")
    package.core = core
    monkeypatch.setitem(sys.modules, "mlx", package)
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    from grammask.integrations.mlx import ConstraintLogitsProcessor

    processor = ConstraintLogitsProcessor(compiled)
    assert ids(np.isfinite(processor(np.array([3]), np.zeros((1, 8), dtype=np.float32))[0])) == [0, 2]
    assert ids(np.isfinite(processor(np.array([3, 0]), np.zeros((1, 8), dtype=np.float32))[0])) == [1]
