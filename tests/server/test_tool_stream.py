"""Calls read while they are written, against the reader of whole outputs, for every format and every way to cut."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import grammask
from grammask.constraints.tools import FORMATS, ToolCalls
from grammask.constraints.tools.format import Token, walk
from grammask.server.tool_stream import CallArguments, CallStarted, Delta, Text, ToolStream
from support.models import END

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Oslo", 'a "b" \\ {', "}]"]}, "days": {"enum": [1, 2.5, [1, {"x": "]"}]]}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
    {"name": "stop"},
]


def vocabulary_with(markers: list[str]) -> grammask.Vocabulary:
    single: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    special = {name: 257 + i for i, name in enumerate(markers)}
    return grammask.Vocabulary.from_tokens(
        [*single, None, *[None] * len(markers)], eos_token_ids=[END], special_token_ids=special
    )


def write(calls: ToolCalls, vocabulary: grammask.Vocabulary, draw: random.Random) -> list[int] | None:
    """A random output, in which markers are likelier than chance would have them; None if it gets too long."""
    matcher = grammask.compile(calls, vocabulary).matcher()
    begin = {"llama3_json": '{"name":"', "llama3_pythonic": "[stop("}.get(calls.format.name, calls.format.trigger)
    markers = [begin, *calls.format.markers, "commentary"]
    ids: list[int] = []
    while len(ids) < 1500:
        forced = matcher.forced_tokens()
        if forced:
            written = forced
        elif matcher.is_complete and draw.random() < 0.3:
            return ids
        elif draw.random() < 0.4:
            marker = draw.choice(markers if ids else markers[:1])
            special = vocabulary.special_tokens.get(marker)
            is_token = special is not None and special in matcher.allowed_token_ids()
            written = [special] if is_token else list(marker.encode())
        else:
            allowed = matcher.allowed_token_ids().tolist()
            written = [draw.choice([token for token in allowed if 32 <= token < 127] or allowed)]
        if written == [END]:
            return ids
        for count, token in enumerate(written):
            if not matcher.accept(token):
                matcher.rollback(count)
                break
        else:
            ids.extend(written)
    return None


def read(
    calls: ToolCalls, vocabulary: grammask.Vocabulary, ids: list[int], draw: random.Random, **kinds: bool
) -> list[Delta]:
    """The output as the scheduler would hand it over, cut anywhere."""
    stream = ToolStream(calls, vocabulary, **kinds)
    names = {token: name for name, token in vocabulary.special_tokens.items()}
    deltas: list[Delta] = []
    text, marks, pending = "", [], b""
    for token in ids:
        if token in names and token != END:
            marks.append(len(text))
            text += names[token]
        else:
            pending += bytes([token])
            try:
                text, pending = text + pending.decode(), b""
            except UnicodeDecodeError:
                continue
        if draw.random() < 0.4:
            deltas += stream.feed(text, marks)
            text, marks = "", []
    deltas += stream.feed(text, marks)
    return deltas + stream.finish(ids, complete=True)


def joined(deltas: list[Delta]) -> tuple[str, list[tuple[str, Any]]]:
    content, calls = "", []
    for delta in deltas:
        if isinstance(delta, Text):
            content += delta.text
        elif isinstance(delta, CallStarted):
            assert delta.index == len(calls)
            calls.append((delta.name, ""))
        else:
            assert isinstance(delta, CallArguments)
            assert delta.index == len(calls) - 1
            calls[-1] = (calls[-1][0], calls[-1][1] + delta.text)
    return content, [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize("special", [False, True], ids=["markers as text", "markers as tokens"])
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("name", FORMATS)
def test_streamed_calls_are_those_of_the_whole_output(name: str, choice: str, special: bool) -> None:
    format = FORMATS[name]
    pieces = format.thought + format.begin + format.call + format.separator + format.end + format.answer
    markers = dict.fromkeys([piece.name for piece in walk(pieces) if isinstance(piece, Token)])
    vocabulary = vocabulary_with(list(markers) if special else [])
    calls = ToolCalls(TOOLS, format, choice=choice, parallel=3, whitespace="compact")
    draw = random.Random(f"{name} {choice} {special}")
    compared = called = 0
    for _ in range(60):
        if compared >= 8 and called >= 2:
            return
        ids = write(calls, vocabulary, draw)
        if ids is None:
            continue
        whole = calls.read(ids, vocabulary)
        preamble = choice == "auto" and format.has_free_lead
        content, found = joined(read(calls, vocabulary, ids, draw, may_answer=choice == "auto", preamble=preamble))
        assert found == [(call.name, json.loads(json.dumps(call.arguments, default=float))) for call in whole.calls]
        assert content == whole.content
        compared += 1
        called += bool(found)
    raise AssertionError(f"only {compared} outputs, {called} of them with calls")
