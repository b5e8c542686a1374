"""What passes between the flow, which knows no provider, and the clients, which know one each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from grammask.decoding import FinishReason

FormatKind = Literal["text", "json_object", "json_schema", "regex", "choice"]


@dataclass(frozen=True)
class Format:
    """What the provider is asked to enforce.

    Attributes:
        kind: "text" asks for nothing.
        schema: of json_schema.
        strict: whether the provider is told to hold to the schema exactly.
        text: the pattern of regex.
        choices: of choice.
    """

    kind: FormatKind = "text"
    schema: Mapping[str, Any] | None = None
    strict: bool = False
    text: str = ""
    choices: tuple[str, ...] = ()


FREE = Format()
"""Nothing is asked for."""


@dataclass(frozen=True)
class HostedToolCall:
    """A call that the provider read out of the model's output.

    Attributes:
        name: the tool.
        arguments: JSON text, as received.
        id: what the result has to name.
        signature: what the provider wants to see again with the call (Gemini's thought signature, base64).
    """

    name: str
    arguments: str
    id: str
    signature: str | None = None


@dataclass(frozen=True)
class Request:
    """One question to a provider.

    Attributes:
        messages: in the shape of OpenAI's chat completions (roles system, user, assistant, tool; content a text or a
            list of parts); clients rewrite them into their provider's.
        settings: fields of the request from ``providers.translate``, nested as the API wants them.
        format: what the answer must be.
        max_tokens: the limit, where the provider requires one and the settings have none.
        tools: descriptions as ``Tool.as_dict`` gives them.
        tool_choice: "auto", "required", "none" or a name.
        parallel: whether one answer may hold several calls.
        extra: fields for this provider alone.
    """

    messages: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: Format = FREE
    max_tokens: int | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str = "auto"
    parallel: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """One answer.

    Attributes:
        text: the answer, without thoughts.
        finish_reason: "stop", "length" or "stop_sequence"; tool calls end with "stop".
        prompt_tokens, completion_tokens: as the provider counts; 0 where it does not tell.
        tool_calls: in the order given.
        refusal: why the model declined; None if it did not.
        raw: the client library's object.
    """

    text: str
    finish_reason: FinishReason
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tool_calls: tuple[HostedToolCall, ...] = ()
    refusal: str | None = None
    raw: Any = field(default=None, repr=False, compare=False)


class Client(ABC):
    """The official client of one provider behind the two calls that are needed of it.

    Attributes:
        provider: the name in the catalogue, with the API where it is not the first (``"ollama/openai"``).
        model: the model's name there.
    """

    provider: str
    model: str

    @abstractmethod
    def complete(self, request: Request) -> Reply:
        """Sends a request and waits for the answer; the client library retries what its defaults retry.

        Raises:
            HostedError: the provider refused or failed after the retries, or could not be reached.
        """

    @abstractmethod
    def stream(self, request: Request) -> Iterator[str | Reply]:
        """Likewise, as pieces of text and at last the whole Reply. Closing the iterator ends the request."""


def tool_turn(reply: Reply, results: Mapping[str, str]) -> list[dict[str, Any]]:
    """The messages that go on after an answer with calls: the answer itself and the result of each call, by its id."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
            **({"signature": call.signature} if call.signature is not None else {}),
        }
        for call in reply.tool_calls
    ]
    turn: list[dict[str, Any]] = [{"role": "assistant", "content": reply.text, "tool_calls": calls}]
    turn += [
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": results[call.id]}
        for call in reply.tool_calls
    ]
    return turn
