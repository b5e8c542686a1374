"""What the sampler promises around the distribution: refusals, forced tokens, structure, batches, reports."""

from __future__ import annotations

import io
import math
import warnings

import numpy as np
import pytest

from grammask.sampling import (
    Sampler,
    Sampling,
    SamplingError,
    SamplingSummary,
    SamplingWarning,
    StepReport,
    explain,
    sample_batch,
)
from sampling import oracle

SIZE = 70
ROW = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)


def only(*tokens: int) -> np.ndarray:
    allowed = np.zeros(SIZE, dtype=np.bool_)
    allowed[list(tokens)] = True
    return oracle.pack(allowed)


def changed(value: float, *positions: int) -> np.ndarray:
    row = ROW.copy()
    row[list(positions) or slice(None)] = value
    return row


REFUSED = [
    (changed(math.nan, 3), None, {}, SamplingError, "NaN"),
    (changed(math.inf, 3), None, {}, SamplingError, r"\+inf"),
    (changed(-math.inf), None, {}, SamplingError, "every logit is -inf"),
    (ROW[:-1], None, {}, ValueError, "use one row of 70"),
    (ROW[None], None, {}, ValueError, "use one row of 70"),
    (np.arange(SIZE), None, {}, ValueError, "dtype int64"),
    (ROW.tolist(), None, {}, ValueError, "use a numpy array or a torch tensor"),
    (ROW, only(1)[:-1], {}, ValueError, r"use int32 \[3\] for 70 tokens"),
    (ROW, only(1).astype(np.int64), {}, ValueError, "the mask is int64"),
    (ROW, only(), {}, SamplingError, "the mask allows no token"),
    (changed(-math.inf, 5, 6), only(5, 6), {}, SamplingError, "has logit -inf"),
    (ROW, only(5), {"logit_bias": {5: -math.inf}}, SamplingError, "logit_bias excluded every token"),
    (
        ROW,
        only(int(ROW.argmin())),
        {"top_k": 1, "order": ["top_k", "mask"]},
        SamplingError,
        "put 'mask' before the cuts",
    ),
]


@pytest.mark.parametrize(("row", "mask", "settings", "error", "message"), REFUSED)
def test_refused(row, mask, settings, error, message):
    sampler = Sampler(Sampling(**settings), SIZE)
    with pytest.raises(error, match=message):
        sampler.sample(row, sampler.start(), mask)


@pytest.mark.parametrize(
    ("row", "mask", "settings", "error", "message"),
    [case for case in REFUSED if getattr(case[0], "dtype", None) == np.float32 and case[0].shape == ROW.shape],
)
def test_refused_in_a_torch_batch_with_the_number_of_the_row(row, mask, settings, error, message):
    torch = pytest.importorskip("torch")
    sampler = Sampler(Sampling(**settings), SIZE)
    states = [sampler.start(), sampler.start()]
    with pytest.raises(error, match=f"row 1: .*{message}"):
        sample_batch(torch.from_numpy(np.stack([ROW, row])), states, [None, mask], backend="torch")


def test_sample_does_not_change_its_input_or_the_state():
    sampler = Sampler(Sampling(repetition_penalty=2.0, logit_bias={1: 5.0}, top_p=0.5), SIZE)
    state = sampler.start([1, 2, 3], seed=1)
    row = ROW.copy()
    first = sampler.sample(row, state)
    assert sampler.sample(row, state) == first
    assert np.array_equal(row, ROW)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.float32])
def test_other_dtypes(dtype):
    sampler = Sampler(Sampling(temperature=0), SIZE)
    assert sampler.sample(ROW.astype(dtype), sampler.start()).token_id == int(ROW.astype(dtype).argmax())


def test_torch_rows_of_any_dtype():
    torch = pytest.importorskip("torch")
    sampler = Sampler(Sampling(seed=3, top_p=0.9), SIZE)
    row = torch.from_numpy(ROW)
    assert sampler.sample(row, sampler.start()) == sampler.sample(ROW, sampler.start())
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        rounded = row.to(dtype)
        expected = sampler.sample(rounded.float().numpy(), sampler.start())
        assert sampler.sample(rounded, sampler.start()) == expected
    mask = only(3, 4)
    assert sampler.sample(row, sampler.start(), torch.from_numpy(mask)) == sampler.sample(ROW, sampler.start(), mask)


# -- the random key


def test_a_request_draws_the_same_alone_and_among_sixteen():
    sampler = Sampler(Sampling(seed=9, top_p=0.95, temperature=1.3), SIZE)
    other = Sampler(Sampling(seed=9, top_k=5, repetition_penalty=1.4), SIZE)
    generator = np.random.default_rng(4)
    states = [(sampler if request % 2 else other).start([request], request=request) for request in range(16)]
    alone = states[5].copy()
    for _ in range(12):
        rows = generator.standard_normal((16, SIZE)).astype(np.float32)
        tokens = sample_batch(rows, states)
        assert sampler.sample(rows[5], alone) == tokens[5]
        alone.append(tokens[5].token_id)
        for state, token in zip(states, tokens, strict=True):
            state.append(token.token_id)
    assert alone.output_ids == states[5].output_ids


