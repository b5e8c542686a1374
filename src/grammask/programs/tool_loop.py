"""``run_tools``: a model that calls functions until it answers.

Each round, the model writes calls or an answer. Calls are held to the schemas of the tools (by the constraint for a
local model, by an exact check for a hosted one), run, several at a time, and their results go back. What goes wrong in
a tool goes back as well: the model sees the error and may call again. The number of rounds is bounded; in the last one
no tool may be called any more.
"""

from __future__ import annotations

import inspect
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.tools import Tool, ToolCalls
from grammask.constraints.tools.tool import as_tool
from grammask.decoding import Usage
from grammask.hosted.messages import as_messages, with_instructions
from grammask.hosted.model import HostedModel
from grammask.hosted.protocol import HostedToolCall, tool_turn
from grammask.hosted.repair import NoJson, find_json
from grammask.models.base import LanguageModel, Model, Prompt
from grammask.models.errors import ModelError
from grammask.programs.trace import Step, Trace, as_json
from grammask.validation.json_problems import JsonProblems
from grammask.validation.problems import listing

if TYPE_CHECKING:
    from grammask.sampling import Sampling

AnyTool = Tool | Mapping[str, Any] | Callable[..., Any]


@dataclass(frozen=True)
class ToolRun:
    """One call and what came of it.

    Attributes:
        name: the tool.
        arguments: as the model gave them.
        result: what the model was told.
        value: what the function returned; None if it failed.
        error: what went wrong, None if nothing did.
        round: in which round it was called, from 1.
        seconds: wall time of the function.
    """

    name: str
    arguments: dict[str, Any]
    result: str
    value: Any = None
    error: str | None = None
    round: int = 1
    seconds: float = 0.0


@dataclass(frozen=True)
class ToolOutcome:
    """How a tool loop ended.

    Attributes:
        text: the answer.
        value: the answer as a value of the type asked for; the text without one.
        runs: all calls, in the order in which the model wrote them.
        messages: the whole conversation, the answer included.
        usage: of all rounds.
        rounds: how often the model was asked.
        finish_reason: "stop"; "limit" if no tool was allowed any more; "length" if an output was cut by ``max_tokens``.
        trace: the steps.
    """

    text: str
    value: Any
    runs: tuple[ToolRun, ...]
    messages: tuple[dict[str, Any], ...]
    usage: Usage
    rounds: int
    finish_reason: Literal["stop", "limit", "length"]
    trace: Trace


@dataclass(frozen=True)
class _Call:
    """A call to be run: arguments, or what is wrong with them."""

    name: str
    arguments: dict[str, Any]
    id: str
    fault: str | None = None


@dataclass(frozen=True)
class _Turn:
    """What the model wrote in one round, and the message that goes on with it."""

    text: str
    calls: tuple[_Call, ...]
    usage: Usage
    was_cut: bool
    continued: Callable[[Mapping[str, str]], list[dict[str, Any]]]


def run_tools(
    model: LanguageModel,
    messages: Prompt,
    tools: Iterable[AnyTool],
    *,
    answer: Any = None,
    limit: int = 8,
    choice: str = "auto",
    parallel: bool | int = True,
    workers: int = 8,
    format: str = "hermes",
    instructions: str | None = None,
    sampling: Sampling | None = None,
    max_tokens: int | None = None,
) -> ToolOutcome:
    """Lets a model call tools until it answers.

    Args:
        model: local or hosted.
        messages: the task.
        tools: Python functions, whose signatures and docstrings describe them (async ones as well); or ``Tool`` objects
            made from functions.
        answer: type or constraint of the final answer, written in a round of its own; None takes the answer as it is.
        limit: rounds in which tools may be called.
        choice: in the first round: "auto", "required", or the name of a tool.
        parallel: whether one round may hold several calls; a number is the most (local models).
        workers: how many calls run at once.
        format: how a local model writes calls (``ToolCalls``).
        instructions: what a local model is told about the tools, for models with a format of their own; None describes
            them in the manner of Hermes.
        sampling, max_tokens: as for ``generate``, for every round.

    Raises:
        ModelError: a tool has no function, or the model cannot be run.
        ConstraintError: the tools or the answer cannot be enforced.
    """
    known = [as_tool(tool) for tool in tools]
    for tool in known:
        if tool.function is None:
            raise ModelError(f"the tool {tool.name!r} has no function to run", hint="pass the Python function itself")
    if limit < 1:
        raise ValueError(f"limit is {limit}: use at least 1")
    settings = _Settings(sampling, max_tokens)
    caller: _Caller
    if isinstance(model, HostedModel):
        caller = _HostedCaller(model, known, bool(parallel), settings)
    elif isinstance(model, Model):
        caller = _LocalCaller(model, known, parallel, format, instructions, settings)
    else:
        raise ModelError(f"{model.name} cannot call tools")
    return _Loop(model, caller, known, workers, settings).run(as_messages(messages), answer, limit, choice)


