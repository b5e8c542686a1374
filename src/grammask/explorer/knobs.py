"""The knobs: what each setting does to one row of logits, the model's own or a made-up one, stage by stage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.explorer.didactic import EXAMPLES
from grammask.explorer.fields import fields
from grammask.explorer.problems import Problem
from grammask.explorer.settings import sampling_of
from grammask.explorer.step import StepRequest, Walk
from grammask.sampling import Sampler, Sampling, SamplingError, SamplingWarning
from grammask.sampling.explanation import explain
from grammask.sampling.inputs import as_row, unpack_mask
from grammask.sampling.order import PRESETS, STAGES

if TYPE_CHECKING:
    from grammask.explorer.workbench import Workbench
    from grammask.sampling import SamplerState
    from grammask.sampling.candidates import Candidates

SHOWN = 24
"""Tokens whose way through the stages is shown."""

TEMPERATURES = (0.3, 0.7, 1.0, 1.5)


def choices() -> dict[str, Any]:
    """What the view offers: stages, named orders, made-up distributions."""
    return {
        "stages": list(STAGES),
        "orders": {name: list(order.stages) for name, order in PRESETS.items()},
        "examples": {name: {"title": example.title, "context": example.context} for name, example in EXAMPLES.items()},
        "temperatures": list(TEMPERATURES),
    }


def knobs(bench: Callable[[], Workbench], request: Any) -> dict[str, Any]:
    """One row of logits under settings.

    Args:
        bench: gives the model; called only where the request is about it.
        request: ``source`` ("model" or the name of an example), ``sampling``, ``temperatures``; for the model also
            ``position``, a step request.

    Raises:
        Problem: settings out of range, or a position that is not possible.
    """
    request = fields(request)
    sampling = sampling_of(request.get("sampling"))
    temperatures = _temperatures(request.get("temperatures"))
    source = request.get("source", "peaked")
    if source == "model":
        return _of_model(bench(), request, sampling, temperatures)
    if source not in EXAMPLES:
        raise Problem("request", "malformed request", f"there is no example {source!r}")
    example = EXAMPLES[source]
    words = [word for word, _ in example.words]
    row = np.array([logit for _, logit in example.words], dtype=np.float32)
    history = [words.index(word) for word in example.history if word in words]
    names = [{"id": i, "text": word} for i, word in enumerate(words)]
    shown = _through(row, sampling, None, [], history, lambda i: names[i], temperatures)
    return {"context": example.context, "title": example.title, **shown}


def _of_model(
    bench: Workbench, request: Mapping[str, Any], sampling: Sampling, temperatures: Sequence[float]
) -> dict[str, Any]:
    position = StepRequest.of({**fields(request.get("position")), "sampling": None})
    walk = Walk(bench, position)
    for token_id in position.path:
        walk.accept(token_id)
    if walk.ended or walk.only_end():
        raise Problem("path", "at the end", "the output ends here: go back a step to look at a distribution")
    shown = _through(
        walk.row(),
        sampling,
        walk.mask() if position.spec.kind != "none" else None,
        walk.state.prompt_ids,
        walk.state.output_ids,
        bench.names.token,
        temperatures,
    )
    text = bench.vocabulary.decode([*walk.state.prompt_ids[-24:], *walk.state.output_ids])
    return {"context": text.decode("utf-8", "replace"), "title": "", **shown}


def _through(
    row: NDArray[np.float32],
    sampling: Sampling,
    mask: NDArray[np.int32] | None,
    prompt_ids: Sequence[int],
    output_ids: Sequence[int],
    names: Callable[[int], dict[str, Any]],
    temperatures: Sequence[float],
) -> dict[str, Any]:
    state = _state(sampling, len(row), mask is not None, prompt_ids, output_ids)
    logits = as_row(row, len(row))
    allowed = None if mask is None else unpack_mask(mask, len(row))
    traced: list[tuple[str, Candidates]] = []
    try:
        told = explain(logits, state, mask)
        final, _ = state.sampler.run(logits, state, allowed, lambda stage, left: traced.append((stage, left)))
    except SamplingError as error:
        raise Problem("sampling", "no token left", str(error)) from error
    start = next(position for position in reversed(range(len(traced))) if traced[position][0] == "model")
    traced = traced[start:]
    columns = [_dense(left, len(row)) for _, left in traced]
    model, last = columns[0], columns[-1]
    best = np.argsort(-np.maximum(model, last), kind="stable")[:SHOWN]
    order = sorted((int(i) for i in best), key=lambda i: (-model[i], i))
    return {
        "tokens": [
            {**names(i), "logit": float(row[i]), "shares": [float(column[i]) for column in columns]} for i in order
        ],
        "stages": [
            {
                "stage": report.stage,
                "setting": report.setting,
                "survivors": report.survivors,
                "kept": report.mass_kept,
                "entropy": report.entropy / float(np.log(2)),
            }
            for report in told.stages
        ],
        "survivors": len(final),
        "vocabulary": len(row),
        "order": list(sampling.stages.stages),
        "active": [stage for stage in state.sampler.stages if stage != "mask" or allowed is not None],
        "temperatures": [
            _at_temperature(row, sampling, allowed, prompt_ids, output_ids, temperature, order)
            for temperature in temperatures
        ],
    }


def _at_temperature(
    row: NDArray[np.float32],
    sampling: Sampling,
    allowed: NDArray[np.bool_] | None,
    prompt_ids: Sequence[int],
    output_ids: Sequence[int],
    temperature: float,
    shown: Sequence[int],
) -> dict[str, Any]:
    """The same settings at another temperature."""
    state = _state(sampling.replace(temperature=temperature), len(row), allowed is not None, prompt_ids, output_ids)
    final, _ = state.sampler.run(as_row(row, len(row)), state, allowed)
    shares = _dense(final, len(row))
    return {
        "temperature": temperature,
        "survivors": len(final),
        "entropy": final.entropy() / float(np.log(2)),
        "shares": [float(shares[i]) for i in shown],
    }


def _state(
    sampling: Sampling, size: int, structured: bool, prompt_ids: Sequence[int], output_ids: Sequence[int]
) -> SamplerState:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        state = Sampler(sampling, size, structured=structured).start(prompt_ids, seed=0)
    for token_id in output_ids:
        state.append(token_id)
    return state


def _dense(candidates: Candidates, size: int) -> NDArray[np.float64]:
    """Probabilities by token id."""
    shares = np.zeros(size, dtype=np.float64)
    finite = candidates.compact()
    shares[np.arange(size) if finite.ids is None else finite.ids] = finite.probabilities()
    return shares


def _temperatures(value: Any) -> tuple[float, ...]:
    if value is None:
        return TEMPERATURES
    if not isinstance(value, list) or len(value) > 6:
        raise Problem("request", "malformed request", "temperatures is a list of at most six numbers")
    for temperature in value:
        sampling_of({"temperature": temperature})
    return tuple(float(temperature) for temperature in value)
