"""Special tokens that a grammar names: from names to ids, and "any other"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammask.constraints.grammar.nodes import OtherToken, Token
from grammask.constraints.grammar.source import Source
from grammask.engine.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.engine.vocabulary import Vocabulary

ANY_CHARACTER = ((0, 0xD7FF), (0xE000, 0x10FFFF))

_HINT = "what the vocabulary has as ordinary text is written as a string"


class SpecialTokens:
    """The special tokens of the vocabulary that a grammar is lowered for, None where no names are known."""

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._names = {} if vocabulary is None else vocabulary.special_tokens
        self._special = frozenset(self._names.values())
        self._ends = frozenset(() if vocabulary is None else vocabulary.eos_token_ids)

    def id_of(self, token: Token, source: Source) -> int:
        """The id of a token in the text.

        Raises:
            UnsupportedConstraint: nothing knows the name, or the id is that of an ordinary token: its text can be
                spelled by other tokens as well, so write the text.
        """
        if token.token_id is not None:
            if token.token_id not in self._special:
                raise source.error(
                    token.offset,
                    f"{token.token_id} is not the id of a special token",
                    hint="an ordinary token is matched by its text, in whatever tokens: write the text",
                    kind=UnsupportedConstraint,
                )
            return token.token_id
        assert token.name is not None
        found = self._names.get(token.name)
        if found is None:
            raise source.error(
                token.offset,
                f"the vocabulary has no special token {token.name}",
                hint=_HINT,
                kind=UnsupportedConstraint,
            )
        return found

    def any_other(self, node: OtherToken, source: Source, builder: Builder) -> Expr:
        """A character of text, or a special token that is neither the excluded one nor an end of text.

        Raises:
            UnsupportedConstraint: the excluded token is not special.
        """
        excluded = self.id_of(node.excluded, source)
        others = sorted(self._special - self._ends - {excluded})
        return builder.union([builder.chars(ANY_CHARACTER), *map(builder.special_token, others)])
