"""The experiments on toy models whose outcome is known, and on a tiny network with random weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from grammask import lab
from grammask.lab import degeneration, nucleus, order, seeds, structure, summation, traces, versions
from grammask.lab.experiment import descending
from grammask.models import FunctionModel, Model
from grammask.sampling import Sampler, Sampling
from support.models import END, byte_vocabulary, indifferent_model

SIMPLE = [name for name in lab.EXPERIMENTS if name not in ("batching", "dtypes", "kernels")]


def looping_model(period: int = 5) -> FunctionModel:
    """Wants to write abcde over and over, whatever stands there; second comes the letter after."""
    vocabulary = byte_vocabulary()

    def logits(tokens: Sequence[int]) -> Any:
        row = np.zeros(vocabulary.size)
        row[97 + len(tokens) % period] = 9
        row[97 + (len(tokens) + 1) % period] = 8
        return row

    return FunctionModel(vocabulary, logits, name="looping")


@pytest.fixture(scope="module")
def tiny() -> Model:
    """A llama with random weights over bytes."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    from grammask.models.transformers_model import TransformersModel

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=96,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=2,
    )
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    core = tokenizers.Tokenizer(tokenizers.models.BPE({char: index for index, char in enumerate(alphabet)}, []))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens(["<eos>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>")
    return TransformersModel(transformers.LlamaForCausalLM(config).eval(), tokenizer, name="tiny")


# -- all of them


def check(result: lab.Result, steps: int) -> None:
    assert result.findings()
    for table in result.tables():
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert len({plot.name for plot in result.plots()}) == len(result.plots())
    for plot in result.plots():
        for series in plot.series:
            assert len(series.x) == len(series.y) > 0
            assert np.isfinite(series.y).all()
            assert not plot.log_y or min(series.y) > 0
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert plain["experiment"] == result.NAME
    assert plain["setup"]["steps"] == steps


@pytest.mark.parametrize("name", SIMPLE)
def test_runs_on_a_function(name: str) -> None:
    told: list[tuple[int, int]] = []
    options = lab.Options(steps=6, progress=lambda done, total: told.append((done, total)))
    first = lab.run(name, indifferent_model(), options)
    check(first, 6)
    assert name == first.NAME
    assert told[-1][0] == told[-1][1], "the progress bar does not end"
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert lab.run(name, indifferent_model(), lab.Options(steps=6)) == first


@pytest.mark.parametrize("name", ["batching", "dtypes", "kernels"])
def test_runs_on_a_network(name: str, tiny: Model) -> None:
    told: list[tuple[int, int]] = []
    result: Any = lab.run(name, tiny, lab.Options(steps=4, progress=lambda done, total: told.append((done, total))))
    check(result, 4)
    assert told[-1][0] == told[-1][1]
    rows = {difference.name: difference for difference in result.differences}
    if name == "dtypes":
        assert result.dtype == "float32"
        assert rows["bfloat16"].largest > rows["float16"].largest > 0
    else:
        assert rows["nothing"].largest == 0
        assert rows["nothing"].draws == 0
        assert all(difference.largest < 1e-4 for difference in rows.values())
    if name == "batching":
        assert result.packed.largest == 0, "company changes logits in packed passes"
    assert str(next(tiny.module.parameters()).dtype) == "torch.float32"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["batching", "dtypes", "kernels"])
def test_needs_a_network(name: str) -> None:
    with pytest.raises(lab.LabError, match="does not run through transformers"):
        lab.run(name, indifferent_model())


def test_unknown_names() -> None:
    with pytest.raises(lab.LabError, match="no experiment 'nucleos'"):
        lab.run("nucleos", indifferent_model())


def test_a_model_that_ends_at_once() -> None:
    vocabulary = byte_vocabulary()
    row = np.zeros(vocabulary.size)
    row[END] = 50
    model = FunctionModel(vocabulary, lambda tokens: row)
    for name in ("nucleus", "mass", "order", "summation"):
        with pytest.raises(lab.LabError, match="nothing to measure"):
            lab.run(name, model)


# -- single ones


def test_sizes_are_the_samplers() -> None:
    rows = np.random.default_rng(0).normal(scale=3, size=(20, 50)).astype(np.float32)
    for temperature in (0.5, 1.0, 1.7):
        for sizes, cut in (
            (nucleus.nucleus_sizes(descending(rows), temperature, 0.9), {"top_p": 0.9}),
            (nucleus.min_p_sizes(descending(rows), temperature, 0.1), {"min_p": 0.1}),
        ):
            sampler = Sampler(Sampling(temperature=temperature, **cut), 50)
            expected = [len(sampler.distribution(row, sampler.start())[0]) for row in rows]
            assert sizes.tolist() == expected


def test_mass_is_counted() -> None:
    """Six equal tokens: k keeps k sixths, and half the mass is three tokens."""
    row = np.full(byte_vocabulary().size, -np.inf)
    row[97:103] = 0
    model = FunctionModel(byte_vocabulary(), lambda tokens: row)
    result: Any = lab.run("mass", model, lab.Options(steps=3))
    kept = {spread.cut: spread.median for spread in result.kept}
    assert kept["top_k 1"] == pytest.approx(1 / 6)
    assert kept["top_k 5"] == pytest.approx(5 / 6)
    assert kept["top_k 40"] == pytest.approx(1)
    assert {spread.cut: spread.median for spread in result.sizes}["top_p 0.5"] == 3


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2, 3], []),
        ([1, 2, 3, 4], [False]),
        ([1, 1, 1, 1, 1], [False, True]),
        ([1, 2, 3, 4, 1, 2, 3, 4], [False, False, False, False, True]),
    ],
)
def test_repeated_ngrams(tokens: list[int], expected: list[bool]) -> None:
    assert degeneration.repeated_ngrams(tokens) == expected


