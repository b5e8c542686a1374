"""Chat completions through the official ``openai`` client: OpenAI itself and every server with the same interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammask.decoding import FinishReason
from grammask.hosted.client_errors import client_errors
from grammask.hosted.errors import HostedError
from grammask.hosted.loading import needed
from grammask.hosted.protocol import Client, Format, HostedToolCall, Reply, Request

SCHEMA_NAME = "output"
"""The name under which the answer's schema is sent."""


class OpenAIClient(Client):
    """Any server that speaks OpenAI's chat completions.

    Args:
        provider: its name in the catalogue.
        model: the model's name there.
        base_url: the interface's address, up to and including its version (``http://localhost:8000/v1``); None is
            OpenAI's.
        api_key: None takes the one that the client library reads from the environment.
        options: further arguments of ``openai.OpenAI`` (timeout, max_retries, default_headers ...).
    """

    def __init__(
        self, provider: str, model: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any
    ) -> None:
        openai = needed("openai", "openai")
        self.provider = provider
        self.model = model
        self._openai = openai
        if base_url is not None and api_key is None:
            api_key = "none"  # servers of one's own need no key, but the client insists on one
        try:
            self._client = openai.OpenAI(base_url=base_url, api_key=api_key, **options)
        except openai.OpenAIError as error:
            raise HostedError(str(error), hint="pass api_key=..., or set OPENAI_API_KEY") from error

    def complete(self, request: Request) -> Reply:
        with client_errors(self._openai, self):
            return _reply(self._client.chat.completions.create(**self._arguments(request)))

    def stream(self, request: Request) -> Iterator[str | Reply]:
        with client_errors(self._openai, self):
            arguments = self._arguments(request)
            pieces: list[str] = []
            calls: dict[int, dict[str, str]] = {}
            refusal: list[str] = []
            reason, usage = None, None
            with self._client.chat.completions.create(
                **arguments, stream=True, stream_options={"include_usage": True}
            ) as chunks:
                for chunk in chunks:
                    usage = getattr(chunk, "usage", None) or usage
                    for choice in chunk.choices[:1]:
                        reason = choice.finish_reason or reason
                        delta = choice.delta
                        refusal.append(getattr(delta, "refusal", None) or "")
                        for part in delta.tool_calls or ():
                            _add_call(calls, part)
                        if delta.content:
                            pieces.append(delta.content)
                            yield delta.content
            yield Reply(
                "".join(pieces),
                _finish_reason(reason),
                *_counts(usage),
                tool_calls=tuple(HostedToolCall(**call) for _, call in sorted(calls.items())),
                refusal="".join(refusal) or None,
            )

    def models(self) -> list[tuple[str, str]]:
        """The models that the server lists: name and owner."""
        with client_errors(self._openai, self):
            return [(entry.id, str(getattr(entry, "owned_by", "") or "")) for entry in self._client.models.list()]

    def _arguments(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {**request.settings, **request.extra}
        body.update(_format_fields(request.format, self.provider))
        arguments: dict[str, Any] = {"model": self.model, "messages": list(request.messages), "extra_body": body}
        if request.tools:
            arguments["tools"] = list(request.tools)
            named = request.tool_choice not in ("auto", "required", "none")
            arguments["tool_choice"] = (
                {"type": "function", "function": {"name": request.tool_choice}} if named else request.tool_choice
            )
            if not request.parallel:
                arguments["parallel_tool_calls"] = False
        return arguments


def _format_fields(wanted: Format, provider: str) -> dict[str, Any]:
    """The request fields of a format. Those beyond JSON are vLLM's ``structured_outputs``, which grammask's own server
    takes as well, and SGLang's."""
    if wanted.kind == "json_object":
        return {"response_format": {"type": "json_object"}}
    if wanted.kind == "json_schema":
        described: dict[str, Any] = {"name": SCHEMA_NAME, "schema": wanted.schema}
        if wanted.strict:
            described["strict"] = True
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    if wanted.kind == "regex":
        return (
            {"regex": wanted.text} if provider.startswith("sglang") else {"structured_outputs": {"regex": wanted.text}}
        )
    if wanted.kind == "choice":
        return {"structured_outputs": {"choice": list(wanted.choices)}}
    return {}


def _reply(completion: Any) -> Reply:
    if not completion.choices:
        raise HostedError("the answer holds no choices")
    choice = completion.choices[0]
    message = choice.message
    calls = tuple(
        HostedToolCall(call.function.name, call.function.arguments or "{}", call.id)
        for call in message.tool_calls or ()
        if getattr(call, "function", None) is not None
    )
    return Reply(
        message.content or "",
        _finish_reason(choice.finish_reason),
        *_counts(completion.usage),
        tool_calls=calls,
        refusal=getattr(message, "refusal", None),
        raw=completion,
    )


def _finish_reason(reason: str | None) -> FinishReason:
    return "length" if reason == "length" else "stop"


def _counts(usage: Any) -> tuple[int, int]:
    return (usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage is not None else (0, 0)


def _add_call(calls: dict[int, dict[str, str]], part: Any) -> None:
    """Adds a piece of a call that is streamed: name and id come once, the arguments in pieces."""
    call = calls.setdefault(part.index, {"name": "", "arguments": "", "id": ""})
    call["id"] = part.id or call["id"]
    if part.function is not None:
        call["name"] += part.function.name or ""
        call["arguments"] += part.function.arguments or ""
