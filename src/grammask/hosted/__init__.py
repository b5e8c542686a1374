"""Models behind an API: typed outputs from providers, through their official clients."""

from __future__ import annotations

from grammask.hosted.errors import HostedError, HostedWarning, InvalidOutput
from grammask.hosted.messages import image
from grammask.hosted.model import HostedModel, HostedResult
from grammask.hosted.naming import anthropic, google, is_hosted, load_hosted, mistral, openai_compatible
from grammask.hosted.protocol import Client, Format, HostedToolCall, Reply, Request

__all__ = [
    "Client",
    "Format",
    "HostedError",
    "HostedModel",
    "HostedResult",
    "HostedToolCall",
    "HostedWarning",
    "InvalidOutput",
    "Reply",
    "Request",
    "anthropic",
    "google",
    "image",
    "is_hosted",
    "load_hosted",
    "mistral",
    "openai_compatible",
]
