"""The process of one engine: reads requests from standard input and answers them, a JSON object a line.

    python -m benchmarks.maskbench.worker '{"engine": "grammask", "tokenizer": "tokenizer.json", ...}'

What engines print themselves goes to standard error, so that it cannot disturb the answers.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.clocks import calibrated
from benchmarks.engines import create
from benchmarks.engines.base import EngineOptions
from benchmarks.maskbench.measure import Case, Measurement, describe

WARM_UP = (
    ("json_schema", '{"type": "object", "properties": {"warm": {"type": "string"}, "up": {"type": "integer"}}}'),
    ("json_schema", '{"type": "array", "items": {"enum": ["a", "b", null, 1.5]}, "maxItems": 3}'),
    ("regex", "warm|up"),
    ("gbnf", 'root ::= "warm" | "up"'),
)
"""Compiled before anything is timed: what is paid once per process, such as imports, is no part of a case."""
GRACE = 1.5
"""A case may run this many times its CPU time: only between calls can it be stopped without ending the process."""


def main() -> None:
    """Loads the engine, says hello, and answers until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    config = json.loads(sys.argv[1])
    limit = config["memory_bytes"]
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    started = time.perf_counter()
    engine = create(
        config["engine"], EngineOptions(Path(config["tokenizer"]), config["eos_token_id"], config["settings"])
    )
    ready = time.perf_counter() - started
    for kind, source in WARM_UP:
        Case(engine, config["eos_token_id"], calibrated(10), 60).run(kind, source, [[0]], False)
    watch = calibrated()
    gc.collect()
    gc.freeze()
    if not config["gc"]:
        gc.disable()
    _answer(answers, {"seconds": ready, "resident_bytes": _resident()})

    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        case = Case(engine, config["eos_token_id"], watch, config["seconds"])
        # A call into an engine that does not come back ends the process: nobody handles this timer's signal.
        signal.setitimer(signal.ITIMER_PROF, GRACE * config["seconds"])
        try:
            result = case.run(request["kind"], request["source"], request["instances"], config["forced"])
            _answer(answers, {"result": result.to_json(), "resident_bytes": _resident()})
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as failure:  # a panic of a native library is no Exception, and must not end the run
            broken = Measurement(compile=case.result.compile)
            _answer(answers, {"result": broken.to_json(), "failure": describe(failure), "resident_bytes": _resident()})
        signal.setitimer(signal.ITIMER_PROF, 0)
        if number % 16 == 15:
            gc.collect()


def _answer(answers: Any, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message, separators=(",", ":")) + "\n")
    answers.flush()


def _resident() -> int:
    """Bytes of memory that this process holds now (its peak where the system does not tell)."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
