"""``/v1/responses``: the same outputs as chat completions, as items; in a stream, as events with numbers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from grammask.sampling import SampledToken
from grammask.server.endpoints.chat import plan_chat
from grammask.server.endpoints.context import LogRecord, client_of, record_of, service_of
from grammask.server.endpoints.outputs import Reading, Update, note_usage, updates, usage_of
from grammask.server.errors import ApiError
from grammask.server.logprobs import token_logprobs
from grammask.server.protocol.chat import ChatRequest
from grammask.server.protocol.constraints import ExtraConstraints
from grammask.server.protocol.responses import (
    FlatAllowedChoice,
    FlatJsonSchemaFormat,
    FlatNamedChoice,
    InputCall,
    InputCallOutput,
    InputItem,
    InputText,
    ResponseBody,
    ResponsesRequest,
    ResponseUsage,
)
from grammask.server.service import Generation, Service, new_id
from grammask.server.sse import EventStream, named_event, or_gone
from grammask.server.tool_stream import CallArguments, CallStarted, Text

router = APIRouter()

Json = dict[str, Any]


@router.post("/v1/responses", response_model=ResponseBody, summary="A response")
async def create_response(request: Request, body: ResponsesRequest) -> Response:
    """Writes a response; with ``stream`` as server-sent events. Nothing is stored."""
    service, record = service_of(request), record_of(request)
    service.check_model(body.model)
    record.id = new_id("resp_")
    if service.settings.log_content:
        record.content["input"] = body.model_dump(include={"input", "instructions"}, exclude_none=True)
    chat = as_chat(body)
    try:
        plan, reading = plan_chat(chat, service, client_of(request))
        generation = await or_gone(request, service.generate(plan))
    except ApiError as error:
        raise _renamed(error) from error
    writer = _Writer(body, record.id, generation, service)
    if body.stream:
        return EventStream(_stream(writer, reading, record), generation.close)
    await or_gone(request, _whole(writer, reading))
    note_usage(record, generation)
    if service.settings.log_content:
        record.content["output"] = writer.items
    return JSONResponse(writer.response(writer.status))


def as_chat(body: ResponsesRequest) -> ChatRequest:
    """The chat request that asks for the same."""
    messages: list[Json] = []
    if body.instructions is not None:
        messages.append({"role": "system", "content": body.instructions})
    if isinstance(body.input, str):
        messages.append({"role": "user", "content": body.input})
    else:
        for item in body.input:
            _add_message(messages, item)
    fields: Json = {
        "model": body.model,
        "messages": messages,
        "max_completion_tokens": body.max_output_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "seed": body.seed,
        "parallel_tool_calls": body.parallel_tool_calls,
        "tool_choice": _choice(body),
        "response_format": _format(body),
    }
    if body.include and "message.output_text.logprobs" in body.include:
        fields.update(logprobs=True, top_logprobs=body.top_logprobs or 0)
    elif body.top_logprobs:
        fields.update(logprobs=True, top_logprobs=body.top_logprobs)
    if body.tools:
        fields["tools"] = [
            {"type": "function", "function": tool.model_dump(exclude={"type"}, exclude_none=True)}
            for tool in body.tools
        ]
    extra = body.model_dump(include=set(_EXTRA), exclude_none=True, by_alias=True)
    return ChatRequest.model_validate({**{name: value for name, value in fields.items() if value is not None}, **extra})


_EXTRA = tuple(ExtraConstraints.model_fields)
"""Fields that mean the same in both requests."""

_NAMES = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
}


def _renamed(error: ApiError) -> ApiError:
    """The error of the chat request, about this request's parameters."""
    for theirs, ours in _NAMES.items():
        if error.param and error.param.startswith(theirs):
            error.param = ours + error.param[len(theirs) :]
            error.message = error.message.replace(theirs, ours)
            break
    return error


def _add_message(messages: list[Json], item: InputItem) -> None:
    if isinstance(item, InputCall):
        call = {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.arguments}}
        if messages and messages[-1]["role"] == "assistant":
            messages[-1].setdefault("tool_calls", []).append(call)
        else:
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    elif isinstance(item, InputCallOutput):
        messages.append({"role": "tool", "tool_call_id": item.call_id, "content": _text(item.output)})
    else:
        messages.append({"role": item.role, "content": _text(item.content)})


