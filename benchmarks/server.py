"""Throughput and latency of servers with OpenAI's interface: grammask's own, and vLLM's with its own backends.

    python -m benchmarks.server --vllm .venv-vllm/bin/python --json build/bench/server.json

Servers run one after the other, on the same model, prompts and schemas, each with the same number of clients. Every
answer is streamed; of each count the time to its first token, the time to its end, its tokens, and whether it is valid.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema

TEXTS = [
    "Ada Lovelace, age 36, lives in London and likes mathematics and horses.",
    "Order 90-13388: two picture frames and a glass bowl arrived broken, says Amelia Novak.",
    "The meeting with Jonas is on 2024-05-17 at the office in Oslo; bring the contract.",
    "The film was far too long, but the music was wonderful.",
]
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "category": {"enum": ["damaged", "late", "wrong item", "other"]},
            "items": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 3},
        },
        "required": ["category", "items"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
            "place": {"type": "string", "maxLength": 20},
            "people": {"type": "array", "items": {"type": "string", "maxLength": 15}, "minItems": 1, "maxItems": 2},
        },
        "required": ["date", "place", "people"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "sentiment": {"enum": ["positive", "negative", "mixed"]},
            "confidence": {"enum": [1, 2, 3, 4, 5]},
            "reason": {"type": "string", "maxLength": 60},
        },
        "required": ["sentiment", "confidence", "reason"],
        "additionalProperties": False,
    },
]


@dataclass
class Answer:
    """What came of one request. Times in seconds from its start."""

    first: float
    total: float
    tokens: int
    valid: bool


@dataclass
class Row:
    """A server, with one number of clients."""

    server: str
    clients: int
    requests: int
    valid: float
    requests_per_second: float
    tokens_per_second: float
    first_token_median: float
    first_token_p95: float
    total_median: float
    total_p95: float


async def measure(url: str, model: str, label: str, clients: int, requests: int) -> Row:
    """Sends the requests, so many at a time."""
    numbers = iter(range(requests))
    answers: list[Answer] = []
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=httpx.Limits(max_connections=clients)) as http:

        async def client() -> None:
            for number in numbers:
                answers.append(await _ask(http, model, number))

        start = time.perf_counter()
        await asyncio.gather(*[client() for _ in range(clients)])
        seconds = time.perf_counter() - start
    firsts, totals = sorted(a.first for a in answers), sorted(a.total for a in answers)
    return Row(
        label,
        clients,
        requests,
        statistics.mean(a.valid for a in answers),
        requests / seconds,
        sum(a.tokens for a in answers) / seconds,
        statistics.median(firsts),
        firsts[int(0.95 * (len(firsts) - 1))],
        statistics.median(totals),
        totals[int(0.95 * (len(totals) - 1))],
    )


async def _ask(http: httpx.AsyncClient, model: str, number: int) -> Answer:
    schema = SCHEMAS[number % len(SCHEMAS)]
    prompt = f"Message {number}: {TEXTS[number % len(TEXTS)]}\nAnswer with JSON that satisfies {json.dumps(schema)}."
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        "temperature": 0,
        "max_tokens": 128,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    start = time.perf_counter()
    first, text, tokens = 0.0, "", 0
    async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        if answer.status_code != 200:
            raise RuntimeError((await answer.aread()).decode())
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[len("data: ") :])
            tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
            delta = event["choices"][0]["delta"].get("content") if event["choices"] else None
            if delta:
                first = first or time.perf_counter() - start
                text += delta
    total = time.perf_counter() - start
    try:
        jsonschema.validate(json.loads(text), schema)
        valid = True
    except (ValueError, jsonschema.ValidationError):
        valid = False
    return Answer(first or total, total, tokens, valid)


def commands(folder: Path, vllm: Path | None, port: int, threads: int) -> dict[str, list[str]]:
    """How each server is started."""
    found = {
        "grammask serve": [
            *(sys.executable, "-m", "grammask.cli", "serve", "--model", str(folder), "--served-name", "m"),
            *("--port", str(port), "--threads", str(threads), "--log-level", "warning"),
        ]
    }
    for backend in ("xgrammar", "guidance") if vllm is not None else ():
        found[f"vLLM, {backend}"] = [
            *(str(vllm), "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)),
            *("--served-model-name", "m", "--port", str(port), "--dtype", "float32"),
            *("--max-model-len", "1024", "--max-num-seqs", "16", "--host", "127.0.0.1"),
            *("--structured-outputs-config.backend", backend, "--enforce-eager"),
        ]
    return found


def run(command: list[str], label: str, port: int, threads: int, clients: list[int], requests: int) -> list[Row]:
    """Starts a server, measures it and ends it."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "VLLM_CPU_KVCACHE_SPACE": "2", "HF_HUB_OFFLINE": "1"}
    log = Path(f"build/bench/server-{label.replace(', ', '-').replace(' ', '-')}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process, log)
        asyncio.run(measure(url, "m", label, 4, 4))  # what is compiled and warmed up once
        return [asyncio.run(measure(url, "m", label, count, requests)) for count in clients]
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: see {log}")
        try:
            if httpx.get(url + "/health", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise RuntimeError(f"the server did not start: see {log}")


def table(rows: list[Row]) -> str:
    """As Markdown."""
    lines = [
        "| server | clients | valid | requests/s | tokens/s | first token, median / p95 | answer, median / p95 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row.server} | {row.clients} | {row.valid:.0%} | {row.requests_per_second:.2f} "
            f"| {row.tokens_per_second:.1f} | {row.first_token_median:.2f} / {row.first_token_p95:.2f} "
            f"| {row.total_median:.2f} / {row.total_p95:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vllm", type=Path, help="the Python that has vLLM; without it only grammask is measured")
    parser.add_argument("--clients", default="1,4,16", help="how many at a time, with commas between")
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from grammask.models.gguf import converted_folder, smollm2_file

    folder = converted_folder(smollm2_file())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    rows: list[Row] = []
    counts = [int(count) for count in options.clients.split(",")]
    for label, command in commands(folder, options.vllm, port, options.threads).items():
        rows += run(command, label, port, options.threads, counts, options.requests)
        print(table(rows[-len(counts) :]), flush=True)
    print(table(rows))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
