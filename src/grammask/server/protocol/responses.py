"""``/v1/responses``: the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from grammask.server.protocol.base import Neutral, Strict
from grammask.server.protocol.constraints import (
    ExtraConstraints,
    FormatName,
    GrammarFormat,
    JsonObjectFormat,
    RegexFormat,
    SchemaObject,
    TextFormat,
    ToolName,
)

NOT_STORED = "nothing is stored: send the whole conversation as input"
STATUS = Literal["in_progress", "completed", "incomplete"]


class InputText(Strict):
    """A part of a message; what clients copy from outputs is taken, too."""

    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    logprobs: list[Any] | None = None


class InputMessage(Strict):
    """A message."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputText]
    id: str | None = None
    status: STATUS | None = None
    phase: str | None = None


class InputCall(Strict):
    """A call that the model made."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: STATUS | None = None


class InputCallOutput(Strict):
    """What a tool gave back."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | list[InputText]
    id: str | None = None
    status: STATUS | None = None


def _kind(item: Any) -> str:
    kind = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", "message")
    return str(kind)


InputItem = Annotated[
    Annotated[InputMessage, Tag("message")]
    | Annotated[InputCall, Tag("function_call")]
    | Annotated[InputCallOutput, Tag("function_call_output")],
    Discriminator(_kind),
]


class FlatJsonSchemaFormat(Strict):
    """Values of a JSON Schema."""

    type: Literal["json_schema"]
    name: FormatName
    schema_: SchemaObject = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextOptions(Strict):
    """What the text of the answer must be."""

    format: (
        Annotated[
            TextFormat | JsonObjectFormat | FlatJsonSchemaFormat | RegexFormat | GrammarFormat,
            Field(discriminator="type"),
        ]
        | None
    ) = None
    verbosity: Literal["medium"] | None = None


class FlatFunctionTool(Strict):
    """A function that the model may call."""

    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FlatNamedChoice(Strict):
    """This tool is to be called."""

    type: Literal["function"]
    name: ToolName


class FlatAllowedChoice(Strict):
    """Some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[FlatNamedChoice] = Field(min_length=1)


class ResponseStreamOptions(Strict):
    """What a stream holds besides."""

    include_obfuscation: Literal[False] | None = None


class ResponsesRequest(ExtraConstraints):
    """A request for a response."""

    neutral: ClassVar[Mapping[str, Neutral]] = {
        "previous_response_id": Neutral(NOT_STORED),
        "conversation": Neutral(NOT_STORED),
        "store": Neutral("nothing is stored: send false, or leave it out", False),
        "background": Neutral("responses are written while the client waits", False),
        "truncation": Neutral("prompts are never cut", "disabled"),
        "service_tier": Neutral("there is one tier", "auto", "default"),
        "reasoning": Neutral("the model has no such setting", {}),
        "prompt": Neutral("there are no stored prompts"),
        "max_tool_calls": Neutral("this server has no tools of its own"),
        "moderation": Neutral("nothing is moderated here"),
        "context_management": Neutral("prompts are never cut"),
    }

    model: str
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=2048)]
    instructions: str | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_logprobs: int | None = Field(None, ge=0, le=20)
    seed: int | None = Field(None, ge=-(2**63), le=2**64 - 1, description="Not in OpenAI's interface")
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    include: list[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]] | None = None
    text: TextOptions | None = None
    tools: list[FlatFunctionTool] | None = Field(None, max_length=128)
    tool_choice: Literal["none", "auto", "required"] | FlatNamedChoice | FlatAllowedChoice | None = None
    parallel_tool_calls: bool | None = None
    metadata: dict[str, str] | None = Field(None, max_length=16)
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None


class CachedTokens(BaseModel):
    """Tokens of the prompt that were not read again."""

    cached_tokens: int = 0


class ReasoningTokens(BaseModel):
    """Tokens of thoughts."""

    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """Tokens."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int


class ResponseBody(BaseModel):
    """The answer."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[dict[str, Any]]
    parallel_tool_calls: bool
    previous_response_id: None = None
    reasoning: dict[str, Any] = {"effort": None, "summary": None}
    service_tier: Literal["default"] = "default"
    store: Literal[False] = False
    temperature: float
    text: dict[str, Any]
    tool_choice: Any
    tools: list[dict[str, Any]]
    top_logprobs: int
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    user: str | None = None
