"""Small measurements of grammask alone, each an answer to one question.

    python -m benchmarks.micro [--only calls,vocabulary,batch,sizes,growth] [--json FILE]

calls       What does Python add to a call of ``fill_mask``, ``accept`` and ``forced_tokens``?
vocabulary  How long does building a vocabulary take, and how much memory?
batch       How long do masks for 256 sequences over mixed schemas take, on one thread and on two?
sizes       How does the cost of masks grow with the size of the vocabulary?
growth      How do compiling and masks grow with the size of the constraint, after a fixed prefix?
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import grammask
from benchmarks.clocks import calibrated
from benchmarks.engines.base import EngineOptions, Refused
from benchmarks.engines.grammask_engine import GrammaskEngine
from benchmarks.machine import describe_machine, one_line
from benchmarks.maskbench.cases import Case, read_cases, select
from benchmarks.maskbench.cli import write
from benchmarks.maskbench.measure import Case as Measured
from benchmarks.statistics import Spread
from benchmarks.tables import Table, figure
from benchmarks.tokenizer import LoadedTokenizer, data_file, loaded_tokenizer

Result = tuple[Table, dict[str, Any]]


def nanoseconds_per_call(call: Callable[[], object], calls: int = 20_000, repeats: int = 7) -> float:
    """CPU time of a call in a C loop: the best of several repeats, so that only what must be paid is counted."""
    best = float("inf")
    for _ in range(repeats):
        started = time.thread_time_ns()
        for _ in repeat(None, calls):
            call()
        best = min(best, (time.thread_time_ns() - started) / calls)
    return best


def calls() -> Result:
    """Each call where the core has next to nothing to do: a vocabulary of 256 bytes, a state seen before.

    What is left is the way from Python into the core and back, so the figure bounds from above what Python adds.
    """
    vocabulary = grammask.Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], eos_token_ids=[256])
    matcher = grammask.compile(grammask.Regex("[a-z]*"), vocabulary).matcher()
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    empty = nanoseconds_per_call([].clear)
    measured = {
        "fill_mask": nanoseconds_per_call(partial(matcher.fill_mask, mask)),
        "accept": nanoseconds_per_call(partial(matcher.accept, ord("a"))),
        "forced_tokens": nanoseconds_per_call(matcher.forced_tokens),
        "is_complete": nanoseconds_per_call(lambda: matcher.is_complete),
    }
    table = Table("A call with nothing to do", ["call", "ns", "ns above an empty call"])
    table.rows += [[name, figure(value), figure(value - empty)] for name, value in measured.items()]
    table.rows.append(["an empty method of a list", figure(empty), ""])
    return table, {"nanoseconds": {**measured, "empty": empty}}


def vocabulary(names: Sequence[str]) -> Result:
    """From a tokenizer file to a vocabulary with its trie, what of that is parsing JSON, and loading its own file."""
    table = Table(
        "Building a vocabulary, and loading it from its file (ms; the best of some)",
        [
            "tokenizer",
            "tokens",
            "built, CPU",
            "of which json.loads",
            "without",
            "loaded, wall",
            "found in the cache, wall",
            "MB",
            "MB of each of two processes that load",
            "that build",
        ],
        note=(
            "Found in the cache: `from_tokenizers(path, cache=folder)`, which reads the tokenizer only to hash it. "
            "MB of each of two processes: what having the vocabulary, and one mask along the whole trie, adds to the "
            "proportional set size of a process, which counts a page that two share as half (Linux)."
        ),
    )
    data = {}
    for name in names:
        with loaded_tokenizer(name) as tokenizer, tempfile.TemporaryDirectory() as folder:
            content = tokenizer.path.read_bytes()
            whole = min(_milliseconds(lambda: _build(tokenizer.path)) for _ in range(3))
            parsing = min(_milliseconds(partial(json.loads, content)) for _ in range(3))
            built = _build(tokenizer.path)
            file = Path(folder) / "vocabulary.bin"
            built.save(file)
            load = min(_milliseconds(partial(grammask.Vocabulary.load, file), time.perf_counter_ns) for _ in range(20))
            cached = partial(grammask.Vocabulary.from_tokenizers, tokenizer.path, cache=Path(folder) / "cache")
            cached()
            found = min(_milliseconds(cached, time.perf_counter_ns) for _ in range(10))
            loaded_bytes, built_bytes = _bytes_of_two("load", file), _bytes_of_two("from_tokenizers", tokenizer.path)
            size = sum(built.memory_bytes().values())
        data[name] = {
            "tokens": built.size,
            "whole_ms": whole,
            "json_ms": parsing,
            "load_ms": load,
            "cached_ms": found,
            "bytes": size,
            "process_bytes_loaded": loaded_bytes,
            "process_bytes_built": built_bytes,
        }
        times = [f"{value:.0f}" for value in (whole, parsing, whole - parsing)]
        times += [figure(load), figure(found)]
        sizes = ["–" if value is None else f"{value / 1e6:.1f}" for value in (size, loaded_bytes, built_bytes)]
        table.rows.append([name, f"{built.size:,}", *times, *sizes])
    return table, data


_CHILD = """
import gc, sys
from pathlib import Path
import grammask
def bytes_now():
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
def mask(vocabulary):
    grammask.compile(grammask.Regex(".*"), vocabulary).matcher().allowed_token_ids()
