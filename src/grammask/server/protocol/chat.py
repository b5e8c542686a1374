"""``/v1/chat/completions``: the request, and the shapes of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from grammask.server.protocol.base import Neutral, Strict
from grammask.server.protocol.constraints import ExtraConstraints, FunctionTool, ResponseFormat, ToolChoice
from grammask.server.protocol.sampling import NEUTRAL, SamplingParameters

TEXT_ONLY = "this server reads and writes text alone"


class TextPart(Strict):
    """A part of a message's content."""

    type: Literal["text", "input_text", "output_text"]
    text: str


Content = str | list[TextPart]


class SystemMessage(Strict):
    """Instructions."""

    role: Literal["system", "developer"]
    content: Content
    name: str | None = None


class UserMessage(Strict):
    """What the user says."""

    role: Literal["user"]
    content: Content
    name: str | None = None


class CalledFunction(Strict):
    """The function of a call, arguments as JSON text."""

    name: str
    arguments: str


class CalledTool(Strict):
    """A call that the model made."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None


class PastFunction(CalledFunction):
    """The same in a message that was sent before; OpenAI's client adds what it read."""

    parsed_arguments: Any = None


class PastCall(CalledTool):
    """A call in a message that was sent before."""

    function: PastFunction


class AssistantMessage(Strict):
    """What the model said before. Some fields are there because clients copy them from answers: they must be empty, or
    only repeat the content."""

    role: Literal["assistant"]
    content: Content | None = None
    name: str | None = None
    tool_calls: list[PastCall] | None = None
    parsed: Any = None
    refusal: str | None = None
    reasoning_content: str | None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    audio: None = None
    function_call: None = None


class ToolMessage(Strict):
    """What a tool gave back."""

    role: Literal["tool"]
    content: Content
    tool_call_id: str
    name: str | None = None


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class StreamOptions(Strict):
    """What a stream holds beside the text."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None
    continuous_usage_stats: Literal[False] | None = None


class ChatRequest(SamplingParameters, ExtraConstraints):
    """A request for the next message of a chat."""

    neutral: ClassVar[Mapping[str, Neutral]] = {
        **NEUTRAL,
        "audio": Neutral(TEXT_ONLY),
        "modalities": Neutral(TEXT_ONLY, ["text"]),
        "prediction": Neutral("outputs cannot be predicted here: leave it out"),
        "web_search_options": Neutral("this server has no tools of its own"),
        "store": Neutral("nothing is stored: leave it out", False),
        "reasoning_effort": Neutral("the model has no such setting", "none"),
        "verbosity": Neutral("the model has no such setting", "medium"),
        "functions": Neutral("it is out of date: use tools", []),
        "function_call": Neutral("it is out of date: use tool_choice"),
        "moderation": Neutral("nothing is moderated here"),
        "echo": Neutral("a chat has no prompt text to repeat", False),
        "add_generation_prompt": Neutral("the answer is always a new message", True),
        "continue_final_message": Neutral("the answer is always a new message", False),
        "chat_template": Neutral("the model's own chat template is used"),
        "documents": Neutral("put documents into messages", []),
    }

    messages: list[Message] = Field(min_length=1, max_length=2048)
    model: str
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    tools: list[FunctionTool] | None = Field(None, max_length=128)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    metadata: dict[str, str] | None = Field(None, max_length=16)

    def limit(self) -> int | None:
        return self.max_completion_tokens if self.max_tokens is None else self.max_tokens


class TopLogprob(BaseModel):
    """One of the likeliest tokens."""

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprobs(TopLogprob):
    """A token of the output; natural logarithms of the model's own probabilities."""

    top_logprobs: list[TopLogprob]


class ChoiceLogprobs(BaseModel):
    """Of all tokens of a message."""

    content: list[TokenLogprobs] | None
    refusal: None = None


class Usage(BaseModel):
    """Tokens: those that the constraint forced count as completion tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


FinishReason = Literal["stop", "length", "tool_calls"]


class AnswerMessage(BaseModel):
    """The message."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    tool_calls: list[CalledTool] | None = None


class ChatChoice(BaseModel):
    """One of n answers."""

    index: int
    message: AnswerMessage
    logprobs: ChoiceLogprobs | None = None
    finish_reason: FinishReason


class ChatCompletion(BaseModel):
    """The answer to a request without ``stream``."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    system_fingerprint: str | None = None
    service_tier: Literal["default"] | None = None
