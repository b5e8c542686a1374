"""Tables from tiktoken encodings, which store the bytes of their tokens as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammask.engine.tokenizers.end_of_text import known_end_tokens
from grammask.engine.tokenizers.table import TokenTable, VocabularyError, checked_id

if TYPE_CHECKING:
    import tiktoken


def table_from_tiktoken(encoding: tiktoken.Encoding) -> TokenTable:
    """The table of an encoding.

    Raises:
        VocabularyError: not an encoding.
    """
    if not hasattr(encoding, "decode_single_token_bytes") or not hasattr(encoding, "special_tokens_set"):
        raise VocabularyError(
            f"expected a tiktoken.Encoding, not {type(encoding).__name__}", hint='tiktoken.get_encoding("o200k_base")'
        )
    special = {name: encoding.encode_single_token(name) for name in sorted(encoding.special_tokens_set)}
    size = checked_id(encoding.max_token_value, "the largest id of the encoding") + 1
    apart = set(special.values())
    tokens: list[bytes | None] = [None] * size
    for token_id in range(size):
        if token_id not in apart:
            try:
                tokens[token_id] = encoding.decode_single_token_bytes(token_id)
            except KeyError:  # an id between the ranks and the special tokens that no token has
                continue
    return TokenTable(tokens, special, known_end_tokens(special))