def wait():
    print("", flush=True)
    sys.stdin.readline()
mask(grammask.Vocabulary.from_tokens([b"a"], eos_token_ids=[]))
wait()
before = bytes_now()
wait()
options = {"eos_token_ids": [0]} if sys.argv[1] == "from_tokenizers" else {}
vocabulary = getattr(grammask.Vocabulary, sys.argv[1])(sys.argv[2], **options)
mask(vocabulary)
wait()
print(bytes_now() - before, flush=True)
sys.stdin.readline()
"""


def _bytes_of_two(constructor: str, path: Path) -> int | None:
    """What a vocabulary adds to the proportional set size of one of two processes that both have it."""
    if not Path("/proc/self/smaps_rollup").exists():
        return None
    command = [sys.executable, "-c", _CHILD, constructor, str(path)]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]

    def step() -> list[str]:
        answers = []
        for child in children:
            assert child.stdout is not None
            answers.append(child.stdout.readline())
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
        return answers

    for _ in range(3):
        step()
    added = [int(answer) for answer in step()]
    for child in children:
        child.wait()
    return max(added)


def _build(path: Path) -> grammask.Vocabulary:
    built = grammask.Vocabulary.from_tokenizers(path, eos_token_ids=[0])
    _ = built.native
    return built


def _milliseconds(call: Callable[[], object], clock: Callable[[], int] = time.process_time_ns) -> float:
    gc.collect()
    started = clock()
    call()
    return (clock() - started) / 1e6


def _positions(engine: GrammaskEngine, tokenizer: LoadedTokenizer, cases: Sequence[Case], count: int) -> list[Any]:
    """Matchers of different schemas, each somewhere inside a valid instance."""
    generator = np.random.default_rng(0)
    matchers = []
    for case in cases:
        texts = [instance.text for instance in case.instances if instance.valid]
        if not texts:
            continue
        try:
            matcher = engine.json_schema(case.source).matcher()
        except Refused:
            continue
        tokens = tokenizer.encode(texts[0])
        for token in tokens[: int(generator.integers(len(tokens)))]:
            if not matcher.accept(token):
                break
        matchers.append(matcher)
        if len(matchers) == count:
            break
    return matchers


def batch(name: str, cases: Sequence[Case], count: int = 256, repeats: int = 200) -> Result:
    """Wall time of ``fill_masks``, every state warm."""
    with loaded_tokenizer(name) as tokenizer:
        engine = GrammaskEngine(EngineOptions(tokenizer.path, tokenizer.end_of_text()))
        matchers = _positions(engine, tokenizer, cases, count)
    out = np.zeros((len(matchers), engine.mask.size), dtype=np.int32)
    table = Table(
        f"fill_masks for {len(matchers)} sequences, each over its own schema ({name}, wall, µs)",
        ["threads", "p50", "p90", "best"],
        note="The first call of all, with cold states, is not in the figures of the others.",
    )
    data: dict[str, Any] = {"sequences": len(matchers)}
    started = time.perf_counter_ns()
    grammask.fill_masks(matchers, out, threads=1)
    data["cold_us"] = (time.perf_counter_ns() - started) / 1000
    table.rows.append(["1, cold", figure(data["cold_us"]), "", ""])
    for threads in (1, 2):
        times = []
        for _ in range(repeats):
            started = time.perf_counter_ns()
            grammask.fill_masks(matchers, out, threads=threads)
            times.append(time.perf_counter_ns() - started)
        spread = Spread.of(times)
        best = min(times) / 1000
        data[f"threads_{threads}"] = {**spread.to_json(), "best": best}
        table.rows.append([str(threads), figure(spread.p50), figure(spread.p90), figure(best)])
    return table, data


def sizes(names: Sequence[str], cases: Sequence[Case]) -> Result:
    """The same cases over vocabularies of different sizes, in a first and in a second round."""
    table = Table(
        f"Masks of {len(cases)} cases by size of the vocabulary (CPU, µs)",
        ["tokenizer", "tokens", "masks", "mean, first round", "mean, again", "p50, again", "p99, again"],
        note="The first round starts with a new vocabulary, whose caches are empty; the second repeats the same cases.",
    )
    data = {}
    watch = calibrated()
    for name in names:
        with loaded_tokenizer(name) as tokenizer:
            end = tokenizer.end_of_text()
            engine = GrammaskEngine(EngineOptions(tokenizer.path, end))
            requests = [(case.source, [tokenizer.encode(i.text) for i in case.instances]) for case in cases]
        rounds = []
        for _ in range(2):
            times: list[int] = []
            for source, instances in requests:
                times += Measured(engine, end, watch, 60).run("json_schema", source, instances, False).mask_cpu
            rounds.append(Spread.of(times))
        first, again = rounds
        data[name] = {"tokens": engine.vocabulary.size, "first": first.to_json(), "again": again.to_json()}
        figures = [figure(value) for value in (first.mean, again.mean, again.p50, again.p99)]
        table.rows.append([name, f"{engine.vocabulary.size:,}", f"{first.count:,}", *figures])
    return table, data


def wide_object(size: int) -> str:
    """A closed object of that many properties."""
    properties = {f"property_{i}": {"type": ("string", "integer", "boolean")[i % 3]} for i in range(size)}
    schema = {"type": "object", "properties": properties, "required": ["property_0"], "additionalProperties": False}
    return json.dumps(schema)


def long_enum(size: int) -> str:
    """An object with one choice of that many values."""
    values = [f"value {i * 7919 % 100_003}" for i in range(size)]
    return json.dumps({"type": "object", "properties": {"property_0": {"enum": values}}, "required": ["property_0"]})


def nested(size: int) -> str:
    """Objects inside objects, that many deep."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(size):
        schema = {"type": "object", "properties": {"property_0": schema}, "required": ["property_0"]}
    return json.dumps(schema)


