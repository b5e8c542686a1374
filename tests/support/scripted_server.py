"""A small HTTP server on the loopback interface whose answers a test writes down, in the shapes of the providers.

The clients that talk to it are the providers' own, so what is tested is the real request and the real reading of an
answer; what a provider's model would say is the test's invention.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer: a JSON body, or server-sent events; with a status other than 200, an error."""

    body: Any = None
    events: Sequence[Any] | None = None
    status: int = 200
    named_events: bool = False


@dataclass(frozen=True)
class Asked:
    """A request: path, JSON body and headers (names in lower case)."""

    path: str
    body: Any
    headers: dict[str, str] = field(repr=False)


class ScriptedServer:
    """Answers requests in turn from a script, or by a function of the request.

    Attributes:
        asked: the requests so far.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._script: list[Answer | Callable[[Asked], Answer]] = []
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                content = self.rfile.read(length)
                owner._answer(
                    self, Asked(self.path, json.loads(content), {k.lower(): v for k, v in self.headers.items()})
                )

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *answers: Answer | Callable[[Asked], Answer]) -> None:
        """Adds answers for the next requests; the last one is given again and again."""
        self._script.extend(answers)

    def _answer(self, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        with self._lock:
            self.asked.append(asked)
            answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if not isinstance(answer, Answer):
            answer = answer(asked)
        if answer.events is None:
            kind, data = "application/json", json.dumps(answer.body).encode()
        else:
            kind, data = (
                "text/event-stream",
                "".join(_event(event, answer.named_events) for event in answer.events).encode(),
            )
        handler.send_response(answer.status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


def _event(content: Any, named: bool) -> str:
    head = f"event: {content['type']}\n" if named else ""
    return f"{head}data: {content if isinstance(content, str) else json.dumps(content)}\n\n"


# -- the shapes


def openai_answer(text: str | None, *, reason: str = "stop", calls: Sequence[tuple[str, str, str]] = ()) -> Answer:
    """A chat completion; calls are (id, name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in calls
        ]
    return Answer(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    )


def openai_stream(*pieces: str) -> Answer:
    """A chat completion in pieces."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks: list[Any] = [
        {**base, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces
    ]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**base, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
    return Answer(events=[*chunks, "[DONE]"])


def anthropic_stream(*blocks: dict[str, Any], reason: str = "end_turn") -> Answer:
    """A message of Anthropic as events. Blocks: {"type": "text", "text": ...} or {"type": "tool_use", "id", "name",
    "input"}."""
    usage = {"input_tokens": 12, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[Any] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        else:
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 7},
        }
    )
    events.append({"type": "message_stop"})
    return Answer(events=events, named_events=True)


def google_answer(*parts: dict[str, Any], reason: str = "STOP") -> Answer:
    """A response of Gemini; parts: {"text": ...} or {"functionCall": {...}}."""
    return Answer(_google(parts, reason))


def google_stream(*pieces: str) -> Answer:
    """A response of Gemini in pieces."""
    last = len(pieces) - 1
    return Answer(events=[_google([{"text": piece}], "STOP" if i == last else None) for i, piece in enumerate(pieces)])


def _google(parts: Sequence[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini"}
