"""Is an answer what was asked for? And if not, where does it go wrong, in words that a model can act on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grammask.constraints.tools import ToolCallError, ToolCalls
from grammask.engine.compile import CompiledConstraint
from grammask.engine.vocabulary import Vocabulary

_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_AROUND = 24
_SHOWN = 12


@dataclass(frozen=True)
class Problem:
    """What is wrong with an answer.

    Attributes:
        message: where, what is there, and what could stand there.
    """

    message: str


def byte_vocabulary() -> Vocabulary:
    """Single bytes and an end of text: checks of texts depend on no tokenizer."""
    single: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    return Vocabulary.from_tokens([*single, None], eos_token_ids=[256])


def valid_part(text: str, compiled: CompiledConstraint, *, is_json: bool) -> str | Problem:
    """The answer in what a model wrote, which may stand in a code block or, if it is JSON, between other words.

    Returns:
        The valid text as it was written; or the problem of the candidate that got furthest.
    """
    furthest: tuple[int, Problem] | None = None
    for candidate in _candidates(text, is_json):
        reached, problem = _check(candidate, compiled)
        if problem is None:
            return candidate
        if furthest is None or reached > furthest[0]:
            furthest = reached, problem
    assert furthest is not None
    return furthest[1]


def argument_problem(name: str, arguments: str, tools: dict[str, ToolCalls]) -> Problem | None:
    """What is wrong with a call that came as name and JSON text; None if nothing is.

    Args:
        tools: for each tool, a constraint of which it is the only one.
    """
    if name not in tools:
        return Problem(f"there is no tool {name!r}; the tools are {', '.join(tools)}")
    try:
        call = json.dumps({"name": name, "arguments": json.loads(arguments or "{}")}, ensure_ascii=False)
        tools[name].read(f"<tool_call>\n{call}\n</tool_call>")
    except ToolCallError as error:
        return Problem(f"the arguments of {name}: {error}")
    except (ValueError, RecursionError) as error:
        return Problem(f"the arguments of {name} are not JSON: {error}")
    return None


def _candidates(text: str, is_json: bool) -> Iterator[str]:
    stripped = text.strip()
    yield stripped
    if stripped != text:
        yield text
    for match in _FENCE.finditer(text):
        yield match[1].strip()
    if is_json:
        decoder = json.JSONDecoder()
        starts = [match.start() for match in re.finditer(r"[{\[]", text)]
        for start in starts[:_SHOWN]:
            try:
                _, end = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            yield text[start:end]


def _check(text: str, compiled: CompiledConstraint) -> tuple[int, Problem | None]:
    """How many bytes are in order, and what is wrong with the next one."""
    data = text.encode("utf-8", "replace")
    matcher = compiled.matcher()
    reached = matcher.matched_prefix(data)
    matcher.accept_bytes(data[:reached])
    if reached == len(data) and matcher.is_complete:
        return reached, None
    before = data[:reached].decode(errors="replace")[-_AROUND:]
    after = data[reached : reached + _AROUND].decode(errors="replace")
    certain = matcher.forced_bytes(64)
    if len(certain) > 1:
        expected = repr(certain.decode(errors="replace"))
    else:
        following = [repr(chr(byte)) for byte in matcher.next_bytes() if 0x20 <= byte < 0x7F]
        expected = ", ".join(following[:_SHOWN]) + (" ..." if len(following) > _SHOWN else "")
        expected = expected or "the end"
    found = repr(after) if after else "the end of the answer"
    return reached, Problem(f"after {before!r} stands {found}, where the answer must go on with {expected}")
