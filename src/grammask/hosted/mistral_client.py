"""Mistral's chat API through the official ``mistralai`` client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from grammask.decoding import FinishReason
from grammask.hosted.client_errors import status_error, timed_out, unreachable
from grammask.hosted.errors import HostedError
from grammask.hosted.loading import needed
from grammask.hosted.protocol import Client, Format, HostedToolCall, Reply, Request


class MistralClient(Client):
    """A model of Mistral.

    Args:
        model: its name.
        base_url, api_key: None are Mistral's address and the key in ``MISTRAL_API_KEY``.
        timeout: seconds for one request; None is the client's default.
        max_retries: how often a failed request is sent again; 0 switches it off.
        options: further arguments of ``mistralai.Mistral``.
    """

    provider = "mistral"

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
        import os

        library = needed("mistralai.client", "mistral")
        self._errors = needed("mistralai.client.errors", "mistral")
        retries = needed("mistralai.client.utils.retries", "mistral")
        key = api_key or os.environ.get("MISTRAL_API_KEY")
        if not key:
            raise HostedError("there is no key for Mistral", hint="pass api_key=..., or set MISTRAL_API_KEY")
        self.model = model
        # This client bounds retries by time: with an exponent of 2 from half a second on, this many fit.
        config = (
            retries.RetryConfig("backoff", retries.BackoffStrategy(500, 8000, 2, 500 * (2**max_retries - 1)), True)
            if max_retries > 0
            else None
        )
        self._client = library.Mistral(
            api_key=key,
            server_url=base_url,
            timeout_ms=None if timeout is None else round(1000 * timeout),
            **({"retry_config": config} if config is not None else {}),
            **options,
        )

    def complete(self, request: Request) -> Reply:
        with self._as_hosted_errors():
            response = self._client.chat.complete(**self._arguments(request))
            choice = response.choices[0]
            return _reply(
                _text(choice.message.content),
                choice.finish_reason,
                response.usage,
                choice.message.tool_calls or (),
                response,
            )

    def stream(self, request: Request) -> Iterator[str | Reply]:
        with self._as_hosted_errors():
            pieces: list[str] = []
            calls: list[Any] = []
            reason, usage = None, None
            with self._client.chat.stream(**self._arguments(request)) as events:
                for event in events:
                    usage = event.data.usage or usage
                    for choice in event.data.choices[:1]:
                        reason = choice.finish_reason or reason
                        calls += choice.delta.tool_calls or ()
                        text = _text(choice.delta.content)
                        if text:
                            pieces.append(text)
                            yield text
            yield _reply("".join(pieces), reason, usage, calls, None)

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": [_message(message) for message in request.messages],
            **request.settings,
            **_format_fields(request.format),
            **request.extra,
        }
        if request.tools:
            arguments["tools"] = list(request.tools)
            choices: dict[str, Any] = {"auto": "auto", "required": "any", "none": "none"}
            arguments["tool_choice"] = choices.get(
                request.tool_choice, {"type": "function", "function": {"name": request.tool_choice}}
            )
            arguments["parallel_tool_calls"] = request.parallel
        return arguments

    @contextmanager
    def _as_hosted_errors(self) -> Iterator[None]:
        try:
            yield
        except HostedError:
            raise
        except Exception as error:
            status = getattr(error, "status_code", None)
            kinds = {kind.__name__ for kind in type(error).__mro__}
            if isinstance(status, int):
                raise status_error(self, status, _message_of(getattr(error, "body", "") or str(error))) from error
            if "TimeoutException" in kinds:
                raise timed_out(self) from error
            if kinds & {"TransportError", "NoResponseError"}:
                raise unreachable(self, error) from error
            raise


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as Mistral takes it: without what belongs to other providers."""
    kept = {name: message[name] for name in ("role", "content", "tool_call_id", "name") if name in message}
    if kept["role"] == "developer":
        kept["role"] = "system"
    if message.get("tool_calls"):
        kept["tool_calls"] = [
            {name: call[name] for name in ("id", "type", "function")} for call in message["tool_calls"]
        ]
    return kept


def _format_fields(wanted: Format) -> dict[str, Any]:
    if wanted.kind == "json_object":
        return {"response_format": {"type": "json_object"}}
    if wanted.kind == "json_schema":
        described = {"name": "output", "schema": wanted.schema, "strict": wanted.strict}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {}


def _text(content: Any) -> str:
    """The text of an answer's content, without thoughts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, (list, tuple)):
        return ""
    return "".join(part.text for part in content if getattr(part, "type", None) == "text")


def _reply(text: str, reason: Any, usage: Any, calls: Any, raw: Any) -> Reply:
    ended: FinishReason = "length" if reason in ("length", "model_length") else "stop"
    prompt = getattr(usage, "prompt_tokens", None) or 0
    completion = getattr(usage, "completion_tokens", None) or 0
    return Reply(text, ended, prompt, completion, tuple(_call(call) for call in calls), raw=raw)


def _call(call: Any) -> HostedToolCall:
    arguments = call.function.arguments
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return HostedToolCall(call.function.name, written or "{}", call.id or "")


def _message_of(body: str) -> str:
    """What an error's body says, where it is JSON of the usual shape."""
    try:
        content = json.loads(body)
    except ValueError:
        return body
    message = content.get("message", content.get("detail", body)) if isinstance(content, dict) else body
    return message if isinstance(message, str) else json.dumps(message)
