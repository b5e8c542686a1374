"""An engine's tokens: the vocabulary of its tokenizer, and whether it is still what a constraint was compiled for.

Engines change tokenizers: tokens are added after loading, an adapter brings its own, logits are padded to a round
number of rows. A mask for other tokens would be silently wrong, so every integration asks here first.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from grammask.engine.vocabulary import Vocabulary, VocabularyError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_made: MutableMapping[Any, tuple[tuple[Any, ...], Vocabulary]] = weakref.WeakKeyDictionary()


class VocabularyMismatch(VocabularyError):
    """A constraint was compiled for other tokens than the engine has."""


def vocabulary_of(tokenizer: Any, size: int | None = None, eos_token_ids: Iterable[int] | None = None) -> Vocabulary:
    """The vocabulary of an engine's tokenizer, made once per tokenizer and made anew when tokens were added to it.

    Args:
        tokenizer: of transformers.
        size: columns of the engine's logits; None is the size of the tokenizer.
        eos_token_ids: every id at which the engine ends an output, beside the tokenizer's own.

    Raises:
        VocabularyMismatch: the logits have fewer columns than there are tokens.
        VocabularyError: the tokens have no exact bytes.
    """
    own = getattr(tokenizer, "eos_token_id", None)
    ends = sorted({int(token) for token in (*(eos_token_ids or ()), own) if token is not None})
    state = (size, tuple(ends), tuple(sorted(tokenizer.get_added_vocab().items())))
    known = _made.get(tokenizer)
    if known is not None and known[0] == state:
        return known[1]
    if size is not None and len(tokenizer) > size:
        raise VocabularyMismatch(
            f"the tokenizer has {len(tokenizer)} tokens, the model's logits only {size} columns",
            hint="after adding tokens, resize the model's embeddings (model.resize_token_embeddings(len(tokenizer)))",
        )
    vocabulary = Vocabulary.from_transformers(tokenizer, size, eos_token_ids=ends or None)
    _made[tokenizer] = (state, vocabulary)
    return vocabulary


def check_columns(vocabulary: Vocabulary, columns: int) -> None:
    """Checks that the engine's logits have a column for every token of a vocabulary. More columns are padding.

    Raises:
        VocabularyMismatch: they have not.
    """
    if columns >= vocabulary.size:
        return
    beyond = [token for token in range(columns, vocabulary.size) if vocabulary.token_bytes(token) is not None]
    special = [token for token in vocabulary.special_tokens.values() if token >= columns]
    if beyond or special:
        raise VocabularyMismatch(
            f"the constraint was compiled for {vocabulary.size} tokens, the engine's logits have {columns} columns: "
            f"token {min(beyond + special)} has none",
            hint="compile the constraint for the tokenizer and the size of this very model",
        )


def check_tokenizer(vocabulary: Vocabulary, tokenizer: Any) -> None:
    """Checks that a tokenizer has exactly the tokens of a vocabulary.

    Raises:
        VocabularyMismatch: names the first token that differs.
    """
    theirs = vocabulary_of(tokenizer, max(vocabulary.size, len(tokenizer)), vocabulary.eos_token_ids)
    for token in range(max(theirs.size, vocabulary.size)):
        ours = vocabulary.token_bytes(token) if token < vocabulary.size else None
        if ours != theirs.token_bytes(token):
            raise VocabularyMismatch(
                f"token {token} is {ours!r} in the constraint's vocabulary and {theirs.token_bytes(token)!r} in the "
                "tokenizer",
                hint="tokens were added or replaced since; compile the constraint for this tokenizer",
            )
    if vocabulary.special_tokens != theirs.special_tokens:
        names = sorted(set(vocabulary.special_tokens.items()) ^ set(theirs.special_tokens.items()))
        raise VocabularyMismatch(
            f"the special tokens differ: {names[:4]}",
            hint="tokens were added or replaced since; compile the constraint for this tokenizer",
        )