@dataclass(frozen=True)
class _Settings:
    sampling: Sampling | None
    max_tokens: int | None

    def keywords(self) -> dict[str, Any]:
        return {"sampling": self.sampling, "max_tokens": self.max_tokens}


@dataclass
class _Loop:
    model: LanguageModel
    caller: _Caller
    tools: Sequence[Tool]
    workers: int
    settings: _Settings

    def run(self, messages: list[dict[str, Any]], answer: Any, limit: int, choice: str) -> ToolOutcome:
        usage = Usage(0, 0)
        runs: list[ToolRun] = []
        steps: list[Step] = []
        asked = self.caller.opening(messages)
        for number in range(1, limit + 2):
            last = number > limit
            turn = self.caller.ask(asked, "none" if last else choice if number == 1 else "auto")
            usage = usage + turn.usage
            _record(steps, Step("generation", turn.text, role="assistant", usage=turn.usage))
            if not turn.calls:
                break
            made = self._run_all(turn.calls, number)
            runs += made
            for run in made:
                value = as_json(run.value)
                _record(steps, Step("tool", run.result, role="tool", name=run.name, value=value, note=run.error))
            results = {call.id: run.result for call, run in zip(turn.calls, made, strict=True)}
            asked = [*asked, *turn.continued(results)]
        text, value = turn.text, turn.text
        closing: dict[str, Any] = {"role": "assistant", "content": text}
        if answer is not None and not turn.was_cut:
            prompt = [*asked, closing, {"role": "user", "content": "Give the final answer."}] if text else asked
            result = self.model.generate(prompt, answer, **self.settings.keywords())
            usage = usage + result.usage
            text, value = result.text, result.value
            _record(steps, Step("generation", text, role="assistant", value=as_json(value), usage=result.usage))
            closing = {"role": "assistant", "content": text}
        return ToolOutcome(
            text,
            value,
            tuple(runs),
            (*asked, closing),
            usage,
            number,
            "length" if turn.was_cut else "limit" if last else "stop",
            Trace(self.model.name, tuple(steps)),
        )

    def _run_all(self, calls: Sequence[_Call], number: int) -> list[ToolRun]:
        """Runs the calls of a round, several at a time."""
        by_name = {tool.name: tool for tool in self.tools}

        def run(call: _Call) -> ToolRun:
            return replace(_run(call, by_name), round=number)

        if len(calls) == 1:
            return [run(calls[0])]
        with ThreadPoolExecutor(max_workers=min(self.workers, len(calls))) as pool:
            return list(pool.map(run, calls))


def _record(steps: list[Step], step: Step) -> None:
    steps.append(replace(step, parent=len(steps) - 1 if steps else None))


def _run(call: _Call, tools: Mapping[str, Tool]) -> ToolRun:
    """Runs one call. Whatever the function raises becomes the model's to read."""
    fault = call.fault
    if call.name not in tools:
        fault = f"there is no tool {call.name!r}; there are {', '.join(tools)}"
    start = time.perf_counter()
    value = None
    if fault is None:
        try:
            value = tools[call.name].run(call.arguments)
            if inspect.isawaitable(value):
                import asyncio

                value = asyncio.run(_awaited(value))
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
    told = json.dumps({"error": fault}) if fault is not None else _told(value)
    return ToolRun(call.name, call.arguments, told, value, fault, seconds=time.perf_counter() - start)