SHAPES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "properties of an object": (wide_object, (1, 10, 100, 1000, 10_000)),
    "values of an enum": (long_enum, (1, 10, 100, 1000, 10_000)),
    "depth of objects": (nested, (1, 10, 100)),
}


def growth(name: str) -> Result:
    """Compile time, and masks along the fixed prefix ``{"property_0": ``, cold and again."""
    prefix = '{"property_0": '
    table = Table(
        f"Growth with the constraint ({name}, CPU, µs)",
        ["constraint", "size", "compile", "slowest mask of the prefix, cold", "mean, cold", "mean, again"],
        note=(
            f"Prefix: {prefix!r}. Every size starts with a new vocabulary, so that nothing is shared. "
            "Again: the best of eleven further rounds."
        ),
    )
    data: dict[str, Any] = {}
    watch = calibrated()
    with loaded_tokenizer(name) as tokenizer:
        end, tokens = tokenizer.end_of_text(), tokenizer.encode(prefix)
        for shape, (make, steps) in SHAPES.items():
            for size in steps:
                engine = GrammaskEngine(EngineOptions(tokenizer.path, end))
                engine.json_schema('{"type": "string"}')
                compiled = watch(partial(engine.json_schema, make(size)))
                compile_us = watch.cpu / 1000
                rounds = []
                for _ in range(12):
                    session = engine.session(compiled)
                    times = []
                    for token in tokens:
                        watch(session.fill)
                        times.append(watch.cpu)
                        session.accept(token)
                    rounds.append(Spread.of(times))
                cold, again = rounds[0], min(spread.mean for spread in rounds[1:])
                row = {"size": size, "compile": compile_us, "cold": cold.mean, "again": again}
                data.setdefault(shape, []).append(row)
                figures = [figure(value) for value in (compile_us, cold.max, cold.mean, again)]
                table.rows.append([shape, f"{size:,}", *figures])
    return table, data


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is asked for, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="calls,vocabulary,batch,sizes,growth", metavar="NAMES")
    parser.add_argument("--tokenizer", default="llama3_1", help="for batch and growth")
    parser.add_argument("--tokenizers", default="smollm2,llama3_1,gptoss,gemma3", help="for vocabulary and sizes")
    parser.add_argument("--cases", type=Path, help="MaskBench-style cases (default: those under $GRAMMASK_DATA)")
    parser.add_argument("--every", type=int, default=40, metavar="N", help="each n-th of them for sizes (default: 40)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="written after each part; parts not run are kept")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    tokenizers = options.tokenizers.split(",")

    def cases(every: int) -> list[Case]:
        return select(read_cases(options.cases or data_file("maskbench-dev.jsonl.gz")), every=every)

    parts: dict[str, Callable[[], Result]] = {
        "calls": calls,
        "vocabulary": lambda: vocabulary(tokenizers),
        "batch": lambda: batch(options.tokenizer, cases(20)),
        "sizes": lambda: sizes(tokenizers, cases(options.every)),
        "growth": lambda: growth(options.tokenizer),
    }
    unknown = set(options.only.split(",")) - parts.keys()
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    data: dict[str, Any] = {}
    if options.json and options.json.is_file():
        data = json.loads(options.json.read_text("utf-8"))
    machine = describe_machine()
    caption = one_line(machine)
    print(caption)
    tables: list[Table] = []
    gc.disable()
    try:
        for name in options.only.split(","):
            table, data[name] = parts[name]()
            table.show()
            tables.append(table)
            data[name].update(table=asdict(table), machine=machine)
            if options.json:
                write(options.json, [json.dumps(data, indent=1)])
            gc.collect()
    except (FileNotFoundError, ValueError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    if options.markdown:
        write(options.markdown, [caption, "", *(table.markdown() for table in tables)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
