"""What the tests of tool calls share: tools, random schemas, and random generation through tokens."""

from __future__ import annotations

import random
from typing import Any

import grammask

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather at a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "metric": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "note": {"type": ["string", "null"]},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
TIME: dict[str, Any] = {
    "name": "get_time",
    "parameters": {"type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"]},
}
PING: dict[str, Any] = {"name": "ping"}

CLOSERS = ['"', "'", '"}', "}", "]", ")", ")]", "=", ">\n", "\n</parameter>\n", "</arg_value>\n"]
CLOSERS += ["</arg_key>\n<arg_value>", "</function>", "</tool_call>", ","]
"""Texts that bring an output nearer to its end."""


def random_schema(generator: random.Random, depth: int = 2) -> dict[str, Any]:
    """A schema of arguments: an object with properties of every kind."""
    names = generator.sample(["path", "html", "count", "é", "flag", "items", "opts", "note", "mode"], 4)
    properties = {name: _random_value(generator, depth) for name in names}
    required = [name for name in names if generator.random() < 0.5]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if required or generator.random() < 0.5:  # random names hardly ever are the required ones
        schema["additionalProperties"] = False
    return schema


def _random_value(generator: random.Random, depth: int) -> dict[str, Any]:
    leaves: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "string", "maxLength": 5},
        {"type": "string", "pattern": "^[a-z<>/]{2,6}$"},
        {"type": "string", "format": "date"},
        {"enum": ["a", "it's", 'say "hi"', "</parameter>", "7", 7, None, True]},
        {"type": "integer", "minimum": -3, "maximum": 40},
        {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 9},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"type": ["string", "integer", "boolean"]},
        {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "maxItems": 2}]},
        {"const": {"k": ["v", None, False]}},
    ]
    kind = generator.randrange(4 if depth else 2)
    if kind == 2:
        return {"type": "array", "items": _random_value(generator, depth - 1), "maxItems": 3}
    if kind == 3:
        return random_schema(generator, depth - 1)
    return generator.choice(leaves)


def random_tokens(
    compiled: grammask.CompiledConstraint, generator: random.Random, start: list[int], free: int = 20
) -> list[int]:
    """Tokens of a random output that begins with ``start``, drawn from the masks with a bias towards closing.

    After ``free`` draws whatever can be closed is closed. Fails on a dead end, and where the output does not end then.
    """
    vocabulary = compiled.vocabulary
    closers = [vocabulary.encode(text) for text in CLOSERS]
    matcher = compiled.matcher()
    tokens: list[int] = []
    for token in start:
        assert matcher.accept(token), vocabulary.decode([*tokens, token])
        tokens.append(token)
    for draw in range(1000):
        if matcher.is_complete:
            return tokens
        if draw > free:
            generator.shuffle(closers)
            closed = next((closer for closer in closers if _accept_all(matcher, closer)), None)
        else:
            closer = generator.choice(closers)
            closed = closer if generator.random() < 0.6 and _accept_all(matcher, closer) else None
        if closed is not None:
            tokens += closed
            continue
        allowed = matcher.allowed_token_ids()
        assert len(allowed), f"dead end after {vocabulary.decode(tokens)!r}"
        if len(allowed) < 500 and generator.random() < 0.9:
            # Blanks are a large part of what JSON allows, and of little interest.
            allowed = [token for token in allowed if (vocabulary.token_bytes(int(token)) or b"x").strip()] or allowed
        token = int(generator.choice(allowed))
        assert matcher.accept(token)
        tokens.append(token)
    raise AssertionError(f"no end in sight: {vocabulary.decode(tokens)!r}")


def _accept_all(matcher: Any, tokens: list[int]) -> bool:
    for done, token in enumerate(tokens):
        if not matcher.accept(token):
            if done:
                matcher.rollback(done)
            return False
    return True
