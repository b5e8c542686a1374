"""Regular expressions and grammars through the same engines, clocks and tables as the JSON Schemas.

    python -m benchmarks.regex_grammar [--tokenizer llama3_1] [--engines grammask,llguidance,...] [--json FILE]

``regex_grammar.json`` holds the constraints with outputs that they take and refuse. The regular expressions keep to
what all engines read alike (no classes whose meaning differs); the grammars, among them those of examples/grammars,
are in llama.cpp's notation, which llguidance gets translated beforehand by its own converter and outlines-core does not
take.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines import DEFAULT
from benchmarks.machine import describe_machine, one_line
from benchmarks.maskbench import report
from benchmarks.maskbench.cases import Case, Instance
from benchmarks.maskbench.cli import Progress, chosen_engines, write
from benchmarks.maskbench.run import EngineUnavailable, Plan, run
from benchmarks.maskbench.summary import case_records, summarize
from benchmarks.tokenizer import loaded_tokenizer

CASES = Path(__file__).with_suffix(".json")
EXAMPLES = Path(__file__).parents[1] / "examples" / "grammars"


def constraint_cases(path: Path = CASES) -> list[Case]:
    """The cases: objects of ``id``, ``regex``, ``gbnf`` or ``example`` (a file), ``valid`` and ``invalid`` texts."""
    cases = []
    for record in json.loads(path.read_text("utf-8")):
        if "example" in record:
            record["gbnf"] = (EXAMPLES / record["example"]).read_text("utf-8")
        (kind,) = {"regex", "gbnf"} & record.keys()
        outputs = [Instance(valid, text) for valid in (True, False) for text in record["valid" if valid else "invalid"]]
        cases.append(Case(f"{kind}: {record['id']}", kind, record[kind], tuple(outputs)))
    return cases


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regex_grammar", description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", default="llama3_1")
    parser.add_argument("--engines", default=",".join(DEFAULT))
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="CPU time for a case")
    parser.add_argument("--memory-limit", type=float, default=10.0, metavar="GB", help="for each engine; 0 for none")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    cases = constraint_cases()
    try:
        engines = chosen_engines(options.engines)
        with loaded_tokenizer(options.tokenizer) as tokenizer:
            plan = Plan(
                engines,
                tokenizer.path,
                tokenizer.end_of_text(),
                seconds=options.timeout,
                memory_bytes=int(options.memory_limit * 1e9),
            )
            results = run(plan, cases, tokenizer.encode, Progress(len(cases)))
            failures = [
                line
                for result in results.values()
                for line in report.failures(result, {case.id: case for case in cases}, tokenizer.text_before, None)
            ]
    except (FileNotFoundError, ValueError, EngineUnavailable) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    data: dict[str, Any] = {
        "machine": describe_machine(),
        "tokenizer": options.tokenizer,
        "summary": {name: summarize(result) for name, result in results.items()},
        "ratios": report.all_ratios(results),
        "cases": {name: case_records(result) for name, result in results.items()},
    }
    tables = [report.verdicts(data["summary"]), report.times(data["summary"]), *report.ratio_tables(data["ratios"])]
    caption = f"{len(cases)} constraints, tokenizer {options.tokenizer}; {one_line(data['machine'])}"
    print(caption)
    for table in tables:
        table.show()
    print("\n".join(failures))
    if options.markdown:
        write(options.markdown, [caption, "", *(table.markdown() for table in tables), *failures])
    if options.json:
        write(options.json, [json.dumps(data, indent=1)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
