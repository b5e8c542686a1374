"""Sets of property names: named ones and families given by a pattern, or everything but those."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import TYPE_CHECKING, NamedTuple

from grammask.constraints.json_schema.strings import ANY, StringLanguages, Strings, is_spellable

if TYPE_CHECKING:
    from grammask._core import Builder, Expr


class Keys(NamedTuple):
    """The names that are listed or in one of the families; with ``negated`` all the others."""

    names: frozenset[str]
    families: frozenset[Strings]
    negated: bool = False

    def complement(self) -> Keys:
        return Keys(self.names, self.families, not self.negated)

    def union(self, other: Keys) -> Keys:
        """Both sets together.

        A complement together with something is kept as a whole only where it covers everything; the places that ask
        for it (evaluated properties) unite complements only with what they are the complement of.
        """
        if self.negated or other.negated:
            return EVERY_KEY
        return Keys(self.names | other.names, self.families | other.families)


NO_KEY = Keys(frozenset(), frozenset())
EVERY_KEY = Keys(frozenset(), frozenset(), True)


def one(name: str) -> Keys:
    return Keys(frozenset((name,)), frozenset())


def spelled(name: str) -> bytes:
    """A property name as JSON text, in its only spelling."""
    return encode_basestring(name).encode("utf-8")


class KeySpace:
    """Questions about names and families, answered with one Builder."""

    def __init__(self, builder: Builder, languages: StringLanguages) -> None:
        self._builder = builder
        self._languages = languages
        self._holds: dict[tuple[Strings, str], bool] = {}
        self._partitions: dict[frozenset[Strings], list[tuple[Expr, frozenset[Strings]]]] = {}

    @property
    def every(self) -> Expr:
        """The texts of all keys."""
        return self._languages.keys(ANY)

    def contains(self, keys: Keys, name: str) -> bool:
        if name in keys.names:
            return not keys.negated
        if not keys.families:
            return keys.negated
        return any(self._in_family(family, name) for family in keys.families) != keys.negated

    def _in_family(self, family: Strings, name: str) -> bool:
        found = self._holds.get((family, name))
        if found is None:
            found = self._holds[family, name] = self._languages.holds(family, name)
        return found

    def partition(self, families: frozenset[Strings]) -> list[tuple[Expr, frozenset[Strings]]]:
        """The key space cut along the families: (language of key texts, the families that hold in it), never empty."""
        found = self._partitions.get(families)
        if found is None:
            builder = self._builder
            found = [(self._languages.keys(ANY), frozenset[Strings]())]
            for family in sorted(families, key=repr):
                inside = self._languages.keys(family)
                cut = []
                for language, known in found:
                    both = inside if not known and len(found) == 1 else builder.intersection([language, inside])
                    if not builder.is_empty(both):
                        cut.append((both, known | {family}))
                    rest = builder.intersection([language, builder.complement(inside)])
                    if not builder.is_empty(rest):
                        cut.append((rest, known))
                found = cut
            self._partitions[families] = found
        return found

    def any_of(self, languages: list[Expr]) -> Expr:
        return languages[0] if len(languages) == 1 else self._builder.union(languages)

    def without(self, language: Expr, names: list[str]) -> Expr:
        """The key texts of a family except those of some names."""
        if not names:
            return language
        builder = self._builder
        return builder.intersection([language, builder.complement(self.listed(names))])

    def listed(self, names: list[str]) -> Expr:
        """The key texts of some names."""
        builder = self._builder
        return builder.union([builder.literal(spelled(name)) for name in names if name.isascii() or is_spellable(name)])