def _text(content: str | list[InputText]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _choice(body: ResponsesRequest) -> Any:
    choice = body.tool_choice
    if isinstance(choice, FlatNamedChoice):
        return {"type": "function", "function": {"name": choice.name}}
    if isinstance(choice, FlatAllowedChoice):
        tools = [{"type": "function", "function": {"name": tool.name}} for tool in choice.tools]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return choice


def _format(body: ResponsesRequest) -> Json | None:
    format = body.text.format if body.text else None
    if format is None:
        return None
    fields = format.model_dump(exclude_none=True, by_alias=True)
    if isinstance(format, FlatJsonSchemaFormat):
        return {"type": "json_schema", "json_schema": {k: v for k, v in fields.items() if k != "type"}}
    return fields


class _Writer:
    """Builds the items of a response out of updates, and the events that tell of them.

    Attributes:
        items: so far.
        status: of the response, once it is over.
    """

    def __init__(self, body: ResponsesRequest, response_id: str, generation: Generation, service: Service) -> None:
        self.items: list[Json] = []
        self.status = "in_progress"
        self.generation = generation
        self.service = service
        self._body = body
        self._id = response_id
        self._created = int(time.time())
        self._number = 0

    def response(self, status: str, error: Json | None = None) -> Json:
        """The response as it is now."""
        body = self._body
        done = status in ("completed", "incomplete")
        format = {"type": "text"}
        if body.text and body.text.format:
            format = body.text.format.model_dump(exclude_none=True, by_alias=True)
        choice = body.tool_choice
        answer = ResponseBody(
            id=self._id,
            created_at=self._created,
            status=status,  # type: ignore[arg-type]
            error=error,
            incomplete_details={"reason": "max_output_tokens"} if status == "incomplete" else None,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            model=self.service.name,
            output=self.items if done else [],
            parallel_tool_calls=body.parallel_tool_calls is not False,
            temperature=1.0 if body.temperature is None else body.temperature,
            text={"format": format},
            tool_choice="auto" if choice is None else choice if isinstance(choice, str) else choice.model_dump(),
            tools=[{"strict": False, **tool.model_dump(exclude_none=True)} for tool in body.tools or []],
            top_logprobs=body.top_logprobs or 0,
            top_p=1.0 if body.top_p is None else body.top_p,
            usage=self._usage() if done else None,
            user=body.user,
        )
        return answer.model_dump()

    def event(self, kind: str, **fields: Any) -> Json:
        """An event with the next number."""
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return event

    def take(self, update: Update) -> list[Json]:
        """The events of an update."""
        events: list[Json] = []
        delta = update.delta
        if isinstance(delta, Text):
            events += self._text(delta.text, update.tokens)
        elif isinstance(delta, CallStarted):
            events += self._close()
            item = {
                "id": new_id("fc_"),
                "type": "function_call",
                "status": "in_progress",
                "call_id": delta.id,
                "name": delta.name,
                "arguments": "",
            }
            events.append(self._opened(item))
        elif isinstance(delta, CallArguments):
            item = self.items[-1]
            item["arguments"] += delta.text
            where = self._where()
            events.append(self.event("response.function_call_arguments.delta", **where, delta=delta.text))
        elif update.tokens and self.items and self.items[-1]["type"] == "message":
            self.items[-1]["content"][0]["logprobs"].extend(self._logprobs(update.tokens))
        if update.reason is not None:
            self.status = "incomplete" if update.reason == "length" else "completed"
            if not self.items:
                events += self._text("", ())
            events += self._close(self.status)
        return events

    def _text(self, text: str, tokens: tuple[SampledToken, ...]) -> list[Json]:
        events: list[Json] = []
        if not self.items or self.items[-1]["type"] != "message":
            events += self._close()
            item: Json = {
                "id": new_id("msg_"),
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            }
            events.append(self._opened(item))
            part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            events.append(self.event("response.content_part.added", **self._where(), content_index=0, part=_copy(part)))
            item["content"] = [part]
        part = self.items[-1]["content"][0]
        part["text"] += text
        logprobs = self._logprobs(tokens)
        part["logprobs"].extend(logprobs)
        if text:
            where = self._where()
            events.append(
                self.event("response.output_text.delta", **where, content_index=0, delta=text, logprobs=logprobs)
            )
        return events

    def _opened(self, item: Json) -> Json:
        self.items.append(item)
        return self.event("response.output_item.added", output_index=len(self.items) - 1, item=_copy(item))

    def _close(self, status: str = "completed") -> list[Json]:
        """Ends the last item."""
        if not self.items or self.items[-1]["status"] != "in_progress":
            return []
        item, where, events = self.items[-1], self._where(), []
        item["status"] = status
        if item["type"] == "message":
            part = item["content"][0]
            events.append(
                self.event(
                    "response.output_text.done",
                    **where,
                    content_index=0,
                    text=part["text"],
                    logprobs=part["logprobs"],
                )
            )
            events.append(self.event("response.content_part.done", **where, content_index=0, part=_copy(part)))
        else:
            fields = {"arguments": item["arguments"], "name": item["name"]}
            events.append(self.event("response.function_call_arguments.done", **where, **fields))
        events.append(self.event("response.output_item.done", output_index=len(self.items) - 1, item=_copy(item)))
        return events

    def _where(self) -> Json:
        return {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}

    def _logprobs(self, tokens: tuple[SampledToken, ...]) -> list[Json]:
        return [entry.model_dump() for entry in token_logprobs(tokens, self.service.vocabulary)]

    def _usage(self) -> ResponseUsage:
        usage = usage_of(self.generation)
        return ResponseUsage(
            input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens, total_tokens=usage.total_tokens
        )


async def _whole(writer: _Writer, reading: Reading) -> None:
    try:
        async for update in updates(writer.generation, reading, writer.service):
            writer.take(update)
    finally:
        writer.generation.close()


async def _stream(writer: _Writer, reading: Reading, record: LogRecord) -> AsyncIterator[str]:
    try:
        for kind in ("response.created", "response.in_progress"):
            yield named_event(writer.event(kind, response=writer.response("in_progress")))
        async for update in updates(writer.generation, reading, writer.service):
            for event in writer.take(update):
                yield named_event(event)
        yield named_event(writer.event(f"response.{writer.status}", response=writer.response(writer.status)))
    except ApiError as error:
        failed = writer.response("failed", {"code": error.code or "server_error", "message": error.message})
        yield named_event(writer.event("response.failed", response=failed))
    finally:
        note_usage(record, writer.generation)


def _copy(value: Json) -> Json:
    """A copy that later changes of the item do not reach."""
    return {key: list(part) if isinstance(part, list) else part for key, part in value.items()}
