"""``/v1/completions``: the request, and the shapes of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from grammask.server.protocol.base import Neutral
from grammask.server.protocol.chat import FinishReason, StreamOptions, Usage
from grammask.server.protocol.constraints import ExtraConstraints, ResponseFormat
from grammask.server.protocol.sampling import NEUTRAL, SamplingParameters

MAX_PROMPTS = 64


class CompletionRequest(SamplingParameters, ExtraConstraints):
    """A request to continue texts."""

    neutral: ClassVar[Mapping[str, Neutral]] = {
        **NEUTRAL,
        "suffix": Neutral("a text is continued at its end: leave it out", ""),
        "store": Neutral("nothing is stored: leave it out", False),
        "add_special_tokens": Neutral("the tokenizer decides", True),
    }

    model: str
    prompt: str | list[str] | list[int] | list[list[int]] = Field(
        description="A text, token ids, or several of either; each is continued n times."
    )
    echo: bool | None = None
    logprobs: int | None = Field(None, ge=0, le=20)
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    user: str | None = None


class CompletionLogprobs(BaseModel):
    """In the form of the old interface."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """One continuation."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: FinishReason | None


class Completion(BaseModel):
    """The answer; a chunk of a stream has the same shape."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
    system_fingerprint: str | None = None
