"""Google's Gemini API through the official ``google-genai`` client."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from grammask.decoding import FinishReason
from grammask.hosted.client_errors import status_error, timed_out, unreachable
from grammask.hosted.errors import HostedError
from grammask.hosted.loading import needed
from grammask.hosted.messages import parts_of, split_system, text_of
from grammask.hosted.protocol import Client, HostedToolCall, Reply, Request


class GoogleClient(Client):
    """A model of Google.

    Args:
        model: its name.
        base_url, api_key: None are Google's address and the key in the environment.
        timeout: seconds for one request; None is the client's default.
        max_retries: how often a failed request is sent again.
        options: further arguments of ``google.genai.Client``.
    """

    provider = "google"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        max_retries: int = 2,
        **options: Any,
    ) -> None:
        genai = needed("google.genai", "google")
        self._types = needed("google.genai.types", "google")
        self._errors = needed("google.genai.errors", "google")
        self.model = model
        # The client counts the first try as well, and milliseconds.
        http: dict[str, Any] = {"base_url": base_url, "retry_options": {"attempts": max_retries + 1}}
        if timeout is not None:
            http["timeout"] = round(1000 * timeout)
        try:
            self._client = genai.Client(api_key=api_key, http_options=http, **options)
        except ValueError as error:
            raise HostedError(str(error), hint="pass api_key=..., or set GEMINI_API_KEY") from error

    def complete(self, request: Request) -> Reply:
        with self._as_hosted_errors():
            response = self._client.models.generate_content(**self._arguments(request))
            return _reply([response])

    def stream(self, request: Request) -> Iterator[str | Reply]:
        with self._as_hosted_errors():
            chunks = []
            for chunk in self._client.models.generate_content_stream(**self._arguments(request)):
                chunks.append(chunk)
                text = "".join(part.text for part in _parts([chunk]) if part.text and not part.thought)
                if text:
                    yield text
            yield _reply(chunks)

    def _arguments(self, request: Request) -> dict[str, Any]:
        system, messages = split_system(request.messages)
        config: dict[str, Any] = dict(request.settings.get("generationConfig", {}))
        if system:
            config["system_instruction"] = system
        if request.format.kind == "json_schema":
            config.update(response_mime_type="application/json", response_json_schema=dict(request.format.schema or {}))
        elif request.format.kind == "json_object":
            config["response_mime_type"] = "application/json"
        if request.tools:
            described = [tool["function"] for tool in request.tools]
            declarations = [
                {
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "parameters_json_schema": dict(tool["parameters"]),
                }
                for tool in described
            ]
            config["tools"] = [{"function_declarations": declarations}]
            config["tool_config"] = {"function_calling_config": _calling(request.tool_choice)}
            config["automatic_function_calling"] = {"disable": True}
        config.update(request.extra)
        settings = self._types.GenerateContentConfig.model_validate(config)
        contents = [self._types.Content.model_validate(content) for content in _contents(messages)]
        return {"model": self.model, "contents": contents, "config": settings}

    @contextmanager
    def _as_hosted_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors.APIError as error:
            raise status_error(self, error.code, error.message or str(error), error.status) from error
        except Exception as error:
            # The transport is httpx, or its successor, and is not wrapped by the client.
            kinds = {kind.__name__ for kind in type(error).__mro__}
            if "TimeoutException" in kinds:
                raise timed_out(self) from error
            if "TransportError" in kinds:
                raise unreachable(self, error) from error
            raise


def _calling(choice: str) -> dict[str, Any]:
    modes = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
    if choice in modes:
        return {"mode": modes[choice]}
    return {"mode": "ANY", "allowed_function_names": [choice]}


def _contents(messages: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            response = {
                "id": message["tool_call_id"],
                "name": message.get("name", ""),
                "response": {"result": text_of(message["content"])},
            }
            part = {"function_response": response}
            if contents and contents[-1]["role"] == "user" and "function_response" in contents[-1]["parts"][0]:
                contents[-1]["parts"].append(part)
            else:
                contents.append({"role": "user", "parts": [part]})
            continue
        parts = [_part(part) for part in parts_of(message.get("content")) if part != ""]
        for call in message.get("tool_calls") or ():
            made: dict[str, Any] = {
                "function_call": {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "args": json.loads(call["function"]["arguments"] or "{}"),
                }
            }
            if "signature" in call:
                made["thought_signature"] = base64.b64decode(call["signature"])
            parts.append(made)
        contents.append({"role": "model" if message["role"] == "assistant" else "user", "parts": parts})
    return contents


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if part.url is not None:
        return {"file_data": {"file_uri": part.url, "mime_type": part.media_type or "image/*"}}
    return {"inline_data": {"data": base64.b64decode(part.data), "mime_type": part.media_type}}


def _parts(responses: list[Any]) -> Iterator[Any]:
    for response in responses:
        for candidate in (response.candidates or ())[:1]:
            yield from (candidate.content.parts if candidate.content else None) or ()


_REFUSALS = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "OTHER"}


def _reply(responses: list[Any]) -> Reply:
    texts: list[str] = []
    calls: list[HostedToolCall] = []
    for part in _parts(responses):
        if part.function_call is not None:
            call = part.function_call
            signature = part.thought_signature
            calls.append(
                HostedToolCall(
                    call.name,
                    json.dumps(call.args or {}, ensure_ascii=False),
                    call.id or f"call-{len(calls) + 1}",
                    base64.b64encode(signature).decode() if signature else None,
                )
            )
        elif part.text and not part.thought:
            texts.append(part.text)
    last = responses[-1] if responses else None
    reasons = [c.finish_reason.name for r in responses for c in (r.candidates or ())[:1] if c.finish_reason]
    feedback = getattr(last, "prompt_feedback", None)
    reason = reasons[-1] if reasons else None
    refusal = reason if reason in _REFUSALS else None
    if feedback is not None and feedback.block_reason is not None:
        refusal = str(feedback.block_reason.name)
    usage = getattr(last, "usage_metadata", None)
    ended: FinishReason = "length" if reason == "MAX_TOKENS" else "stop"
    return Reply(
        "".join(texts),
        ended,
        (usage.prompt_token_count or 0) if usage else 0,
        (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0) if usage else 0,
        tool_calls=tuple(calls),
        refusal=refusal,
        raw=last,
    )
