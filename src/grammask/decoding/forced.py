"""Certain text as the tokens that the model would have written.

The core knows which bytes are certain to come next, and spells them in tokens, each the longest that fits. A model's
tokenizer spells many texts otherwise, and a model reads best what it was trained on. So the certain bytes are encoded
by the tokenizer, together with the end of the text before them; what the core holds back, because a longer token could
cover it together with what may follow, is left to the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammask.engine.vocabulary import VocabularyError

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.engine.vocabulary import Vocabulary

CONTEXT = 24
"""Bytes of the text before that are encoded along: more than the words that a tokenizer looks at together."""

_WITH_TOKENIZER = ("tokenizers", "transformers", "tiktoken")


class CertainText:
    """Tokens for what is certain to come next.

    Args:
        vocabulary: of the model. One that has no tokenizer leaves the tokens as the core spells them.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._has_tokenizer = vocabulary.source in _WITH_TOKENIZER

    def tokens(self, matcher: Matcher, before: list[bytes]) -> list[int]:
        """The tokens that are certain to come next, as the tokenizer would write them.

        Args:
            matcher: at the point where they come.
            before: the bytes of the tokens before, oldest first.
        """
        spelled = matcher.forced_tokens()
        if len(spelled) < 2 or not self._has_tokenizer:
            return spelled
        certain = matcher.forced_bytes()
        length = len(self._vocabulary.decode(spelled))
        written = self._encoded(_end_of(before), certain)
        kept, end = [], 0
        for token_id in written:
            data = self._vocabulary.token_bytes(token_id)
            if data is None or end + len(data) > length:
                break
            kept.append(token_id)
            end += len(data)
        return kept or spelled

    def _encoded(self, context: bytes, text: bytes) -> list[int]:
        """The tokens of ``text`` behind ``context``; of ``text`` alone where the tokenizer joins the two."""
        try:
            ids = self._vocabulary.encode(context + text)
            start = 0
            for position, token_id in enumerate(ids):
                if start == len(context):
                    return ids[position:]
                start += len(self._vocabulary.token_bytes(token_id) or b"")
            return self._vocabulary.encode(text)
        except (VocabularyError, UnicodeDecodeError):
            return []


def _end_of(tokens: list[bytes]) -> bytes:
    """The last bytes of a text, whole tokens and whole characters."""
    count, length = 0, 0
    while count < len(tokens) and length < CONTEXT:
        count += 1
        length += len(tokens[-count])
    end = b"".join(tokens[len(tokens) - count :])
    try:
        end.decode()
    except UnicodeDecodeError:
        return b""
    return end