async def _awaited(value: Any) -> Any:
    return await value


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(as_json(value), ensure_ascii=False)


class _Caller(ABC):
    """Asks a model for calls or an answer."""

    def opening(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages of the first round."""
        return messages

    @abstractmethod
    def ask(self, messages: list[dict[str, Any]], choice: str) -> _Turn:
        """One round."""


class _HostedCaller(_Caller):
    """The provider reads the calls; their arguments are checked here."""

    def __init__(self, model: HostedModel, tools: Sequence[Tool], parallel: bool, settings: _Settings) -> None:
        self._model = model
        self._tools = [tool.as_dict() for tool in tools]
        self._checks = {tool.name: JsonProblems(JsonSchema(tool.parameters)) for tool in tools}
        self._parallel = parallel
        self._settings = settings

    def ask(self, messages: list[dict[str, Any]], choice: str) -> _Turn:
        reply = self._model.ask(
            messages, **self._settings.keywords(), tools=self._tools, tool_choice=choice, parallel=self._parallel
        )
        # Some servers leave ids out, and results are told apart by them.
        calls = tuple(
            replace(call, id=call.id or f"call-{number}") for number, call in enumerate(reply.tool_calls, start=1)
        )
        named = replace(reply, tool_calls=calls)
        usage = Usage(reply.prompt_tokens, reply.completion_tokens, 0, 1)
        was_cut = reply.finish_reason == "length"
        checked = () if was_cut else tuple(map(self._checked, calls))
        return _Turn(reply.text, checked, usage, was_cut, lambda results: tool_turn(named, results))

    def _checked(self, call: HostedToolCall) -> _Call:
        try:
            arguments, _ = find_json(call.arguments or "{}")
        except NoJson:
            return _Call(call.name, {}, call.id, f"the arguments are no JSON: {call.arguments}")
        check = self._checks.get(call.name)
        if not isinstance(arguments, dict):
            return _Call(call.name, {}, call.id, "the arguments are no JSON object")
        problems = check.find(arguments) if check is not None else []
        return _Call(call.name, arguments, call.id, listing(problems) if problems else None)


_HERMES = """You may call functions. Their signatures are within <tools></tools>:
<tools>
{tools}
</tools>
To call one, write a JSON object with its name and arguments within <tool_call></tool_call>:
<tool_call>
{{"name": <function-name>, "arguments": <arguments-object>}}
</tool_call>"""


class _LocalCaller(_Caller):
    """The constraint makes the calls right; results go back as turns of the user, which every chat template takes."""

    def __init__(
        self,
        model: Model,
        tools: Sequence[Tool],
        parallel: bool | int,
        format: str,
        instructions: str | None,
        settings: _Settings,
    ) -> None:
        self._model = model
        self._tools = tools
        self._parallel = parallel
        self._format = format
        described = "\n".join(json.dumps(tool.as_dict(), ensure_ascii=False) for tool in tools)
        self._instructions = _HERMES.format(tools=described) if instructions is None else instructions
        self._settings = settings

    def opening(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return with_instructions(messages, self._instructions)

    def ask(self, messages: list[dict[str, Any]], choice: str) -> _Turn:
        constraint = ToolCalls(self._tools, self._format, choice=choice, parallel=self._parallel)
        result = self._model.generate(messages, constraint, **self._settings.keywords())
        if not result.complete:
            return _Turn(result.text, (), result.usage, True, lambda results: [])
        vocabulary = self._model.vocabulary
        ends = set(vocabulary.eos_token_ids)
        output = constraint.read([token for token in result.token_ids if token not in ends], vocabulary)
        calls = tuple(
            _Call(call.name, call.arguments, str(number)) for number, call in enumerate(output.calls, start=1)
        )
        text = result.text if calls else output.content

        def continued(results: Mapping[str, str]) -> list[dict[str, Any]]:
            told = "\n".join(f"<tool_response>\n{results[call.id]}\n</tool_response>" for call in calls)
            return [{"role": "assistant", "content": result.text}, {"role": "user", "content": told}]

        return _Turn(text, calls, result.usage, False, continued)