def test_samples_and_requests_differ_and_seeds_repeat():
    sampler = Sampler(Sampling(seed=1), SIZE)

    def drawn(**key):
        state = sampler.start(**key)
        for _ in range(20):
            state.append(sampler.sample(np.zeros(SIZE, dtype=np.float32), state).token_id)
        return tuple(state.output_ids)

    assert drawn() == drawn(seed=1)
    assert len({drawn(), drawn(sample=1), drawn(request=1), drawn(seed=2)}) == 4


def test_without_a_seed_the_state_tells_the_one_it_drew():
    sampler = Sampler(Sampling(), SIZE)
    first, second = sampler.start(), sampler.start()
    assert first.seed != second.seed
    again = sampler.start(seed=first.seed)
    assert again.uniform() == first.uniform()


@pytest.mark.parametrize("key", [{"seed": -1}, {"seed": 2**64}, {"request": -1}, {"sample": 2**24}])
def test_keys_out_of_range(key):
    with pytest.raises(ValueError, match=next(iter(key))):
        Sampler(Sampling(), SIZE).start(**key)


# -- forced tokens, bans, structure


def test_forced_tokens_are_neither_drawn_nor_penalized():
    sampler = Sampler(Sampling(repetition_penalty=5.0, top_k=1, logprobs=True), SIZE)
    worst = int(ROW.argmin())
    token = sampler.sample(ROW, sampler.start([worst] * 10), only(worst, 3), forced=worst)
    assert token.token_id == worst
    assert token.report.forced
    assert token.final_logprob == 0.0
    assert token.logprob == pytest.approx(math.log(oracle.softmax(ROW)[worst]), abs=1e-5)
    assert token.report.mask_mass == pytest.approx(oracle.softmax(ROW)[[worst, 3]].sum(), abs=1e-6)
    without_logits = sampler.sample(None, sampler.start(), forced=worst)
    assert (without_logits.token_id, without_logits.logprob) == (worst, None)


def test_forced_tokens_must_be_possible():
    sampler = Sampler(Sampling(), SIZE)
    for forced, mask, message in ((SIZE, None, "not in the vocabulary"), (4, only(3), "mask does not allow")):
        with pytest.raises(ValueError, match=message):
            sampler.sample(ROW, sampler.start(), mask, forced=forced)
    with pytest.raises(ValueError, match="logits are missing"):
        sampler.sample(None, sampler.start())


@pytest.mark.parametrize("order", ["default", "vllm", "transformers"])
def test_bans_give_way_to_the_constraint(order):
    sampler = Sampler(Sampling(min_tokens=5, order=order), SIZE, eos_token_ids=[9])
    state = sampler.start()
    only_end = sampler.sample(ROW, state, only(9))
    assert only_end.token_id == 9
    assert only_end.report.lifted == ("min_tokens",)
    choice = sampler.sample(changed(50.0, 9), state, only(8, 9))
    assert choice.token_id == 8
    assert choice.report.lifted == ()


def test_stop_tokens_wait_for_min_tokens():
    sampler = Sampler(Sampling(min_tokens=1, stop_token_ids=[4]), SIZE, eos_token_ids=[9])
    state = sampler.start(seed=0)
    row = changed(-50.0)
    row[[4, 9]] = 50.0
    row[11] = 0.0
    assert sampler.sample(row, state).token_id == 11
    state.append(11)
    assert sampler.sample(row, state).token_id in (4, 9)


PENALTIES = {"repetition_penalty": 3.0, "presence_penalty": 2.0, "no_repeat_ngram_size": 1}


def test_penalties_are_off_under_structure():
    with pytest.warns(SamplingWarning, match="penalize_structured=True"):
        structured = Sampler(Sampling(seed=0, top_p=0.9, **PENALTIES), SIZE, structured=True)
    plain = Sampler(Sampling(seed=0, top_p=0.9), SIZE)
    history = list(range(0, SIZE, 2))
    expected = plain.distribution(ROW, plain.start(history))
    found = structured.distribution(ROW, structured.start(history))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_penalties_under_structure_if_asked_for():
    sampling = Sampling(seed=0, penalize_structured=True, **PENALTIES)
    with pytest.warns(SamplingWarning, match="must repeat"):
        structured = Sampler(sampling, SIZE, structured=True)
    free = Sampler(sampling, SIZE)
    history = list(range(0, SIZE, 2))
    found = structured.distribution(ROW, structured.start(history))
    expected = free.distribution(ROW, free.start(history))
    np.testing.assert_array_equal(found[1], expected[1])


def test_nothing_to_warn_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Sampler(Sampling(top_p=0.9, logit_bias={1: 2.0}), SIZE, structured=True)
        Sampler(Sampling(**PENALTIES), SIZE)


