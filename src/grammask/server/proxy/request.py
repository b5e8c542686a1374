"""What the proxy reads of a request. Everything else is passed on to the upstream as it is."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from grammask.server.protocol.chat import StreamOptions
from grammask.server.protocol.constraints import (
    FunctionTool,
    ResponseFormat,
    SchemaObject,
    StructuredOutputs,
    ToolChoice,
)


class ProxyRequest(BaseModel):
    """A chat request, of which the proxy takes out what it does itself."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    model: str
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=2048)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1)
    response_format: ResponseFormat | None = None
    tools: list[FunctionTool] | None = Field(None, max_length=128)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: SchemaObject | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    grammar: str | None = None
    json_schema: SchemaObject | None = None
