"""Log-probabilities in the shape of the chat interface."""

from __future__ import annotations

from collections.abc import Iterable

from grammask.engine.vocabulary import Vocabulary
from grammask.sampling import SampledToken
from grammask.server.protocol.chat import TokenLogprobs, TopLogprob

IMPOSSIBLE = -9999.0
"""What OpenAI writes for a logarithm of zero."""


def token_logprobs(tokens: Iterable[SampledToken], vocabulary: Vocabulary) -> list[TokenLogprobs]:
    """The model's own log-probabilities of tokens, end-of-text tokens left out."""
    ends = set(vocabulary.eos_token_ids)
    return [
        TokenLogprobs(
            **_spelled(token.token_id, token.logprob, vocabulary),
            top_logprobs=[TopLogprob(**_spelled(top.token_id, top.logprob, vocabulary)) for top in token.top_logprobs],
        )
        for token in tokens
        if token.token_id not in ends
    ]


def token_text(token_id: int, vocabulary: Vocabulary) -> str:
    """A token as text; bytes that are no whole characters become U+FFFD, special tokens their names."""
    data = vocabulary.token_bytes(token_id)
    if data is None:
        return next((name for name, known in vocabulary.special_tokens.items() if known == token_id), "")
    return data.decode(errors="replace")


def _spelled(token_id: int, logprob: float | None, vocabulary: Vocabulary) -> dict:  # type: ignore[type-arg]
    data = vocabulary.token_bytes(token_id)
    value = IMPOSSIBLE if logprob is None else max(float(logprob), IMPOSSIBLE)
    return {"token": token_text(token_id, vocabulary), "logprob": value, "bytes": None if data is None else list(data)}
