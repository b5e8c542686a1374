"""Reading what a command works on: prompts and texts from arguments, files and standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammask.cli.console import UsageError


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def read_text(path: str) -> str:
    """The text of a UTF-8 file, or of standard input for ``-``; a byte order mark is dropped."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from error


def read_json(path: str) -> Any:
    """The JSON value in a file."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UsageError(f"{path} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error


def stdin_is_piped() -> bool:
    """Whether standard input comes from a file or a pipe rather than a keyboard."""
    return sys.stdin is not None and not sys.stdin.isatty()


def text_argument(argument: str | None, input_path: str | None, *, what: str) -> bytes:
    """A text given as an argument, in a file, or on standard input. One newline at the end of the latter two is
    dropped, since editors and ``echo`` put one there that belongs to the file and not to the text."""
    if argument is not None and input_path is not None:
        raise UsageError(f"give the {what} either as an argument or with --input, not both")
    if argument is not None:
        return argument.encode("utf-8", "surrogateescape")
    if input_path is None and not stdin_is_piped():
        raise UsageError(f"no {what}: give it as an argument, with --input FILE, or on standard input")
    data = read_bytes(input_path or "-")
    if data.endswith(b"\r\n"):
        return data[:-2]
    return data[:-1] if data.endswith(b"\n") else data


def read_messages(path: str) -> list[dict[str, Any]]:
    """Chat messages from a JSON file: a list of ``{"role": ..., "content": ...}``."""
    value = read_json(path)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise UsageError(f"{path} must hold a JSON list of chat messages")
    for position, message in enumerate(value):
        if not isinstance(message.get("role"), str) or "content" not in message:
            raise UsageError(f"message {position} of {path} needs a role and a content")
    return value


@dataclass(frozen=True)
class Request:
    """One line of a JSON-lines input.

    Attributes:
        prompt: text, or chat messages.
        fields: the line's other fields, which are copied to the output line (an ``id``, for instance).
    """

    prompt: str | list[dict[str, Any]]
    fields: dict[str, Any]


def read_requests(path: str) -> list[Request]:
    """The requests of a JSON-lines file: each line a JSON string, or an object with ``prompt`` or ``messages``."""
    return [_request(value, f"line {number} of {path}") for number, value in _json_lines(path)]


def _json_lines(path: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"line {number} of {path} is not JSON: {error.msg} at column {error.colno}") from error


def _request(value: Any, where: str) -> Request:
    if isinstance(value, str):
        return Request(value, {})
    if isinstance(value, dict):
        fields = {key: item for key, item in value.items() if key not in ("prompt", "messages")}
        given = [key for key in ("prompt", "messages") if key in value]
        if given == ["prompt"] and isinstance(value["prompt"], str):
            return Request(value["prompt"], fields)
        if given == ["messages"] and isinstance(value["messages"], list):
            return Request(value["messages"], fields)
    raise UsageError(f'{where} must be a JSON string, or an object with a "prompt" text or a list of "messages"')