def test_degeneration_of_a_loop() -> None:
    """A loop of five: after the first five 4-grams all are repetitions; a ban on them leaves none."""
    result = degeneration.run(looping_model(), lab.Options(steps=40))
    outcomes = {outcome.penalty: outcome for outcome in result.outcomes}
    plain = outcomes["none"]
    assert plain.repeated == pytest.approx((37 - 5) / 37)
    assert plain.first_repeat == 9
    assert plain.changed == 0
    banned = outcomes["no repeated 4-gram"]
    assert banned.repeated == 0
    assert banned.first_repeat is None
    assert banned.changed > 0
    assert banned.logprob < plain.logprob


def test_structure_counts_what_penalties_break() -> None:
    """A model that knows each document by heart is right everywhere, until a penalty outweighs its certainty."""
    vocabulary = byte_vocabulary()
    texts = [vocabulary.encode(text) for text in structure.DOCUMENTS.values()]

    def logits(tokens: Sequence[int]) -> Any:
        row = np.zeros(vocabulary.size)
        for text in texts:
            if list(tokens) == text[: len(tokens)] and len(tokens) < len(text):
                row[text[len(tokens)]] = 1.5
        return row

    result = structure.run(FunctionModel(vocabulary, logits), lab.Options(steps=60))
    for accuracy in result.accuracies:
        assert accuracy.structural_tokens + accuracy.other_tokens == 59
        if accuracy.penalty in ("none", "presence 1.0", "repetition 1.3"):
            assert accuracy.structural == accuracy.other == 1.0
        if accuracy.penalty == "frequency 0.5":
            assert accuracy.structural < 0.6


@pytest.mark.parametrize(
    ("text", "expected"), [("| ", True), ("\n    ", True), ("a|", False), ("é", False), ('": "', True)]
)
def test_structural_tokens(text: str, expected: bool) -> None:
    assert structure.is_structural(text.encode()) is expected


def test_total_variation() -> None:
    here, there = np.array([0, 2]), np.array([2, 3])
    shares, other = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert order.total_variation(here, shares, there, other) == pytest.approx(0.75)
    assert order.total_variation(here, shares, here, shares) == 0


def test_orders_that_cannot_differ_do_not() -> None:
    """top_k and a temperature commute; top_p and a temperature do not."""
    result = order.run(indifferent_model(), lab.Options(steps=4))
    found = {difference.pair.split(":")[0]: difference for difference in result.differences}
    assert found["temperature 1.5, top_k 40"].largest < 1e-9
    assert found["temperature 1.5, top_p 0.9"].distance > 0.01
    assert found["temperature 1.5, top_p 0.9"].first_size > found["temperature 1.5, top_p 0.9"].second_size


def test_seeds() -> None:
    result = seeds.run(indifferent_model(), lab.Options(steps=12))
    assert {repetition.changed: repetition.first is None for repetition in result.repetitions} == {
        "nothing": True,
        "the seed": False,
        "the request's number": False,
        "company in the batch": True,
    }


def test_sums_in_each_order() -> None:
    """One, then many numbers too small to move it: from the left they are lost, from the right they count."""
    numbers = np.array([1.0] + [2.0**-25] * 2**12, dtype=np.float32)
    sums = {name: add(numbers) for name, add in summation.ORDERS.items()}
    assert sums["from the left"] == sums["descending"] == 1.0
    assert sums["from the right"] == sums["ascending"] == pytest.approx(1 + 2.0**-13, abs=1e-7)
    assert 1.0 < sums["in 8 lanes"] <= sums["from the right"]


def test_differences_are_counted() -> None:
    reference = np.array([[0, 1, 2], [5, 4, 0], [1, 0, 0]], dtype=np.float32)
    other = reference.copy()
    other[1] = [5, 5.5, 0]
    found = traces.compare("x", reference, other, seed=0)
    assert (found.largest, found.typical, found.flips, found.first_flip) == (1.5, 0.0, 1, 1)
    assert 0 < found.draws < 1 / 3
    assert traces.gaps_of(reference).each == (1.0, 1.0, 1.0)


# -- versions


def test_a_recording_equals_itself() -> None:
    first = versions.run(indifferent_model(), lab.Options(steps=5))
    again = versions.run(indifferent_model(), lab.Options(against=first.to_json()))
    assert again.comparison == versions.Comparison({}, None, None, 0.0)
    assert again.setup.steps == 5
    assert any("bit for bit" in finding for finding in again.findings())


def test_a_recording_shows_what_changed() -> None:
    def nudged(tokens: Sequence[int]) -> Any:
        row = indifferent._logits(tokens)
        return row if len(tokens) < length + 2 else np.asarray(row) * 1.001

    indifferent = indifferent_model()
    first = versions.run(indifferent, lab.Options(steps=5))
    length = len(indifferent.encode(traces.PROMPT))
    changed = FunctionModel(indifferent.vocabulary, nudged, name="nudged")
    comparison = versions.run(changed, lab.Options(against=first.to_json())).comparison
    assert comparison is not None
    assert comparison.first_bits == 2
    assert comparison.first_token is None
    assert 0 < comparison.largest < 0.02
    assert comparison.components["model"] == ("FunctionModel nudged", "FunctionModel indifferent")


@pytest.mark.parametrize("data", [{}, {"experiment": "mass"}, {"experiment": "versions", "recording": [{}]}])
def test_what_is_no_recording_is_refused(data: Any) -> None:
    with pytest.raises(lab.LabError, match="what to compare with"):
        versions.run(indifferent_model(), lab.Options(against=data))
