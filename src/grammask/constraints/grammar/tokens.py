"""Special tokens that a grammar names: from names to ids, and "any other"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, Union

from grammask.constraints.grammar.nodes import OtherToken, Token
from grammask.constraints.grammar.source import Source
from grammask.engine.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.engine.vocabulary import Vocabulary

Tokens: TypeAlias = Union["Vocabulary", Mapping[str, int], Callable[[str], "int | None"]]
"""Where the ids of special tokens come from: a vocabulary, a mapping from name to id, or a function from name to id or
None."""

ANY_CHARACTER = ((0, 0xD7FF), (0xE000, 0x10FFFF))

_HINT = "give tokens=vocabulary or tokens={name: id}; what the vocabulary has as ordinary text is written as a string"


class SpecialTokens:
    """What a grammar may know about the special tokens of a vocabulary."""

    def __init__(self, tokens: Tokens | None) -> None:
        self._find: Callable[[str], int | None] | None = None
        self._special: frozenset[int] | None = None
        self._ends: frozenset[int] = frozenset()
        if tokens is None:
            return
        if isinstance(tokens, Mapping):
            self._find = tokens.get
            self._special = frozenset(tokens.values())
        elif callable(tokens):
            self._find = tokens
        else:
            names = tokens.special_tokens
            self._find = names.get
            self._special = frozenset(names.values())
            self._ends = frozenset(tokens.eos_token_ids)

    def id_of(self, token: Token, source: Source) -> int:
        """The id of a token in the text.

        Raises:
            UnsupportedConstraint: nothing knows the name, or the id is that of an ordinary token: its text can be
                spelled by other tokens as well, so write the text.
        """
        if token.token_id is not None:
            if self._special is not None and token.token_id not in self._special:
                raise source.error(
                    token.offset,
                    f"{token.token_id} is not the id of a special token",
                    hint="an ordinary token is matched by its text, in whatever tokens: write the text",
                    kind=UnsupportedConstraint,
                )
            return token.token_id
        assert token.name is not None
        found = None if self._find is None else self._find(token.name)
        if found is None:
            reason = "no special tokens are known" if self._find is None else "it is not among the special tokens"
            raise source.error(
                token.offset,
                f"the token {token.name} cannot be found: {reason}",
                hint=_HINT,
                kind=UnsupportedConstraint,
            )
        return found

    def any_other(self, node: OtherToken, source: Source, builder: Builder) -> Expr:
        """A character of text, or a special token that is neither the excluded one nor an end of text.

        Raises:
            UnsupportedConstraint: which tokens are special is unknown, or the excluded one is not special.
        """
        token = node.excluded
        if self._special is None:
            message = "a negated token needs to know which tokens are special"
            raise source.error(token.offset, message, hint=_HINT, kind=UnsupportedConstraint)
        excluded = self.id_of(token, source)
        others = sorted(self._special - self._ends - {excluded})
        return builder.union([builder.chars(ANY_CHARACTER), *map(builder.special_token, others)])