def test_states_refuse_tokens_outside_the_vocabulary():
    state = Sampler(Sampling(), SIZE).start()
    with pytest.raises(ValueError, match="not in the vocabulary"):
        state.append(SIZE)


# -- batches


def test_batches_must_fit_their_states():
    sampler = Sampler(Sampling(), SIZE)
    states = [sampler.start(), sampler.start()]
    with pytest.raises(ValueError, match="logits has 3 rows, but there are 2 states"):
        sampler.sample_batch(np.stack([ROW] * 3), states)
    with pytest.raises(ValueError, match="masks has 1 rows"):
        sampler.sample_batch(np.stack([ROW] * 2), states, [None])


def test_batches_mix_forced_masked_and_free_rows():
    torch = pytest.importorskip("torch")
    sampler = Sampler(Sampling(seed=2, top_p=0.8), SIZE)
    states = [sampler.start(request=request) for request in range(3)]
    rows = np.random.default_rng(5).standard_normal((3, SIZE)).astype(np.float32)
    arguments = states, [None, only(3, 4, 5), None], [7, None, None]
    expected = sample_batch(rows, *arguments)
    found = sample_batch(torch.from_numpy(rows), *arguments, backend="torch")
    assert [token.token_id for token in found] == [token.token_id for token in expected]
    assert expected[0].token_id == 7
    assert expected[1].token_id in (3, 4, 5)
    assert [token.report.allowed for token in found] == [None, 3, None]


# -- reports


def test_summary():
    summary = SamplingSummary.of(
        [
            StepReport(0, mask_mass=0.5, allowed=2, nucleus=1),
            StepReport(1, mask_mass=0.25, allowed=9, nucleus=5, entropy=1.0),
            StepReport(2, forced=True),
        ]
    )
    assert summary.steps == 3
    assert summary.forced == 1
    assert summary.single_choice_share == 0.5
    assert summary.mean_nucleus == 3.0
    assert summary.mean_entropy == 0.5
    assert summary.mask_mass == pytest.approx(0.125)
    assert summary.mean_mask_mass == pytest.approx(0.375)


def test_summary_of_nothing_and_of_very_little():
    nothing = SamplingSummary.of([])
    assert (nothing.steps, nothing.mask_mass, nothing.single_choice_share) == (0, None, None)
    little = SamplingSummary.of([StepReport(step, mask_mass=1e-30) for step in range(20)])
    assert little.mask_mass == 0.0
    assert little.log_mask_mass == pytest.approx(20 * math.log(1e-30))


# -- explain


def test_explain_follows_the_stages():
    logits = np.log(np.array([0.40, 0.30, 0.15, 0.10, 0.04, 0.01])).astype(np.float32)
    sampler = Sampler(Sampling(temperature=0.5, top_k=3, top_p=0.5, frequency_penalty=math.log(2)), 6)
    state = sampler.start(seed=0)
    state.append(0)
    allowed = np.array([True, True, True, True, False, True])
    explanation = explain(logits, state, oracle.pack(allowed), top=2, names="abcdef".__getitem__)
    found = {report.stage: report for report in explanation.stages}
    assert list(found) == ["model", "presence_frequency", "mask", "temperature", "top_k", "top_p"]
    assert [report.survivors for report in explanation.stages] == [6, 6, 5, 5, 3, 1]
    assert found["mask"].mass_kept == pytest.approx(0.76 / 0.80)
    # 0.20, 0.30, 0.15, 0.10, 0.01 squared: 0.04, 0.09, 0.0225, 0.01, 0.0001
    assert found["top_k"].mass_kept == pytest.approx(0.1525 / 0.1626)
    assert found["top_p"].mass_kept == pytest.approx(0.09 / 0.1525)
    assert found["temperature"].best == (1, pytest.approx(0.09 / 0.1626))
    assert found["top_p"].entropy == 0.0
    assert explanation.tokens == ((1, 1.0),)
    text = str(explanation)
    assert "top_p" in text
    assert "frequency 0.693147" in text
    assert "draw from: b 100\N{NO-BREAK SPACE}%" in text


def test_explain_agrees_with_sample_and_tells_what_gave_way():
    sampler = Sampler(Sampling(min_tokens=3, typical_p=0.5, top_n_sigma=2.0), SIZE, eos_token_ids=[9])
    state = sampler.start(seed=0)
    explanation = explain(ROW, state)
    assert explanation.stages[-1].survivors == sampler.sample(ROW, state).report.nucleus
    assert "gave way to the constraint: min_tokens" in str(explain(ROW, state, only(9)))


def test_explain_renders_in_rich():
    rich_console = pytest.importorskip("rich.console")
    sampler = Sampler(Sampling(top_k=3), SIZE)
    console = rich_console.Console(width=120, file=io.StringIO())
    console.print(explain(ROW, sampler.start(seed=0)))
    assert "survivors" in console.file.getvalue()
