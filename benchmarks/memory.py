"""Does memory level off when one process compiles ten thousand different schemas?

    python -m benchmarks.memory [--schemas 10000] [--budgets 64,256] [--json FILE] [--markdown FILE] [--plot FILE]

Every schema is compiled, masks are computed along the beginning of one of its instances, and then it is dropped; the
last 32 stay in use, as on a server. The first schemas are those of the case file, the others are generated. For each
budget of ``Vocabulary.cache_budget`` (MiB) there is a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

import grammask
from benchmarks.machine import describe_machine, one_line
from benchmarks.maskbench.cases import read_cases
from benchmarks.maskbench.cli import write
from benchmarks.tables import Table
from benchmarks.tokenizer import data_file, loaded_tokenizer

KEPT = 32
MASKS = 64
WORDS = ("name", "id", "price", "total", "created", "status", "tags", "note", "city", "lines", "owner", "unit", "code")


def schemas(path: Path) -> Iterator[tuple[str, str]]:
    """Schemas with a text that begins like an instance: those of a file, and then generated ones without end."""
    for case in read_cases(path):
        texts = [instance.text for instance in case.instances if instance.valid]
        yield case.source, texts[0] if texts else ""
    for seed in count():
        yield generated(seed)


def generated(seed: int) -> tuple[str, str]:
    """An object of random properties, and an instance of it."""
    generator = random.Random(seed)
    properties: dict[str, Any] = {}
    instance: dict[str, Any] = {}
    for _ in range(generator.randint(3, 12)):
        name = f"{generator.choice(WORDS)}_{generator.randrange(10_000)}"
        low, number = generator.randrange(1000), generator.randrange(100_000)
        properties[name], instance[name] = generator.choice(
            [
                ({"type": "string", "maxLength": low + 5}, "text"),
                ({"type": "string", "pattern": f"^[A-Z]{{2}}-{number}-[0-9]{{1,{low + 1}}}$"}, f"AB-{number}-1"),
                ({"type": "integer", "minimum": low, "maximum": low + number}, low),
                ({"enum": [f"choice {i}" for i in range(low, low + 20)]}, f"choice {low + 7}"),
                ({"type": "array", "items": {"type": "number"}, "maxItems": low + 1}, [1.5]),
            ]
        )
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps(schema), json.dumps(instance)


def curve(tokenizer: Path, end: int, cases: Path, number: int, budget: int, step: int) -> dict[str, list[float]]:
    """Memory after every ``step`` schemas, in MiB.

    ``resident`` is what the process holds, ``caches`` and ``vocabulary`` what the vocabulary reports of it.
    """
    vocabulary = grammask.Vocabulary.from_tokenizers(tokenizer, eos_token_ids=[end])
    vocabulary.cache_budget = budget << 20
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    kept: deque[grammask.CompiledConstraint] = deque(maxlen=KEPT)
    points: dict[str, list[float]] = {"schemas": [], "resident": [], "caches": [], "vocabulary": [], "seconds": []}
    started = time.process_time()
    for done, (schema, text) in enumerate(islice(schemas(cases), number + 1)):
        if done % step == 0:
            gc.collect()
            parts = vocabulary.memory_bytes()
            caches = parts["native.shared_caches"]
            points["schemas"].append(done)
            points["resident"].append(resident_bytes() / 2**20)
            points["caches"].append(caches / 2**20)
            points["vocabulary"].append((sum(parts.values()) - caches - parts["native.shared_masks"]) / 2**20)
            points["seconds"].append(round(time.process_time() - started, 1))
        try:
            compiled = grammask.compile(grammask.JsonSchema(schema), vocabulary)
        except grammask.ConstraintError:
            continue
        kept.append(compiled)
        matcher = compiled.matcher()
        for token in vocabulary.tokenize_greedy(text[: 8 * MASKS])[:MASKS]:
            matcher.fill_mask(mask)
            if not matcher.accept(token):
                break
    return points


def resident_bytes() -> int:
    """Memory of this process (Linux)."""
    import resource

    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


def table(curves: dict[str, dict[str, list[float]]]) -> Table:
    """Memory at some points of each curve."""
    made = Table(
        f"Memory of a process that compiles different schemas, the last {KEPT} in use (MiB)",
        ["schemas", *(f"{what}, budget {budget} MiB" for budget in curves for what in ("process", "caches reported"))],
    )
    first = next(iter(curves.values()))
    shown = [i for i, n in enumerate(first["schemas"]) if n in (0, 100, 500) or n % 1000 == 0]
    for i in shown:
        cells = [f"{points[what][i]:.0f}" for points in curves.values() for what in ("resident", "caches")]
        made.rows.append([f"{first['schemas'][i]:,.0f}", *cells])
    return made


def plot(curves: dict[str, dict[str, list[float]]], path: Path) -> None:
    """The curves, as SVG."""
    from benchmarks.publish import new_figure, save_figure

    figure, axes = new_figure(len(curves))
    for axis, (budget, points) in zip(np.atleast_1d(axes), curves.items(), strict=True):
        axis.plot(points["schemas"], points["resident"], label="process", color="#00796b")
        axis.plot(points["schemas"], points["caches"], label="caches in use, reported", color="#d84315")
        axis.axhline(float(budget), linestyle=":", color="#888", label="budget")
        axis.set(xlabel="different schemas compiled", ylabel="MiB", ylim=(0, None), title=f"budget {budget} MiB")
        axis.legend(frameon=False)
    save_figure(figure, path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is asked for, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--schemas", type=int, default=10_000)
    parser.add_argument("--budgets", default="64,256", metavar="MIB,MIB", help="of the caches, one process each")
    parser.add_argument("--step", type=int, default=100, help="schemas between two points of the curve")
    parser.add_argument("--tokenizer", default="llama3_1")
    parser.add_argument("--cases", type=Path, help="MaskBench-style cases (default: those under $GRAMMASK_DATA)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--alone", type=int, metavar="ID", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        cases = options.cases or data_file("maskbench-dev.jsonl.gz")
        if options.alone is not None:
            budget = int(options.budgets)
            points = curve(Path(options.tokenizer), options.alone, cases, options.schemas, budget, options.step)
            print(json.dumps(points))
            return 0
        machine = describe_machine()
        with loaded_tokenizer(options.tokenizer) as tokenizer:
            end = str(tokenizer.end_of_text())
            command = [sys.executable, "-m", "benchmarks.memory", "--alone", end, "--tokenizer", str(tokenizer.path)]
            command += ["--cases", str(cases), "--schemas", str(options.schemas), "--step", str(options.step)]
            curves = {
                budget: json.loads(
                    subprocess.run(
                        [*command, "--budgets", budget], check=True, stdout=subprocess.PIPE, text=True
                    ).stdout
                )
                for budget in options.budgets.split(",")
            }
    except FileNotFoundError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    made = table(curves)
    print(one_line(machine))
    made.show()
    if options.json:
        data = {"machine": machine, "curves": curves, "table": asdict(made)}
        write(options.json, [json.dumps(data, indent=1)])
    if options.markdown:
        write(options.markdown, [one_line(machine), "", made.markdown()])
    if options.plot:
        plot(curves, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
