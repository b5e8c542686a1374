"""Token healing: the last token of a prompt is taken back where a longer one could stand in its place.

A prompt that ends in the middle of what would be one token forces the model onto a tokenization that it has hardly ever
seen: after "http:" the model expects "//" only as part of the token "://". So the last token of the prompt is taken
back, and the output is made to begin with its bytes: whatever token the model would have written there can come.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammask.decoding.output import Output
    from grammask.engine.vocabulary import Vocabulary


def heal_prompt(prompt_ids: list[int], output: Output, vocabulary: Vocabulary) -> tuple[list[int], bytes, Output]:
    """Takes back the last token of a prompt.

    Args:
        prompt_ids: the whole prompt.
        output: what should follow it.

    Returns:
        The shorter prompt, the bytes of the token, and an output that begins with them. All as given, with no bytes,
        where only that token could come, or nothing would be left of the prompt.
    """
    from grammask.engine.compile import compile

    data = vocabulary.token_bytes(prompt_ids[-1])
    if data is None or len(prompt_ids) < 2:
        return prompt_ids, b"", output
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return prompt_ids, b"", output
    compiled = compile(text + output.compiled.constraint, vocabulary)
    first = compiled.matcher().allowed_token_ids()
    if not any(len(vocabulary.token_bytes(int(token_id)) or b"") > len(data) for token_id in first):
        return prompt_ids, b"", output
    return prompt_ids[:-1], data, dataclasses.replace(output, compiled=compiled)
