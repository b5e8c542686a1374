"""``/v1/completions``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from grammask.sampling import SampledToken
from grammask.server.endpoints.context import LogRecord, client_of, record_of, service_of
from grammask.server.endpoints.outputs import Reading, collect, note_usage, updates, usage_of
from grammask.server.errors import ApiError, invalid
from grammask.server.logprobs import token_text
from grammask.server.protocol.chat import Usage
from grammask.server.protocol.completions import (
    MAX_PROMPTS,
    Completion,
    CompletionChoice,
    CompletionLogprobs,
    CompletionRequest,
)
from grammask.server.service import Generation, Plan, Service, new_id, new_seed
from grammask.server.sse import DONE, EventStream, data_event, error_event, or_gone
from grammask.server.tool_stream import Text
from grammask.server.wanted import wanted_format

router = APIRouter()


@router.post("/v1/completions", response_model=Completion, summary="Continuations of texts")
async def completions(request: Request, body: CompletionRequest) -> Response:
    """Continues each prompt n times; with ``stream`` as server-sent events."""
    service, record = service_of(request), record_of(request)
    service.check_model(body.model)
    record.id = new_id("cmpl-")
    if service.settings.log_content:
        record.content["prompt"] = body.prompt
    plans = plan_completions(body, service, client_of(request))
    generations = await or_gone(request, _start(plans, service))
    prompts = _prompt_texts(plans, service) if body.echo else [""] * len(plans)
    if body.stream:
        if len(generations) > 1:
            _close(generations)
            raise invalid("one prompt at a time can be streamed", "stream")
        events = _stream(body, generations[0], prompts[0], service, record)
        return EventStream(events, generations[0].close)
    choices = await or_gone(request, _whole(body, generations, prompts, service))
    for generation in generations:
        note_usage(record, generation)
    if service.settings.log_content:
        record.content["outputs"] = [choice.text for choice in choices]
    answer = Completion(
        id=record.id,
        created=int(time.time()),
        model=service.name,
        choices=choices,
        usage=_usage(generations),
        system_fingerprint=service.fingerprint,
    )
    return JSONResponse(answer.model_dump())


def plan_completions(body: CompletionRequest, service: Service, client: str) -> list[Plan]:
    """Checks a request and encodes its prompts.

    Raises:
        ApiError: something in it cannot be as it is.
    """
    if body.stream_options is not None and not body.stream:
        raise invalid("stream_options needs stream: true", "stream_options")
    if body.echo and body.logprobs is not None:
        raise invalid("echo with logprobs would need log-probabilities of the prompt, which are not computed", "echo")
    wanted = wanted_format(body.response_format, body, options={"whitespace": service.settings.whitespace})
    sampling = body.sampling(logprobs=body.logprobs is not None, top_logprobs=body.logprobs or 0)
    seed = body.seed_bits()
    seed = new_seed() if seed is None else seed
    plans = []
    for prompt_ids in _prompts(body, service):
        room = service.room(prompt_ids, body.max_tokens, "max_tokens" if body.max_tokens else "prompt")
        plans.append(Plan(prompt_ids, wanted, sampling, seed, body.n or 1, room, client, {}))
    return plans


def _prompts(body: CompletionRequest, service: Service) -> list[list[int]]:
    prompt = body.prompt
    if isinstance(prompt, str):
        return [service.prompter.text(prompt)]
    if not prompt:
        raise invalid("prompt is empty: send a text, token ids, or a list of either", "prompt")
    if isinstance(prompt[0], int):
        return [service.check_tokens([token for token in prompt if isinstance(token, int)], "prompt")]
    if len(prompt) > MAX_PROMPTS:
        raise invalid(f"there are {len(prompt)} prompts: at most {MAX_PROMPTS}", "prompt")
    encoded = []
    for part in prompt:
        if isinstance(part, str):
            encoded.append(service.prompter.text(part))
        elif isinstance(part, list) and part:
            encoded.append(service.check_tokens(part, "prompt"))
        else:
            raise invalid("a prompt in the list is empty", "prompt")
    return encoded


async def _start(plans: Sequence[Plan], service: Service) -> list[Generation]:
    generations: list[Generation] = []
    try:
        for plan in plans:
            generations.append(await service.generate(plan))
    except BaseException:
        _close(generations)
        raise
    return generations


def _close(generations: Sequence[Generation]) -> None:
    for generation in generations:
        generation.close()


async def _whole(
    body: CompletionRequest, generations: Sequence[Generation], prompts: Sequence[str], service: Service
) -> list[CompletionChoice]:
    try:
        collected = await asyncio.gather(*[collect(generation, Reading(), service) for generation in generations])
    finally:
        _close(generations)
    choices: list[CompletionChoice] = []
    for prompt, outputs in zip(prompts, collected, strict=True):
        for output in outputs:
            logprobs = None if body.logprobs is None else _logprobs(output.tokens, 0, service)[0]
            choices.append(
                CompletionChoice(
                    index=len(choices), text=prompt + output.text, logprobs=logprobs, finish_reason=output.reason
                )
            )
    return choices


async def _stream(
    body: CompletionRequest, generation: Generation, prompt: str, service: Service, record: LogRecord
) -> AsyncIterator[str]:
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    common: dict[str, Any] = {
        "id": record.id,
        "object": "text_completion",
        "created": int(time.time()),
        "model": service.name,
        "system_fingerprint": service.fingerprint,
    }
    offsets = [len(prompt)] * generation.plan.n

    def chunk(index: int, text: str, logprobs: CompletionLogprobs | None = None, reason: str | None = None) -> str:
        shown = None if logprobs is None else logprobs.model_dump()
        choice = {"index": index, "text": text, "logprobs": shown, "finish_reason": reason}
        return data_event({**common, "choices": [choice], **({"usage": None} if with_usage else {})})

    try:
        if prompt:
            for index in range(generation.plan.n):
                yield chunk(index, prompt)
        async for update in updates(generation, Reading(), service):
            text = update.delta.text if isinstance(update.delta, Text) else ""
            logprobs = None
            if body.logprobs is not None and update.tokens:
                logprobs, offsets[update.index] = _logprobs(update.tokens, offsets[update.index], service)
            if text or logprobs or update.reason:
                yield chunk(update.index, text, logprobs, update.reason)
        if with_usage:
            yield data_event({**common, "choices": [], "usage": usage_of(generation).model_dump()})
        yield DONE
    except ApiError as error:
        yield error_event(error)
    finally:
        note_usage(record, generation)


def _logprobs(tokens: Sequence[SampledToken], offset: int, service: Service) -> tuple[CompletionLogprobs, int]:
    """In the old form, and the offset behind these tokens."""
    vocabulary = service.vocabulary
    ends = set(vocabulary.eos_token_ids)
    shown = CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
    for token in tokens:
        if token.token_id in ends:
            continue
        text = token_text(token.token_id, vocabulary)
        shown.tokens.append(text)
        shown.token_logprobs.append(token.logprob)
        shown.text_offset.append(offset)
        assert shown.top_logprobs is not None
        shown.top_logprobs.append({token_text(top.token_id, vocabulary): top.logprob for top in token.top_logprobs})
        offset += len(text)
    return shown, offset


def _prompt_texts(plans: Sequence[Plan], service: Service) -> list[str]:
    return [service.vocabulary.decode(plan.prompt_ids).decode(errors="replace") for plan in plans]


def _usage(generations: Sequence[Generation]) -> Usage:
    prompt = sum(len(generation.plan.prompt_ids) for generation in generations)
    completion = sum(generation.completion_tokens for generation in generations)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
