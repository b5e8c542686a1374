"""Answers hostile constraints, each in a process of its own whose memory is capped.

A small server: it imports once, then forks for every row that it is told on its standard input, and prints one line of
JSON about it. The child makes the constraint, compiles it, and goes some way along it at random.

    {"module": "json_schema.hostile_schemas", "row": "counts: minItems of a million", "seconds": 1.0, ...}
    {"answer": "compiled", "seconds": 0.01, "memory": 12345678, ...}

``memory`` is the most address space that the child used beyond what it had when the constraint had been written down.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import grammask
from grammask import _core
from grammask.engine import time_limit

TOKENS = 40
"""How many are taken at random, at most."""


def vocabulary() -> grammask.Vocabulary:
    """Tokens of one byte, of two and three letters, and long ones of texts as they stand in JSON and in prose."""
    letters = 'abcdefghijklmnopqrstuvwxyz 0123456789"{}[]:,._-/'
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += [(a + b).encode() for a in letters for b in letters]
    tokens += [(a + b + c).encode() for a in 'abcde 1"' for b in letters for c in letters]
    tokens += ["é".encode(), "日本".encode(), b"\xe6\x97", b"\xf0\x9f\x99\x82"]
    tokens += [b'":', b'",', b'":{"', b'"},{"', b'","', b"]]}}"]
    tokens += [b"a" * n for n in (8, 32, 128)] + [b" " * n for n in (8, 64)] + [b"abdf" * 20, b"0" * 30, b"[" * 20]
    tokens = list(dict.fromkeys(tokens))
    return grammask.Vocabulary.from_tokens([*tokens, None], eos_token_ids=[len(tokens)])


def status(name: str) -> int:
    """A figure of this process in bytes: VmHWM is the most that was resident, VmPeak the most address space."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def walk(compiled: grammask.CompiledConstraint, size: int, seconds: float) -> list[str]:
    """Random outputs, and those of them that were completed.

    From the start, from within an object and from within an array, tokens are taken by their masks, then what completes
    the output.
    """
    mask = np.zeros((size + 31) // 32, dtype=np.int32)
    texts = []
    for beginning in (b"", b"{", b"["):
        matcher = compiled.matcher()
        if not matcher.accept_bytes(beginning):
            continue
        draw = random.Random(1)
        end = time.monotonic() + seconds
        taken: list[int] = []
        while len(taken) < TOKENS and not matcher.is_terminated and time.monotonic() < end:
            matcher.fill_mask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            assert len(allowed), f"a dead end after {taken}"
            token = int(draw.choice(allowed.tolist()))
            assert matcher.accept(token), f"the mask allows a token that is refused: {token} after {taken}"
            taken.append(token)
        matcher.forced_bytes()
        if matcher.is_terminated:
            taken.pop()
        else:
            undone = min(3, len(taken))
            matcher.rollback(undone)
            completion = matcher.shortest_completion()
            if completion is None:
                continue
            taken[len(taken) - undone :] = completion
            assert all(matcher.accept(token) for token in completion), "a completion that is refused"
            assert matcher.is_complete, "a completion that is not complete"
        texts.append((beginning + b"".join(compiled.vocabulary.token_bytes(token) or b"" for token in taken)).decode())
    return texts


def answer(order: dict[str, Any], words: grammask.Vocabulary) -> dict[str, Any]:
    """What becomes of one row."""
    row = importlib.import_module(order["module"]).ROWS[order["row"]]
    limits = grammask.Limits(seconds=order["seconds"], mask_seconds=order["mask_seconds"])
    made = time.monotonic()
    arguments = row.make()
    started = time.monotonic()
    told: dict[str, Any] = {"making": started - made}
    base = status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (base + order["memory"], base + order["memory"]))
    try:
        with time_limit.Limited(limits.seconds):  # some constraints are read when they are made
            constraint = row.constraint(arguments)
        compiled = grammask.compile(constraint, words, limits)
        told["answer"] = "compiled"
    except grammask.ConstraintError as error:
        told["answer"] = type(error).__name__
        told |= {name: getattr(error, name) for name in ("message", "pointer", "line", "column", "hint")}
        told["length"] = len(str(error))
    told["seconds"] = time.monotonic() - started
    if told["answer"] == "compiled":
        try:
            texts = walk(compiled, words.size, order["walk_seconds"])
            told["texts"] = [text[:300] for text in texts]
            if row.json:
                for text in texts:
                    json.loads(text)
        except _core.ConstraintTooLargeError as error:
            told["given_up"] = str(error)
        told["walk"] = time.monotonic() - started - told["seconds"]
    told["memory"] = status("VmPeak") - base
    return told


def child(order: dict[str, Any], words: grammask.Vocabulary, out: int) -> None:
    try:
        told = answer(order, words)
    except BaseException as error:  # whatever comes out of a child is reported
        import traceback

        told = {"answer": type(error).__name__, "message": str(error)[:2000], "trace": traceback.format_exc()[-3000:]}
    with os.fdopen(out, "w") as pipe:
        json.dump(told, pipe)


def run(order: dict[str, Any], words: grammask.Vocabulary) -> dict[str, Any]:
    """One row in a process of its own; killed after a time that no row needs."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child(order, words, writing)
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + order["killed_after"]
    parts: list[bytes] = []
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                return {"answer": "killed", "message": f"no answer within {order['killed_after']} seconds"}
            part = os.read(reading, 1 << 16)
            if not part:
                break
            parts.append(part)
    finally:
        os.close(reading)
        _, ended = os.waitpid(pid, 0)
    if not parts:
        return {"answer": "crashed", "message": f"the process ended with status {ended}"}
    told: dict[str, Any] = json.loads(b"".join(parts))
    return told


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    words = vocabulary()
    warm = grammask.compile(grammask.JsonSchema({"properties": {"a": {"pattern": "a"}}}), words)
    warm.matcher().fill_mask(np.zeros((words.size + 31) // 32, dtype=np.int32))
    for line in sys.stdin:
        order = json.loads(line)
        importlib.import_module(order["module"])  # once, not in every child
        print(json.dumps(run(order, words)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
