"""The parent's side of a worker: start it, ask it, and start it again when it dies or hangs."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.maskbench.measure import Measurement

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 600.0
"""How long an engine may take to load its vocabulary."""


@dataclass(frozen=True)
class Answer:
    """``result`` of a case; ``failure`` says why there is none ("timeout" when the worker had to be stopped)."""

    result: Measurement
    failure: str = ""


class EngineUnavailable(Exception):
    """The worker of an engine does not start."""


class Worker:
    """One engine in a process of its own.

    Attributes:
        load_seconds: wall time that the engine needed to load its vocabulary.
        ready_bytes, last_bytes: resident memory when it was ready, and after the last case.
        restarts: how often it had to be started again.
    """

    def __init__(self, config: dict[str, Any], patience: float) -> None:
        """config: see ``worker``; patience: seconds of wall time after which a silent worker is stopped."""
        self._config = config
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self.load_seconds = 0.0
        self.ready_bytes = 0
        self.last_bytes = 0
        self.restarts = 0
        self._start()

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._buffer = b""
        environment = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", PYTHONHASHSEED="0")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.maskbench.worker", json.dumps(self._config)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        try:
            hello = self._read(START_SECONDS)
        except (EOFError, TimeoutError) as error:
            reason = self._last_words() if isinstance(error, EOFError) else str(error)
            self.close()
            raise EngineUnavailable(f"{self._config['engine']} does not start: {reason}") from None
        self.load_seconds = hello["seconds"]
        self.ready_bytes = self.last_bytes = hello["resident_bytes"]

    def ask(self, kind: str, source: str, instances: Sequence[Sequence[int]]) -> Answer:
        """Runs a case. Raises EngineUnavailable when a worker that died cannot be started again."""
        if self._process is None:
            self.restarts += 1
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        request = json.dumps({"kind": kind, "source": source, "instances": instances}, separators=(",", ":"))
        try:
            self._process.stdin.write(request.encode("ascii") + b"\n")
            self._process.stdin.flush()
            message = self._read(self._patience)
        except TimeoutError:
            self.close()
            return Answer(Measurement(timed_out=True), "timeout")
        except (EOFError, BrokenPipeError):
            last_words = self._last_words()
            out_of_time = self._process.returncode == -signal.SIGPROF
            self.close()
            if out_of_time:
                return Answer(Measurement(timed_out=True), "timeout")
            return Answer(Measurement(), f"crash: {last_words}")
        self.last_bytes = message["resident_bytes"]
        return Answer(Measurement.from_json(message["result"]), message.get("failure", ""))

    def _read(self, seconds: float) -> dict[str, Any]:
        """The next line. Raises TimeoutError, or EOFError when the worker has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"no answer within {seconds:.0f} s")
                chunk = os.read(self._process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise EOFError
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _last_words(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"exit code {code}" + (f", {lines[-1][:300]}" if lines else "")

    def close(self) -> None:
        """Ends the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        self._errors.close()
        self._process = None
