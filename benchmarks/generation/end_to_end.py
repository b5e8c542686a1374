"""What a constraint costs, and saves, end to end with a real model.

    python -m benchmarks.generation.end_to_end [--publish]

For each of twelve schemas: one constrained output, and free text of exactly as many tokens behind the same prompt, in
turns, on one thread. Times are CPU times of the process, so that neighbours hardly count. Two things differ: masks cost
time, and tokens that the schema makes certain save forward passes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import grammask
from benchmarks.machine import describe_machine, one_line
from benchmarks.tables import Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
TEXT = {"type": "string", "maxLength": 24}


def record(**members: Any) -> dict[str, Any]:
    """An object with exactly these members."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


SCHEMAS: dict[str, dict[str, Any]] = {
    "person": record(name=TEXT, age={"type": "integer", "minimum": 0, "maximum": 120}),
    "support record": record(
        name=TEXT,
        order_id={"type": "string", "pattern": "^[0-9]{2}-[0-9]{5}$"},
        category={"enum": ["damaged", "late", "wrong item"]},
    ),
    "address": record(street=TEXT, city=TEXT, postal_code={"type": "string", "pattern": "^[0-9]{5}$"}, country=TEXT),
    "event": record(title=TEXT, date={"type": "string", "format": "date"}, location=record(city=TEXT, room=TEXT)),
    "product": record(
        name=TEXT,
        price={"type": "string", "pattern": "^[0-9]{1,4}\\.[0-9]{2}$"},
        currency={"enum": ["EUR", "USD", "GBP"]},
        in_stock={"type": "boolean"},
    ),
    "review": record(
        sentiment={"enum": ["positive", "negative", "neutral"]},
        score={"type": "string", "pattern": "^[1-5]$"},
        summary=TEXT,
    ),
    "weather": record(
        temperature=record(value={"enum": [-10, 0, 10, 20, 30]}, unit={"enum": ["celsius", "fahrenheit"]}),
        condition={"enum": ["sunny", "cloudy", "rain", "snow"]},
    ),
    "tool call": record(
        name={"const": "search_flights"},
        arguments=record(origin=TEXT, destination=TEXT, passengers={"enum": [1, 2, 3, 4]}),
    ),
    "contact": record(first_name=TEXT, last_name=TEXT, phone={"type": "string", "pattern": "^\\+[0-9]{2} [0-9]{9}$"}),
    "settings": record(
        theme={"enum": ["light", "dark"]},
        language={"enum": ["en", "de", "he", "tr"]},
        notifications=record(email={"type": "boolean"}, push={"type": "boolean"}),
    ),
    "recipe": record(
        title=TEXT, servings={"enum": [1, 2, 4, 6]}, ingredients={"type": "array", "items": TEXT, "maxItems": 3}
    ),
    "triage": record(
        priority={"enum": ["low", "medium", "high", "critical"]},
        component={"enum": ["interface", "database", "network", "documentation"]},
        needs_information={"type": "boolean"},
    ),
}


def measure(model: Any, repeats: int) -> list[dict[str, Any]]:
    """One row for each schema; times in seconds, the least of several."""
    rows = []
    for name, schema in SCHEMAS.items():
        prompt = [{"role": "user", "content": f"Make up an example of the record “{name}”, as JSON."}]
        constraint = grammask.compile(grammask.JsonSchema(schema, whitespace="python"), model.vocabulary)
        constrained, free = [], []
        for _ in range(repeats + 1):  # the first time warms up
            seconds, result = _timed(model, prompt, constraint, max_tokens=200)
            constrained.append(seconds)
            count = result.usage.completion_tokens
            long = grammask.Sampling(temperature=0, min_tokens=count)
            seconds, text = _timed(model, prompt, None, sampling=long, max_tokens=count, truncate="allow")
            assert text.usage.completion_tokens == text.usage.model_calls == count
            free.append(seconds)
        rows.append(
            {
                "schema": name,
                "tokens": count,
                "forced": result.usage.forced_tokens,
                "passes": result.usage.model_calls - 1,
                "free passes": count - 1,
                "constrained": min(constrained[1:]),
                "free": min(free[1:]),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def _timed(model: Any, prompt: Any, constraint: Any, **options: Any) -> tuple[float, Any]:
    """CPU seconds after the first forward pass, which reads the prompt, and the result."""
    marks: list[float] = []

    def before_each_pass() -> bool:
        marks.append(time.process_time())
        return False

    result = model.generate(prompt, constraint, cancelled=before_each_pass, **options)
    return time.process_time() - marks[1], result


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Rows and their sum for people."""
    columns = [
        "schema",
        "tokens",
        "forced",
        "forward passes",
        "constrained, s",
        "free, s",
        "ms per pass",
        "free, ms per pass",
    ]
    total = {key: sum(row[key] for row in rows) for key in rows[0] if key != "schema"}
    cells = []
    for row in [*rows, {"schema": "all", **total}]:
        passes = 1000 * row["constrained"] / row["passes"], 1000 * row["free"] / row["free passes"]
        times = f"{row['constrained']:.2f}", f"{row['free']:.2f}"
        counts = [str(row[key]) for key in ("tokens", "forced", "passes")]
        cells.append([row["schema"], *counts, *times, *(f"{value:.1f}" for value in passes)])
    return Table("Twelve records, and free text of as many tokens", columns, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help=f"put the table into {PAGE.name}")
    arguments = parser.parse_args()
    found = table(measure(grammask.load_model(arguments.model), arguments.repeats))
    found.show()
    if arguments.publish:
        from benchmarks.publish import filled

        caption = f"{arguments.model}, one thread, CPU time; {one_line(describe_machine())}."
        page = filled(PAGE.read_text(encoding="utf-8"), {"generation": f"{caption}\n\n{found.markdown()}"})
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
