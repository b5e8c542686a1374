"""Asking an upstream in words for what it cannot be held to, checking what comes, and asking again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from grammask.constraints.tools import ToolCallError, ToolCalls
from grammask.constraints.tools.formats import HERMES
from grammask.engine.compile import CompiledConstraint
from grammask.server.errors import ApiError, invalid
from grammask.server.metrics import Metrics
from grammask.server.prompting import plain_turns
from grammask.server.protocol.chat import Message
from grammask.server.proxy.checking import Problem, argument_problem, valid_part
from grammask.server.proxy.upstream import Upstream
from grammask.server.tool_stream import new_call_id
from grammask.server.wanted import Wanted, WantedTools

_MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])

INSTRUCTIONS = {
    "json_schema": "Answer with JSON alone, without any other words, that satisfies this JSON Schema:\n{content}",
    "json_object": "Answer with one JSON object alone, without any other words, that satisfies this schema:\n{content}",
    "regex": "Answer with nothing but a text that this regular expression matches as a whole:\n{content}",
    "choice": "Answer with exactly one of the texts in this JSON array, and nothing else:\n{content}",
    "grammar": "Answer with nothing but a text of this grammar:\n{content}",
    "structural_tag": "Keep to this structural tag:\n{content}",
}

AGAIN = "That answer cannot be used: {problem}. {instruction}"


@dataclass(frozen=True)
class Task:
    """What an answer must be.

    Attributes:
        body: the request for the upstream, without what it cannot do.
        wanted: of the answer's text.
        compiled: the same, over bytes; None for free text.
        tools: those that may be called; None if none may be.
        native: the upstream takes tools itself.
    """

    body: dict[str, Any]
    wanted: Wanted
    compiled: CompiledConstraint | None
    tools: WantedTools | None
    native: bool


@dataclass
class Answer:
    """A valid answer.

    Attributes:
        content: the text; None if there are only calls.
        calls: as requests have them.
        raw: what the upstream answered last.
        usage: of all attempts together.
        attempts: how many there were.
    """

    content: str | None
    calls: list[dict[str, Any]]
    raw: dict[str, Any]
    usage: dict[str, int] = field(default_factory=dict)
    attempts: int = 1


async def ask(task: Task, upstream: Upstream, attempts: int, metrics: Metrics) -> Answer:
    """Asks until the answer is valid.

    Raises:
        ApiError: the upstream fails, or no answer is valid.
    """
    messages = _messages(task)
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    problem = Problem("")
    for attempt in range(1, attempts + 1):
        raw = await upstream.chat({**task.body, "messages": messages})
        for name in usage:
            usage[name] += int((raw.get("usage") or {}).get(name) or 0)
        message = raw["choices"][0].get("message") or {}
        found = _read(message, task)
        if not isinstance(found, Problem):
            content, calls = found
            return Answer(content, calls, raw, usage, attempt)
        problem = found
        metrics.asked_again.inc()
        messages = [*messages, *_correction(message, problem, task)]
    raise ApiError(
        502,
        f"the upstream gave no valid answer in {attempts} attempts; of the last one: {problem.message}",
        type="upstream_error",
        code="upstream_invalid_output",
        headers={"x-should-retry": "false"},
    )


def _messages(task: Task) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = list(task.body["messages"])
    if task.tools is not None and not task.native:
        try:
            messages = plain_turns(_MESSAGES.validate_python(messages), task.tools.tools)
        except ValidationError as error:
            raise invalid(f"messages: {error.errors()[0]['msg']}", "messages") from error
    instruction = _instruction(task)
    if not instruction:
        return messages
    first = messages[0]
    if first.get("role") in ("system", "developer") and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]


def _instruction(task: Task) -> str:
    parts = []
    if task.tools is not None and task.tools.choice != "auto":
        parts.append(f"Call {'a tool' if task.tools.choice == 'required' else f'the tool {task.tools.choice}'}.")
    if task.wanted.structured:
        text = INSTRUCTIONS[task.wanted.kind].format(content=task.wanted.content)
        parts.append(f"If you call no tool: {text}" if task.tools is not None else text)
    return "\n".join(parts)


def _read(message: dict[str, Any], task: Task) -> tuple[str | None, list[dict[str, Any]]] | Problem:
    """The valid content and calls of a message."""
    text = message.get("content")
    text = text if isinstance(text, str) else ""
    if task.tools is not None:
        found = _native_calls(message, task.tools) if task.native else _written_calls(text, task.tools)
        if isinstance(found, Problem):
            return found
        content, calls = found
        if calls:
            return content or None, calls
        if task.tools.choice != "auto":
            return Problem("it calls no tool")
    if task.compiled is None:
        return text, []
    part = valid_part(text, task.compiled, is_json=task.wanted.kind.startswith("json"))
    return part if isinstance(part, Problem) else (part, [])


def _native_calls(message: dict[str, Any], tools: WantedTools) -> tuple[str, list[dict[str, Any]]] | Problem:
    known = {
        tool["function"]["name"]: ToolCalls([tool], HERMES, choice="required", property_order="any")
        for tool in tools.tools
    }
    calls = []
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        name, arguments = str(function.get("name", "")), str(function.get("arguments") or "{}")
        problem = argument_problem(name, arguments, known)
        if problem is not None:
            return problem
        call_id = str(call.get("id") or new_call_id())
        calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
    if len(calls) > 1 and not tools.parallel:
        return Problem("it calls several tools, where one call at a time is asked for")
    content = message.get("content")
    return content if isinstance(content, str) else "", calls


def _written_calls(text: str, tools: WantedTools) -> tuple[str, list[dict[str, Any]]] | Problem:
    constraint = tools.calls(HERMES, property_order="any", preamble=True)
    if HERMES.trigger not in text:
        return text, []
    try:
        output = constraint.read(text.strip())
    except ToolCallError as error:
        return Problem(str(error))
    return output.content.strip(), [
        {
            "id": new_call_id(),
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(call.arguments, ensure_ascii=False, default=float),
            },
        }
        for call in output.calls
    ]


def _correction(message: dict[str, Any], problem: Problem, task: Task) -> list[dict[str, Any]]:
    """The refused answer, and what is wrong with it."""
    request = AGAIN.format(problem=problem.message, instruction=_instruction(task))
    calls = message.get("tool_calls")
    if calls and task.native:
        refused = {"role": "assistant", "content": message.get("content"), "tool_calls": calls}
        results = [{"role": "tool", "tool_call_id": call.get("id", ""), "content": "not run"} for call in calls]
        return [refused, *results, {"role": "user", "content": request}]
    return [{"role": "assistant", "content": message.get("content") or ""}, {"role": "user", "content": request}]
