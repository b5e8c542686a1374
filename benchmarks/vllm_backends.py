"""grammask beside vLLM's own structured-output backends: the same requests to the same engine, one after the other.

    python -m benchmarks.vllm_backends MODEL_FOLDER --json build/bench/vllm.json --markdown build/bench/vllm.md

Runs in an environment that has vLLM (``make bench-vllm``). For each backend an engine is started in a process of its
own and given

* schemas that it has not seen (every name of a property is new), one request at a time: what the backend adds to the
  time to the first token, which is checking the request, compiling it and the first mask;
* eight requests at once whose outputs are longer than what is measured: what the backend adds to each step of the
  batch, which is eight masks and eight tokens to take;
* the constraints of the tests: every output is checked by jsonschema and the standard library.

Times are those of the thread that does it (``time.thread_time``) inside vLLM's own calls of its backend, so that
neither the model nor other programs on the machine count. The wall times to the first token and of a step of the batch,
which gives each of its requests a token, are given as well.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BACKENDS = ("grammask", "xgrammar", "guidance")
COLD_SCHEMAS = 8
MAX_TOKENS = 60
BATCH = 8
STEPS = 40
ROUNDS = 2

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "PYTHONPATH": str(Path(__file__).parents[1] / "tests"),
}


def cold_schema(number: int, fields: int = 12) -> dict[str, Any]:
    """A schema whose names nobody has seen."""
    kinds: list[dict[str, Any]] = [
        {"type": "string", "maxLength": 12},
        {"type": "integer", "minimum": 0, "maximum": 1000 + number},
        {"enum": [f"value-{number}-{i}" for i in range(8)]},
        {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{3}$"}, "maxItems": 3},
        {"anyOf": [{"type": "null"}, {"type": "number"}]},
        {"type": "string", "format": "date"},
    ]
    properties = {f"field_{number}_{i}": kinds[i % len(kinds)] for i in range(fields)}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class Spent:
    """Processor seconds of vLLM's calls of its structured-output backend, by call."""

    def __init__(self) -> None:
        from vllm import SamplingParams
        from vllm.v1.structured_output import StructuredOutputManager

        self.seconds: dict[str, list[float]] = {}
        self._count(SamplingParams, "_validate_structured_outputs")
        for name in ("_create_grammar", "grammar_bitmask", "accept_tokens"):
            self._count(StructuredOutputManager, name)

    def clear(self) -> None:
        """Forgets what was counted."""
        self.seconds.clear()

    def _count(self, owner: type, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def counted(*arguments: Any, **keywords: Any) -> Any:
            start = time.thread_time()
            try:
                return original(*arguments, **keywords)
            finally:
                self.seconds.setdefault(name, []).append(time.thread_time() - start)

        setattr(owner, name, counted)


def measure(backend: str, model: str) -> dict[str, Any]:
    """What one backend does, in this process."""
    from vllm import LLM, SamplingParams
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import StructuredOutputsParams

    from support.engine_cases import CASES

    config = {"backend": "guidance" if backend == "grammask" else backend, "disable_any_whitespace": True}
    engine = LLM(
        model,
        max_model_len=1024,
        max_num_seqs=16,
        enforce_eager=True,
        dtype="bfloat16",
        distributed_executor_backend="uni",
        structured_outputs_config=config,
    )
    cases = [case for case in CASES if case.vllm is not None]

    def params(kind: str, value: Any, tokens: int = MAX_TOKENS) -> Any:
        structured = StructuredOutputsParams(**{kind: value})
        return SamplingParams(structured_outputs=structured, max_tokens=tokens, temperature=0)

    spent = Spent()

    def first_token(schema: dict[str, Any], name: str) -> tuple[float, float]:
        spent.clear()
        start = time.perf_counter()
        engine.llm_engine.add_request(name, "Write an example as JSON.", params("json", schema, tokens=1))
        while engine.llm_engine.has_unfinished_requests():
            engine.llm_engine.step()
        return time.perf_counter() - start, sum(map(sum, spent.seconds.values()))

    engine.generate(["warm up"], SamplingParams(max_tokens=4), use_tqdm=False)
    first_token(cold_schema(10**6), "warm up")
    cold = [first_token(cold_schema(number), f"cold {number}") for number in range(COLD_SCHEMAS)]
    refused: dict[str, str] = {}
    accepted = []
    for case in cases:
        assert case.vllm is not None
        try:
            engine.generate([case.prompt], params(*case.vllm, tokens=1), use_tqdm=False)
            accepted.append(case)
        except (ValueError, VLLMValidationError) as error:
            refused[case.name] = str(error).splitlines()[0][:200]
    outputs = engine.generate(
        [case.prompt for case in accepted],
        [params(*case.vllm) for case in accepted if case.vllm is not None],
        use_tqdm=False,
    )
    outcomes = {case.name: judge(case, each.outputs[0]) for case, each in zip(accepted, outputs, strict=True)}
    steps = steps_of_a_batch(
        engine, spent, [params("json", long_schema(number), tokens=STEPS) for number in range(BATCH)]
    )
    return {
        "backend": backend,
        "version": version_of(backend),
        "requests": len(cases),
        "valid": sum(outcome == "valid" for outcome in outcomes.values()),
        "outcomes": outcomes,
        "refused": refused,
        "cold_wall_ms": [wall * 1000 for wall, _ in cold],
        "cold_ms": [spent_by_backend * 1000 for _, spent_by_backend in cold],
        "step_wall_ms": [wall * 1000 for wall, _ in steps],
        "step_ms": [spent_by_backend * 1000 for _, spent_by_backend in steps],
    }


def long_schema(number: int) -> dict[str, Any]:
    """A schema whose outputs are longer than what is measured, so that every backend takes the same steps."""
    item = {
        "type": "object",
        "properties": {f"name_{number}": {"type": "string"}, "count": {"type": "integer"}, "open": {"type": "boolean"}},
        "required": [f"name_{number}", "count", "open"],
        "additionalProperties": False,
    }
    return {"type": "array", "items": item, "minItems": 100}


def steps_of_a_batch(engine: Any, spent: Spent, params: list[Any]) -> list[tuple[float, float]]:
    """Seconds of each step of a batch, and those of it that the backend takes; the prompt and first tokens left out."""
    for number, each in enumerate(params):
        engine.llm_engine.add_request(f"step {number}", "Write many examples as JSON.", each)
    times = []
    while engine.llm_engine.has_unfinished_requests():
        spent.clear()
        start = time.perf_counter()
        engine.llm_engine.step()
        times.append((time.perf_counter() - start, sum(map(sum, spent.seconds.values()))))
    return times[8:-1]


def judge(case: Any, output: Any) -> str:
    """valid, cut or what is wrong."""
    try:
        case.check(output.text)
    except Exception as error:  # whatever a check says
        return "cut" if output.finish_reason == "length" else f"invalid: {str(error).splitlines()[0][:120]}"
    return "valid"


def version_of(backend: str) -> str:
    import importlib.metadata

    return importlib.metadata.version("llguidance" if backend == "guidance" else backend)


def run_all(model: str) -> list[dict[str, Any]]:
    """Every backend in a process of its own, one after the other, and that several times."""
    found = []
    for backend in BACKENDS * ROUNDS:
        environment = {**os.environ, **ENVIRONMENT, "GRAMMASK_VLLM_BACKEND": "all" if backend == "grammask" else ""}
        command = [sys.executable, "-m", "benchmarks.vllm_backends", model, "--one", backend]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(row(found[-1]), flush=True)
    return [quietest([each for each in found if each["backend"] == backend]) for backend in BACKENDS]


def quietest(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """One backend's rounds as one: each series of times is the one with the smallest median, in which other programs
    were least in the way. Outcomes must be the same each time."""
    first = rounds[0]
    for each in rounds:
        if each["outcomes"] != first["outcomes"] or each["refused"] != first["refused"]:
            raise RuntimeError(f"{first['backend']} gave other outcomes in another round: {each['outcomes']}")
    series = [name for name in first if name.endswith("_ms")]
    return {**first, **{name: min((each[name] for each in rounds), key=statistics.median) for name in series}}


def row(result: dict[str, Any]) -> str:
    """A line of the table."""
    cold = result["cold_ms"]
    return (
        f"| {result['backend']} {result['version']} | {result['valid']} of {result['requests']} "
        f"| {len(result['refused'])} | {statistics.median(cold):.1f} | {max(cold):.1f} "
        f"| {statistics.median(result['cold_wall_ms']):.0f} | {statistics.median(result['step_ms']):.2f} "
        f"| {statistics.median(result['step_wall_ms']):.0f} |"
    )


HEAD = (
    "| backend | valid | refused | cold schema, median ms | worst ms | first token, wall ms "
    "| step of 8, median ms | token, wall ms |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--one", choices=BACKENDS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one, options.model)))
        return
    print(HEAD)
    results = run_all(options.model)
    for path, text in (
        (options.json, json.dumps(results, indent=1)),
        (options.markdown, "\n".join([HEAD, *map(row, results)]) + "\n"),
    ):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
