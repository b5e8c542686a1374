"""What chat completions and responses have in common: outputs taken apart into text, calls and log-probabilities."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal

from grammask.constraints.tools import ToolCalls
from grammask.sampling import SampledToken
from grammask.server.endpoints.context import LogRecord
from grammask.server.protocol.chat import Usage
from grammask.server.scheduler import Ended
from grammask.server.service import Generation, Service
from grammask.server.tool_stream import CallArguments, CallStarted, Delta, Text, ToolStream
from grammask.server.wanted import WantedTools

Reason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True)
class Reading:
    """How outputs of a request are read.

    Attributes:
        tools: which may be called; None if none may be.
        calls: the constraint that reads them.
        preamble: free text may stand before calls.
    """

    tools: WantedTools | None = None
    calls: ToolCalls | None = None
    preamble: bool = False

    def stream(self, service: Service) -> ToolStream | None:
        """A reader for one output."""
        if self.calls is None or self.tools is None:
            return None
        may_answer = self.tools.choice == "auto"
        return ToolStream(self.calls, service.vocabulary, may_answer=may_answer, preamble=self.preamble)


@dataclass(frozen=True)
class Update:
    """More of an output.

    Attributes:
        index: which of the n outputs.
        delta: text or a part of a call; None with log-probabilities alone.
        tokens: of the text.
        reason: set with the last update of an output.
    """

    index: int
    delta: Delta | None = None
    tokens: tuple[SampledToken, ...] = ()
    reason: Reason | None = None


@dataclass
class Collected:
    """A whole output.

    Attributes:
        text: None if there is none beside calls.
        calls: id, name and arguments of each call.
    """

    text: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    tokens: list[SampledToken] = field(default_factory=list)
    reason: Reason = "stop"

    def add(self, update: Update) -> None:
        """Takes an update in."""
        delta = update.delta
        if isinstance(delta, Text):
            self.text += delta.text
        elif isinstance(delta, CallStarted):
            self.calls.append((delta.id, delta.name, ""))
        elif isinstance(delta, CallArguments):
            call_id, name, arguments = self.calls[delta.index]
            self.calls[delta.index] = (call_id, name, arguments + delta.text)
        self.tokens.extend(update.tokens)
        if update.reason is not None:
            self.reason = update.reason


async def updates(generation: Generation, reading: Reading, service: Service) -> AsyncIterator[Update]:
    """The outputs of a generation, as they are written."""
    readers = [reading.stream(service) for _ in range(generation.plan.n)]
    events = generation.events()
    try:
        async for event in events:
            reader = readers[event.index]
            if isinstance(event, Ended):
                for delta in reader.finish(event.token_ids, complete=event.complete) if reader else ():
                    yield Update(event.index, delta)
                yield Update(event.index, reason=_reason(event, reader, reading))
                continue
            tokens = event.tokens
            if reader is None:
                yield Update(event.index, Text(event.text) if event.text else None, tokens)
                continue
            for delta in reader.feed(event.text, event.marks):
                yield Update(event.index, delta, tokens)
                tokens = ()
            if tokens:
                yield Update(event.index, None, tokens)
    finally:
        await events.aclose()  # type: ignore[attr-defined]


async def collect(generation: Generation, reading: Reading, service: Service) -> list[Collected]:
    """All outputs of a generation."""
    collected = [Collected() for _ in range(generation.plan.n)]
    async for update in updates(generation, reading, service):
        collected[update.index].add(update)
    return collected


def usage_of(generation: Generation) -> Usage:
    """The counts of a generation that is over."""
    prompt, completion = len(generation.plan.prompt_ids), generation.completion_tokens
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def note_usage(record: LogRecord, generation: Generation) -> None:
    """Writes what a generation cost into the log record."""
    record.constraint = generation.plan.wanted.kind
    record.prompt_tokens += len(generation.plan.prompt_ids)
    record.completion_tokens += generation.completion_tokens
    record.forced_tokens += generation.forced_tokens
    record.finish_reasons.extend(generation.reasons[index] for index in sorted(generation.reasons))
    if generation.first_token is not None:
        record.first_token_seconds = generation.first_token - generation.started


def _reason(event: Ended, reader: ToolStream | None, reading: Reading) -> Reason:
    has_calls = reader is not None and reader.count > 0
    # Calls are of use as soon as they are whole, even where the limit left no room for more of them.
    if event.reason == "length" and not (has_calls and event.complete):
        return "length"
    # A call that the request named is an answer as asked for: OpenAI says "stop" then.
    named = reading.tools is not None and reading.tools.named
    return "tool_calls" if has_calls and not named else "stop"
