"""Anthropic's Messages API through the official ``anthropic`` client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from grammask.decoding import FinishReason
from grammask.hosted.client_errors import client_errors
from grammask.hosted.errors import HostedError
from grammask.hosted.loading import needed
from grammask.hosted.messages import parts_of, split_system, text_of
from grammask.hosted.protocol import Client, HostedToolCall, Reply, Request


class AnthropicClient(Client):
    """A model of Anthropic.

    Args:
        model: its name.
        base_url, api_key: None are Anthropic's address and the key in the environment.
        options: further arguments of ``anthropic.Anthropic``.
    """

    provider = "anthropic"

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> None:
        self._library = needed("anthropic", "anthropic")
        self.model = model
        try:
            self._client = self._library.Anthropic(base_url=base_url, api_key=api_key, **options)
        except self._library.AnthropicError as error:
            raise HostedError(str(error), hint="pass api_key=..., or set ANTHROPIC_API_KEY") from error

    def complete(self, request: Request) -> Reply:
        # A long answer must be streamed: the client refuses to wait for it in one piece.
        with client_errors(self._library, self), self._client.messages.stream(**self._arguments(request)) as stream:
            return _reply(stream.get_final_message())

    def stream(self, request: Request) -> Iterator[str | Reply]:
        with client_errors(self._library, self), self._client.messages.stream(**self._arguments(request)) as stream:
            yield from stream.text_stream
            yield _reply(stream.get_final_message())

    def _arguments(self, request: Request) -> dict[str, Any]:
        system, messages = split_system(request.messages)
        settings = {**request.settings, **request.extra}
        if request.format.kind == "json_schema":
            settings["output_config"] = {"format": {"type": "json_schema", "schema": request.format.schema}}
        limit = settings.pop("max_tokens", request.max_tokens)
        arguments: dict[str, Any] = {
            "model": self.model,
            "max_tokens": limit,
            "messages": _turns(messages),
            "extra_body": settings,
        }
        if system:
            arguments["system"] = system
        if request.tools:
            arguments["tools"] = [_tool(tool["function"]) for tool in request.tools]
            arguments["tool_choice"] = _tool_choice(request)
        return arguments


def _tool(described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": described["name"],
        "description": described.get("description", ""),
        "input_schema": dict(described["parameters"]),
    }


def _tool_choice(request: Request) -> dict[str, Any]:
    kinds = {"auto": "auto", "required": "any", "none": "none"}
    kind = kinds.get(request.tool_choice)
    choice: dict[str, Any] = {"type": kind} if kind else {"type": "tool", "name": request.tool_choice}
    if not request.parallel and kind != "none":
        choice["disable_parallel_tool_use"] = True
    return choice


def _turns(messages: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as Anthropic takes them: results of tools are the user's, and those of one answer share a turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": text_of(message["content"]),
            }
            if turns and turns[-1]["role"] == "user" and isinstance(turns[-1]["content"], list):
                turns[-1]["content"].append(result)
            else:
                turns.append({"role": "user", "content": [result]})
            continue
        content = [_part(part) for part in parts_of(message.get("content")) if part != ""]
        content += [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"] or "{}"),
            }
            for call in message.get("tool_calls") or ()
        ]
        if len(content) == 1 and content[0]["type"] == "text":
            turns.append({"role": message["role"], "content": content[0]["text"]})
        else:
            turns.append({"role": message["role"], "content": content})
    return turns


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.url is not None:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


_FINISH: dict[str, FinishReason] = {"max_tokens": "length", "stop_sequence": "stop_sequence"}


def _reply(message: Any) -> Reply:
    texts = [block.text for block in message.content if block.type == "text"]
    calls = tuple(
        HostedToolCall(block.name, json.dumps(block.input, ensure_ascii=False), block.id)
        for block in message.content
        if block.type == "tool_use"
    )
    refused = message.stop_reason == "refusal"
    return Reply(
        "".join(texts),
        _FINISH.get(message.stop_reason or "", "stop"),
        message.usage.input_tokens,
        message.usage.output_tokens,
        tool_calls=calls,
        refusal="stop_reason is refusal" if refused else None,
        raw=message,
    )
