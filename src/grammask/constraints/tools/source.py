"""What a model wrote, for reading: text, and where special tokens stand in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary

EXCERPT = 40


class ToolCallError(ValueError):
    """An output that is not what its format asks for.

    Attributes:
        position: index of the character where it goes wrong (special tokens count with the characters of their names).
        line, column: the same place, 1-based.
        expected: what could stand there.
        found: the text that does, shortened; "" at the end.
    """

    def __init__(self, text: str, position: int, expected: str) -> None:
        self.position = position
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1
        self.expected = expected
        self.found = text[position : position + EXCERPT]
        found = repr(self.found) if self.found else "the end of the output"
        super().__init__(f"line {self.line}, column {self.column}: expected {expected}, found {found}")


@dataclass(frozen=True)
class Source:
    """An output.

    Attributes:
        text: the output, special tokens spelled by their names.
        specials: start in the text -> name of the special token there. Empty if the output was given as text: the names
            of special tokens are then found as text.
        by_token: the names that count as markers only where they are special tokens.
    """

    text: str
    specials: Mapping[int, str] = field(default_factory=dict)
    by_token: frozenset[str] = frozenset()

    def next_special(self, position: int) -> int:
        """Where the next special token starts, at or after a position; the length of the text if there is none."""
        starts = self.starts
        index = bisect_left(starts, position)
        return starts[index] if index < len(starts) else len(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Where special tokens stand, ascending."""
        return sorted(self.specials)

    def fault(self, position: int, expected: str) -> ToolCallError:
        return ToolCallError(self.text, position, expected)


def source_of_text(text: str) -> Source:
    """An output given as text.

    Raises:
        ToolCallError: it holds a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolCallError(text, error.start, "a character instead of a lone surrogate") from None
    return Source(text)


def source_of_tokens(token_ids: Iterable[int], vocabulary: Vocabulary, markers: Iterable[str]) -> Source:
    """An output given as tokens; end-of-text tokens at its end are left out.

    Raises:
        IndexError: an id is not in the vocabulary.
        ToolCallError: the bytes of the tokens between two special tokens are not UTF-8.
    """
    ids = list(token_ids)
    ends = set(vocabulary.eos_token_ids)
    while ids and ids[-1] in ends:
        ids.pop()
    names = {token_id: name for name, token_id in vocabulary.special_tokens.items()}
    text, specials, pending = "", {}, bytearray()

    def flush() -> None:
        nonlocal text
        try:
            text += pending.decode()
        except UnicodeDecodeError as error:
            text += pending[: error.start].decode()
            raise ToolCallError(text, len(text), "UTF-8 text") from None
        pending.clear()

    for token_id in ids:
        name = names.get(token_id)
        if name is None:
            pending += vocabulary.token_bytes(token_id) or b""
            continue
        flush()
        specials[len(text)] = name
        text += name
    flush()
    return Source(text, specials, frozenset([name for name in markers if name in vocabulary.special_tokens]))
