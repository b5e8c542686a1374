"""``/v1/chat/completions``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from grammask.server.endpoints.context import LogRecord, client_of, record_of, service_of
from grammask.server.endpoints.outputs import Collected, Reading, Update, collect, note_usage, updates, usage_of
from grammask.server.errors import ApiError, invalid
from grammask.server.logprobs import token_logprobs
from grammask.server.protocol.chat import (
    AnswerMessage,
    CalledFunction,
    CalledTool,
    ChatChoice,
    ChatCompletion,
    ChatRequest,
    ChoiceLogprobs,
)
from grammask.server.service import Generation, Plan, Service, new_id, new_seed
from grammask.server.sse import DONE, EventStream, data_event, error_event, or_gone
from grammask.server.tool_stream import CallArguments, CallStarted, Text
from grammask.server.wanted import wanted_format, wanted_tools, wanted_with_tools

router = APIRouter()


@router.post("/v1/chat/completions", response_model=ChatCompletion, summary="The next message of a chat")
async def chat_completions(request: Request, body: ChatRequest) -> Response:
    """Writes the next message, n times; with ``stream`` as server-sent events."""
    service, record = service_of(request), record_of(request)
    service.check_model(body.model)
    record.id = new_id("chatcmpl-")
    if service.settings.log_content:
        record.content["messages"] = [message.model_dump(exclude_none=True) for message in body.messages]
    plan, reading = plan_chat(body, service, client_of(request))
    generation = await or_gone(request, service.generate(plan))
    if body.stream:
        events = _stream(body, generation, reading, service, record)
        return EventStream(events, generation.close)
    outputs = await or_gone(request, _whole(generation, reading, service))
    note_usage(record, generation)
    if service.settings.log_content:
        record.content["outputs"] = [output.text for output in outputs]
    answer = ChatCompletion(
        id=record.id,
        created=int(time.time()),
        model=service.name,
        choices=[_choice(index, output, body, service) for index, output in enumerate(outputs)],
        usage=usage_of(generation),
        system_fingerprint=service.fingerprint,
        service_tier="default" if body.model_fields_set & {"service_tier"} else None,
    )
    return JSONResponse(answer.model_dump(exclude={"service_tier"}))


def plan_chat(body: ChatRequest, service: Service, client: str) -> tuple[Plan, Reading]:
    """Checks a request and writes its prompt.

    Raises:
        ApiError: something in it cannot be as it is.
    """
    if body.top_logprobs is not None and not body.logprobs:
        raise invalid("top_logprobs needs logprobs: true", "top_logprobs")
    if body.stream_options is not None and not body.stream:
        raise invalid("stream_options needs stream: true", "stream_options")
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        raise invalid("max_tokens and max_completion_tokens are the same: send one of them", "max_tokens")
    options = {"whitespace": service.settings.whitespace}
    answer = wanted_format(body.response_format, body, options=options)
    tools = wanted_tools(body.tools, body.tool_choice, body.parallel_tool_calls)
    reading, wanted, marks = Reading(), answer, {}
    if tools is not None:
        format = service.prompter.tool_format
        wanted, calls = wanted_with_tools(answer, tools, format, options=options)
        reading = Reading(
            tools, calls, preamble=tools.choice == "auto" and not answer.structured and format.has_free_lead
        )
        special = service.vocabulary.special_tokens
        marks = {special[name]: name for name in format.markers if name in special}
        ends = set(service.vocabulary.eos_token_ids)
        marks = {token: name for token, name in marks.items() if token not in ends}
    prompt_ids = service.prompter.chat(body.messages, tools.tools if tools else (), body.chat_template_kwargs)
    param = "max_tokens" if body.max_tokens is not None else "max_completion_tokens"
    seed = body.seed_bits()
    plan = Plan(
        prompt_ids=prompt_ids,
        wanted=wanted,
        sampling=body.sampling(logprobs=bool(body.logprobs), top_logprobs=body.top_logprobs or 0),
        seed=new_seed() if seed is None else seed,
        n=body.n or 1,
        max_tokens=service.room(prompt_ids, body.limit(), param),
        client=client,
        marks=marks,
    )
    return plan, reading


async def _whole(generation: Generation, reading: Reading, service: Service) -> list[Collected]:
    try:
        return await collect(generation, reading, service)
    finally:
        generation.close()


def _choice(index: int, output: Collected, body: ChatRequest, service: Service) -> ChatChoice:
    calls = [
        CalledTool(id=call_id, function=CalledFunction(name=name, arguments=arguments))
        for call_id, name, arguments in output.calls
    ]
    content = None if calls and not output.text else output.text
    logprobs = ChoiceLogprobs(content=token_logprobs(output.tokens, service.vocabulary)) if body.logprobs else None
    return ChatChoice(
        index=index,
        message=AnswerMessage(content=content, tool_calls=calls or None),
        logprobs=logprobs,
        finish_reason=output.reason,
    )


async def _stream(
    body: ChatRequest, generation: Generation, reading: Reading, service: Service, record: LogRecord
) -> AsyncIterator[str]:
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    common: dict[str, Any] = {
        "id": record.id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": service.name,
        "system_fingerprint": service.fingerprint,
    }

    def chunk(index: int, delta: dict[str, Any], logprobs: Any = None, reason: str | None = None) -> str:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return data_event({**common, "choices": [choice], **({"usage": None} if with_usage else {})})

    try:
        for index in range(generation.plan.n):
            yield chunk(index, {"role": "assistant", "content": "" if reading.tools is None else None, "refusal": None})
        async for update in updates(generation, reading, service):
            logprobs = None
            if update.tokens and body.logprobs:
                content = token_logprobs(update.tokens, service.vocabulary)
                logprobs = {"content": [entry.model_dump() for entry in content], "refusal": None}
            if update.delta is None and update.reason is None and logprobs is None:
                continue
            yield chunk(update.index, _delta(update), logprobs, update.reason)
        if with_usage:
            yield data_event({**common, "choices": [], "usage": usage_of(generation).model_dump()})
        yield DONE
    except ApiError as error:
        yield error_event(error)
    finally:
        note_usage(record, generation)


def _delta(update: Update) -> dict[str, Any]:
    delta = update.delta
    if isinstance(delta, Text):
        return {"content": delta.text}
    if isinstance(delta, CallStarted):
        function = {"name": delta.name, "arguments": ""}
        return {"tool_calls": [{"index": delta.index, "id": delta.id, "type": "function", "function": function}]}
    if isinstance(delta, CallArguments):
        return {"tool_calls": [{"index": delta.index, "function": {"arguments": delta.text}}]}
    return {}
