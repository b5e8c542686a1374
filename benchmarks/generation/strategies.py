"""Which way of getting a typed answer is right how often, and what it costs.

    python -m benchmarks.generation.strategies --problems 30 --folder build/bench/strategies

Each way answers the same word problems with a whole number. Every answer is a line in a file of the folder, so a run
that was interrupted goes on. ``free + parse`` reads the last number of the very drafts that ``draft`` goes on from:
the first pass of both is the same.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grammask
from benchmarks.generation.word_problems import Problem, problems
from benchmarks.machine import describe_machine, one_line
from benchmarks.tables import Table

ANSWER = grammask.Regex("0|[1-9][0-9]{0,3}")
DRAFT_TOKENS = 60
VOTES = 5
DRAFT_VOTES = 3
TEMPERATURE = 0.7
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "strategies.md"


def prompt(problem: Problem) -> list[dict[str, str]]:
    """The question as a chat message."""
    return [{"role": "user", "content": f"{problem.question} Answer with a number."}]


def last_number(text: str) -> int | None:
    """What one reads out of a free answer: its last number, None if it has none that is whole."""
    found = _NUMBER.findall(text)
    if not found:
        return None
    number = found[-1].replace(",", "")
    return int(float(number)) if float(number).is_integer() else None


def number(result: grammask.Result[Any]) -> int | None:
    """The answer, None if there is none."""
    return int(result.value) if result.complete else None


def run(model: Any, asked: Sequence[Problem], folder: Path) -> dict[str, list[grammask.Result[Any]]]:
    """The answers of each way, by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    prompts = [prompt(problem) for problem in asked]
    draft = grammask.Draft(max_tokens=DRAFT_TOKENS, instruction="So the answer, as a number:")
    random = grammask.Sampling(temperature=TEMPERATURE, seed=1)
    ways: dict[str, dict[str, Any]] = {
        "constrained": {},
        "reasoning field": {"strategy": grammask.ReasoningField(max_characters=160), "max_tokens": 80},
        "draft": {"strategy": draft},
        f"vote of {VOTES}": {"strategy": grammask.Vote(VOTES), "sampling": random},
        f"vote of {DRAFT_VOTES} drafts": {"strategy": grammask.Vote(DRAFT_VOTES, strategy=draft), "sampling": random},
    }
    results = {}
    for name, options in ways.items():
        file = folder / f"{name.replace(' ', '-')}.jsonl"
        results[name] = model.generate_many(prompts, ANSWER, output=file, batch_size=1, progress=True, **options)
        right = sum(number(r) == problem.answer for r, problem in zip(results[name], asked, strict=True))
        print(f"{name}: {right} of {len(asked)} right", flush=True)
    return results


def summary(asked: Sequence[Problem], results: dict[str, list[grammask.Result[Any]]]) -> list[dict[str, Any]]:
    """One row for each way."""
    rows = []
    drafts = [result.reasoning or "" for result in results["draft"]]
    parsed = [last_number(text) for text in drafts]
    rows.append(_row("free + parse", asked, parsed, None))
    for name, found in results.items():
        rows.append(_row(name, asked, [number(result) for result in found], found))
    tokens = Counter({row["way"]: row["tokens"] for row in rows})
    rows[0]["tokens"] = tokens["draft"] - tokens["constrained"]
    return rows


def _row(
    way: str, asked: Sequence[Problem], values: Sequence[Any], results: Sequence[grammask.Result[Any]] | None
) -> dict[str, Any]:
    right = [value == problem.answer for value, problem in zip(values, asked, strict=True)]
    easy = [ok for ok, problem in zip(right, asked, strict=True) if problem.steps == 1]
    hard = [ok for ok, problem in zip(right, asked, strict=True) if problem.steps > 1]
    tokens = sum(result.usage.completion_tokens for result in results) / len(asked) if results else 0.0
    return {
        "way": way,
        "valid": sum(value is not None for value in values) / len(asked),
        "right": sum(right) / len(asked),
        "right, one step": sum(easy) / len(easy),
        "right, more steps": sum(hard) / len(hard),
        "tokens": tokens,
    }


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows for people."""
    shares = ("valid", "right", "right, one step", "right, more steps")
    return Table(
        "Word problems with a whole number as their answer",
        ["way", *shares, "tokens per answer"],
        [[row["way"], *(f"{row[name]:.0%}" for name in shares), f"{row['tokens']:.0f}"] for row in rows],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--folder", type=Path, default=Path("build/bench/strategies"))
    parser.add_argument("--publish", action="store_true", help=f"put the table into {PAGE.name}")
    arguments = parser.parse_args()
    asked = problems(arguments.problems, arguments.seed)
    rows = summary(asked, run(grammask.load_model(arguments.model), asked, arguments.folder))
    text = table(rows).markdown()
    (arguments.folder / "summary.json").write_text(json.dumps({"rows": rows, "machine": describe_machine()}, indent=1))
    print(text)
    if arguments.publish:
        from benchmarks.publish import filled

        steps = sum(problem.steps == 1 for problem in asked)
        caption = f"{arguments.model}, n = {len(asked)} problems ({steps} of one step); {one_line(describe_machine())}."
        page = filled(PAGE.read_text(encoding="utf-8"), {"strategies": f"{caption}\n\n{text}"})
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
