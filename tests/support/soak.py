"""Many clients at once who ask for everything, hang up, and send nonsense: for as long as one likes."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from support.server import Served

SCHEMAS: list[Any] = [
    {"type": "boolean"},
    {"enum": ["red", "green", 3, None]},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 1, "maxItems": 4},
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 10}, "born": {"type": "string", "format": "date"}},
        "required": ["name", "born"],
        "additionalProperties": False,
    },
    {
        "anyOf": [
            {"type": "null"},
            {"type": "string", "pattern": "^[a-c]{2,5}$"},
            {"type": "number", "minimum": -99, "maximum": 99, "multipleOf": 0.5},
        ]
    },
    {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "n": {"type": "integer", "maximum": 9}},
        "required": ["n", "next"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"enum": [1, 2, 3, "x"]}, "uniqueItems": True, "minItems": 2},
    {"type": "object", "patternProperties": {"^k[0-9]$": {"type": "boolean"}}, "additionalProperties": False,
     "maxProperties": 3},
]  # fmt: skip
TOOLS = [
    {"type": "function", "function": {"name": "record", "parameters": SCHEMAS[3], "strict": True}},
    {"type": "function", "function": {"name": "stop"}},
]
WRONG: list[dict[str, Any]] = [
    {"temprature": 1},
    {"guided_regex": "("},
    {"guided_json": {"type": "nonsense"}},
    {"guided_json": {"allOf": [{"minimum": 3, "type": "integer"}, {"maximum": 2}]}},
    {"messages": []},
    {"max_tokens": 10**7},
    {"audio": {}},
]


@dataclass
class Report:
    """What happened.

    Attributes:
        counts: answers by kind.
        faults: answers that should not have been.
        memory: resident megabytes, measured from time to time.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def soak(server: Served, seconds: float, *, clients: int = 16, seed: int = 0) -> Report:
    """Runs the clients for a while, and waits until the server is idle again."""
    report = Report()
    asyncio.run(_run(server, seconds, clients, seed, report))
    deadline = time.monotonic() + 60
    while server.service.open_generations or server.service.scheduler.live_sequences:
        if time.monotonic() > deadline:
            report.faults.append("outputs are left behind")
            break
        time.sleep(0.05)
    return report


def live_outputs() -> int:
    """Outputs, each with its matcher, that exist anywhere in this process."""
    from grammask.server.scheduler.sequence import OutputSequence

    gc.collect()
    return sum(isinstance(thing, OutputSequence) for thing in gc.get_objects())


async def _run(server: Served, seconds: float, clients: int, seed: int, report: Report) -> None:
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=clients * 2)
    async with httpx.AsyncClient(base_url=server.url, timeout=300, limits=limits) as http:

        async def client(number: int) -> None:
            draw = random.Random(f"{seed} {number}")
            while time.monotonic() < end:
                await _one(http, server.service.name, draw, report)

        async def watch() -> None:
            while time.monotonic() < end:
                report.memory.append(_resident_megabytes())
                await asyncio.sleep(max(0.2, seconds / 40))

        await asyncio.gather(watch(), *[client(number) for number in range(clients)])
    report.memory.append(_resident_megabytes())


