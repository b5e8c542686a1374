"""Messages: one shape for all providers, that of OpenAI's chat completions, and what each client needs to read it.

A message has a ``role`` (system, developer, user, assistant, tool) and ``content``: a text, or a list of parts, which
are ``{"type": "text", "text": ...}`` and ``{"type": "image_url", "image_url": {"url": ...}}``. Parts of other kinds are
passed on as they are to providers with this interface, and refused by clients that would have to translate them.
"""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammask.models.errors import ModelError

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image(source: bytes | str | os.PathLike[str], *, media_type: str | None = None) -> dict[str, Any]:
    """An image as a part of a message's content.

    Args:
        source: the file's bytes or path, or an address that starts with ``https://``, ``http://`` or ``data:``.
        media_type: such as ``"image/png"``; None goes by the first bytes, then by the file's name.

    Raises:
        ModelError: the media type cannot be told.
    """
    if isinstance(source, str) and source.startswith(("https://", "http://", "data:")):
        return {"type": "image_url", "image_url": {"url": source}}
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    found = media_type or next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
    if found is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        found = "image/webp"
    if found is None and not isinstance(source, bytes):
        found = mimetypes.guess_type(os.fspath(source))[0]
    if found is None:
        raise ModelError("the type of the image cannot be told", hint='pass media_type="image/png", for example')
    encoded = base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{found};base64,{encoded}"}}


@dataclass(frozen=True)
class Picture:
    """An image inside a message: an address, or bytes (base64) with their media type."""

    url: str | None = None
    data: str | None = None
    media_type: str | None = None


def as_messages(prompt: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A prompt as messages; plain text is what the user says.

    Raises:
        ModelError: a message has no role, or neither content nor tool calls.
    """
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    messages = [dict(message) for message in prompt]
    for position, message in enumerate(messages):
        if "role" not in message or not ("content" in message or "tool_calls" in message):
            raise ModelError(f"message {position} must have the keys 'role' and 'content', got {sorted(message)}")
    if not messages:
        raise ModelError("there are no messages", hint="a provider answers at least one message of the user")
    return messages


def parts_of(content: Any) -> Iterator[str | Picture]:
    """Texts and images of a message's content.

    Raises:
        ModelError: a part is neither.
    """
    if content is None:
        return
    if isinstance(content, str):
        yield content
        return
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            yield str(part["text"])
        elif kind == "image_url":
            address = part["image_url"]
            yield _picture(address["url"] if isinstance(address, Mapping) else address)
        else:
            raise ModelError(
                f"a part of kind {kind!r} cannot be translated for this provider",
                hint='use {"type": "text", ...} and grammask.hosted.image(...)',
            )


def text_of(content: Any) -> str:
    """The texts of a message's content, put together."""
    return "".join(part for part in parts_of(content) if isinstance(part, str))


def split_system(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Mapping[str, Any]]]:
    """The system messages as one text, and the other messages: for providers that take the first apart."""
    system = [text_of(message["content"]) for message in messages if message["role"] in ("system", "developer")]
    return "\n\n".join(system), [message for message in messages if message["role"] not in ("system", "developer")]


def with_instructions(messages: Sequence[Mapping[str, Any]], text: str) -> list[dict[str, Any]]:
    """The messages with instructions added: to the first system message, or in one of their own."""
    copied = [dict(message) for message in messages]
    if not text:
        return copied
    if copied and copied[0]["role"] == "system" and isinstance(copied[0]["content"], str):
        copied[0]["content"] = f"{copied[0]['content']}\n\n{text}"
        return copied
    return [{"role": "system", "content": text}, *copied]


def _picture(url: str) -> Picture:
    if not url.startswith("data:"):
        return Picture(url=url)
    head, _, data = url[len("data:") :].partition(",")
    media_type, _, encoding = head.partition(";")
    if encoding != "base64":
        raise ModelError("an image in a data: address must be in base64")
    return Picture(data=data, media_type=media_type)
