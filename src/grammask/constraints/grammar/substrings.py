"""``%regex {"substring_chunks": [...]}``: any run of consecutive chunks."""

from __future__ import annotations

import re
from typing import Any

from grammask.constraints.grammar.characters import encode
from grammask.constraints.grammar.nodes import Arena, Literal, NodeId
from grammask.constraints.grammar.source import Source

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_HINT = (
    'the forms are {"substring_chunks": [strings]}, {"substring_words": string} and {"substring_chars": string};'
    " a regular expression is written between slashes"
)


def substring_node(arena: Arena, options: Any, source: Source, offset: int) -> NodeId:
    """The expression for the joined chunks n..m of a list, for every n ≤ m (the empty word included).

    Chunks are given as a list, or as a text to cut into words, spaces and punctuation marks, or into characters.
    """
    if not isinstance(options, dict) or len(options) != 1:
        raise source.error(offset, "%regex takes an object with one key", hint=_HINT)
    ((form, value),) = options.items()
    if form == "substring_chunks" and isinstance(value, list) and all(isinstance(chunk, str) for chunk in value):
        chunks = value
    elif form == "substring_words" and isinstance(value, str):
        chunks = _WORDS.findall(value)
    elif form == "substring_chars" and isinstance(value, str):
        chunks = list(value)
    else:
        raise source.error(offset, f"%regex cannot read {form!r} with this value", hint=_HINT)
    tails = [arena.epsilon]
    for chunk in reversed(chunks):
        literal = arena.add(Literal(encode(source, map(ord, chunk), offset)))
        tails.append(arena.optional(arena.concat([literal, tails[-1]])))
    return arena.union(tails)