async def _one(http: httpx.AsyncClient, model: str, draw: random.Random, report: Report) -> None:
    kind = draw.choices(["schema", "regex", "tools", "text", "wrong", "hostile", "hang up"], [8, 4, 4, 3, 2, 1, 4])[0]
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "x" * draw.choice([1, 10, 400])}],
        "seed": draw.randrange(2**32),
        "max_tokens": 120,
    }
    schema: Any = None
    if kind in ("schema", "hang up"):
        schema = draw.choice(SCHEMAS)
        if draw.random() < 0.3:  # a schema that nobody has sent before
            schema = {"anyOf": [schema, {"const": draw.randrange(10**9)}]}
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    elif kind == "regex":
        body["guided_regex"] = f"[a-z]{{2}}{draw.randrange(50)}(-[0-9]+)?"
    elif kind == "tools":
        body.update(tools=TOOLS, tool_choice="required", parallel_tool_calls=draw.random() < 0.5)
    elif kind == "text":
        body["max_tokens"] = 20
    elif kind == "wrong":
        body.update(draw.choice(WRONG))
    elif kind == "hostile":
        width = draw.randrange(200, 400)
        properties = {f"p{i}": {"pattern": f"{i}.*{draw.randrange(9)}"} for i in range(width)}
        body["guided_json"] = {"oneOf": [{"properties": properties, "minProperties": i} for i in range(4)]}
        body["max_tokens"] = 40
    stream = draw.random() < 0.5
    if kind == "hang up":
        await _hang_up(http, {**body, "stream": stream, "max_tokens": 120}, draw)
        report.counts["hung up"] += 1
        return
    answer = await http.post("/v1/chat/completions", json={**body, "stream": stream})
    report.counts[f"{kind} {answer.status_code}"] += 1
    if answer.status_code == 200 and kind == "hostile" and '"constraint_too_large"' in answer.text:
        report.counts["hostile, refused when its masks turned out to be slow"] += 1
    elif answer.status_code == 200:
        _check(kind, body, schema, _message(answer.text, stream), report)
    elif answer.status_code == 429:
        await asyncio.sleep(0.05)
    elif not (answer.status_code == 400 and kind in ("wrong", "hostile")):
        report.faults.append(f"{kind}: {answer.status_code} {answer.text[:300]} to {json.dumps(body)[:300]}")


async def _hang_up(http: httpx.AsyncClient, body: dict[str, Any], draw: random.Random) -> None:
    wait = draw.choice([0.0, 0.005, 0.02, 0.1])
    try:
        async with asyncio.timeout(wait) if hasattr(asyncio, "timeout") else _no_timeout():
            if not body["stream"]:
                await http.post("/v1/chat/completions", json=body)
                return
            async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
                async for _ in answer.aiter_lines():
                    if draw.random() < 0.2:
                        return
    except (TimeoutError, httpx.HTTPError):
        return


class _no_timeout:  # noqa: N801 (stands for a function of Python 3.11)
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *error: object) -> None:
        return None


def _message(text: str, stream: bool) -> dict[str, Any]:
    """The message of an answer, put together if it was streamed; with its finish reason."""
    if not stream:
        choice = json.loads(text)["choices"][0]
        return {**choice["message"], "finish_reason": choice["finish_reason"]}
    message: dict[str, Any] = {"content": "", "tool_calls": [], "finish_reason": None}
    events = [block[len("data: ") :] for block in text.split("\n\n") if block.startswith("data: ")]
    assert events[-1] == "[DONE]", text[-500:]
    for event in events[:-1]:
        choice = json.loads(event)["choices"][0]
        message["content"] += choice["delta"].get("content") or ""
        message["finish_reason"] = choice["finish_reason"] or message["finish_reason"]
        for call in choice["delta"].get("tool_calls", []):
            if "id" in call:
                message["tool_calls"].append({"function": dict(call["function"])})
            else:
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return message


def _check(kind: str, body: dict[str, Any], schema: Any, message: dict[str, Any], report: Report) -> None:
    try:
        if kind == "schema":
            assert message["finish_reason"] == "stop"
            value = json.loads(message["content"])
            jsonschema.validate(value, schema, format_checker=jsonschema.FormatChecker())
        elif kind == "regex":
            assert re.fullmatch(body["guided_regex"], message["content"])
        elif kind == "tools":
            assert message["finish_reason"] == "tool_calls"
            assert body["parallel_tool_calls"] or len(message["tool_calls"]) == 1
            for call in message["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                name = call["function"]["name"]
                jsonschema.validate(
                    arguments, SCHEMAS[3] if name == "record" else {"type": "object", "maxProperties": 0}
                )
        report.counts["valid"] += 1
    except (AssertionError, ValueError, jsonschema.ValidationError) as error:
        report.faults.append(f"{kind}: {error} in {message} to {json.dumps(body)[:500]}")


def _resident_megabytes() -> float:
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0.0
    return int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]
