"""Arguments that are not one JSON object: tagged parameters and Python keyword arguments.

Both are the object of the tool's schema with other punctuation, so they are built from the same cells and frames as
JSON objects, and every keyword of the schema is enforced: required and dependent names, families of names, counts,
alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from grammask import _core
from grammask.constraints.json_schema import JsonSchema, objects, strings
from grammask.constraints.json_schema import formulas as f
from grammask.constraints.json_schema.formulas import Formula
from grammask.constraints.json_schema.keys import KeySpace
from grammask.constraints.json_schema.lowering import Lowering, Plan
from grammask.constraints.json_schema.objects import Member
from grammask.constraints.json_schema.strings import StringLanguages, Strings
from grammask.constraints.json_schema.whitespace import Whitespace, punctuation
from grammask.constraints.regex import lower_pattern
from grammask.constraints.tools.format import KeywordArguments, Parameters
from grammask.constraints.triggered import up_to_first
from grammask.engine.errors import UnsatisfiableConstraint, UnsupportedConstraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.json_schema.expansion import Expander
    from grammask.constraints.json_schema.reader import Reader
    from grammask.constraints.json_schema.shapes import ShapeAlgebra

Notation = Parameters | KeywordArguments

IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
"""Names of Python keyword arguments. Python's own keywords are among them: models write ``from=...`` all the same."""

OTHERS = ""
"""The entry of ``kinds`` for names that the schema does not list."""

PYTHON_WORDS = {b"null": b"None", b"true": b"True", b"false": b"False"}


@cache
def _byte_vocabulary() -> _core.Vocabulary:
    return _core.Vocabulary([bytes([byte]) for byte in range(256)], [], 256)


def byte_builder() -> Builder:
    """A Builder for questions about texts, whatever the tokens."""
    return _core.Builder(_byte_vocabulary())


class ArgumentsSchema(JsonSchema):
    """The objects of a schema in one of the notations.

    Attributes:
        notation: how they are written.
    """

    def __init__(
        self, schema: Mapping[str, Any], notation: Notation, *, whitespace: Whitespace, **options: Any
    ) -> None:
        if isinstance(notation, KeywordArguments):
            options["escapes"] = "short"  # the escapes that mean the same in JSON and in Python
        super().__init__(schema, whitespace=whitespace, **options)
        self._blanks: Whitespace = whitespace
        self.notation = notation
        self._kinds: dict[str, int] | None = None

    @property
    def kinds(self) -> Mapping[str, int]:
        """The types that the value of each parameter may have, by name, as a bit set of ``formulas``; under ``OTHERS``
        those of parameters that the schema does not list, where it allows them."""
        if self._kinds is None:
            self.lower(byte_builder())
        assert self._kinds is not None
        return self._kinds

    def _string_languages(self, builder: Builder, reader: Reader) -> StringLanguages:
        if isinstance(self.notation, KeywordArguments):
            return _PythonStrings(
                builder, reader.pattern_pointers, literal_spelling="json-canonical", value_spelling="json-canonical"
            )
        return super()._string_languages(builder, reader)

    def _new_lowering(
        self, builder: Builder, expander: Expander, algebra: ShapeAlgebra, keys: KeySpace, languages: StringLanguages
    ) -> Lowering:
        kind = _KeywordLowering if isinstance(self.notation, KeywordArguments) else _ParameterLowering
        lowering = kind(
            builder,
            expander,
            algebra,
            keys,
            languages,
            punctuation(self._blanks, builder),
            ordered=self.property_order == "schema",
            policy=f"{'python' if kind is _KeywordLowering else 'json'}/{self.whitespace}/{self.escapes}",
            spelling=self.numbers,
        )
        lowering.notation = self.notation
        lowering.kinds = self._kinds = {}
        return lowering


class _PythonStrings(StringLanguages):
    """Strings as Python writes them: in double quotes, or in single quotes if they hold none."""

    def value(self, tree: Strings) -> Expr:
        builder = self._builder
        finite = self.finite(tree)
        content = self.content(tree if finite is None else strings.Only(finite), "json-canonical")
        text = builder.repeat(builder.chars(strings.ALL_CHARACTERS), 0, None)
        quote = builder.literal(b"'")
        unquoted = builder.intersection([content, builder.complement(builder.concat([text, quote, text]))])
        return builder.union([self._quoted(content), builder.concat([quote, unquoted, quote])])


class _BareKeys(KeySpace):
    """Names as they stand outside JSON: without quotes, limited to those that the notation can spell."""

    def __init__(self, builder: Builder, languages: StringLanguages, spellable: Expr) -> None:
        super().__init__(builder, _BareNames(languages, builder, spellable))
        self.spellable = spellable

    def without(self, language: Expr, names: list[str]) -> Expr:
        builder = self._builder
        listed = builder.union([builder.literal(name.encode()) for name in names])
        return builder.intersection([language, builder.complement(listed)])


class _BareNames(StringLanguages):
    def __init__(self, languages: StringLanguages, builder: Builder, spellable: Expr) -> None:
        super().__init__(builder, languages._pattern_pointers, literal_spelling="utf8", value_spelling="utf8")
        self._spellable = spellable

    def keys(self, tree: Strings) -> Expr:
        return self._builder.intersection([self.content(tree, "utf8"), self._spellable])


class _ArgumentsLowering(Lowering):
    """Lowers all values as usual, and the root as arguments."""

    notation: Notation
    kinds: dict[str, int]
    _possible: set[Formula]

    def expression(self, root: Formula) -> Expr:
        super().expression(root)
        builder = self._builder
        bare = _BareKeys(builder, self._languages, self._spellable())
        frames = [
            frame
            for cell in self._expander.shape(root).objects
            for frame in objects.frames(cell, self._expander.formulas, self._algebra.objects, bare)
        ]
        for frame in frames:
            for member in frame.members:
                kinds = self.kinds.get(member.name or OTHERS, 0)
                for formula, _ in member.values:
                    kinds |= self._expander.shape(formula).types()
                self.kinds[member.name or OTHERS] = kinds
        built = []
        for frame in frames:
            members = [
                (
                    self._key(member, bare),
                    member.required,
                    [(self._argument(v, member), bits) for v, bits in member.values],
                )
                for member in frame.members
            ]
            built.append(
                builder.object(
                    members,
                    open=builder.epsilon,
                    colon=builder.epsilon,
                    comma=self._between(),
                    close=builder.literal(self.notation.end.encode()),
                    min_members=frame.low,
                    max_members=frame.high,
                    ordered=self._ordered,
                    obligations=frame.obligations,
                    dependencies=frame.implied,
                )
            )
        whole = builder.union(built)
        if builder.is_empty(whole):
            raise UnsatisfiableConstraint("no arguments satisfy the schema", pointer="")
        return whole

    def _productive(self, order: list[Formula]) -> set[Formula]:
        self._possible = super()._productive(order)
        return self._possible

    def _key(self, member: Member, bare: _BareKeys) -> bytes | Expr:
        builder, (before, after) = self._builder, self._around_key()
        if member.name is None:
            assert member.language is not None
            return builder.concat([builder.literal(before), member.language, builder.literal(after)])
        name = member.name.encode()
        if not builder.matches(bare.spellable, name):
            raise UnsupportedConstraint(
                f"the parameter {member.name!r} cannot be spelled in this format of tool calls",
                pointer="/properties",
                hint="rename the parameter, or use a format with JSON arguments",
            )
        return before + name + after

    def _argument(self, formula: Formula, member: Member) -> Expr:
        """The value of a parameter with all that belongs to it."""
        if formula not in self._possible:
            return self._builder.empty
        if formula not in self._plans:
            self._plans[formula] = self._plan(formula)
        return self._builder.call(self._value_text(formula, self.kinds[member.name or OTHERS]))

    def _spellable(self) -> Expr:
        raise NotImplementedError

    def _around_key(self) -> tuple[bytes, bytes]:
        raise NotImplementedError

    def _between(self) -> Expr:
        raise NotImplementedError

    def _value_text(self, formula: Formula, kinds: int) -> Expr:
        raise NotImplementedError


class _ParameterLowering(_ArgumentsLowering):
    notation: Parameters

    def _spellable(self) -> Expr:
        """Names of one line without the character that begins what follows the name."""
        builder = self._builder
        text = builder.repeat(builder.chars(strings.ALL_CHARACTERS), 0, None)
        line = builder.repeat(builder.chars([(0x20, 0x7E), (0xA0, 0x10FFFF)]), 1, None)
        stop = builder.literal(self.notation.between[0].encode())
        return builder.intersection([line, builder.complement(builder.concat([text, stop, text]))])

    def _around_key(self) -> tuple[bytes, bytes]:
        return self.notation.open.encode(), self.notation.between.encode()

    def _between(self) -> Expr:
        return self._builder.epsilon

    def _value_text(self, formula: Formula, kinds: int) -> Expr:
        builder, notation = self._builder, self.notation
        close = builder.literal(notation.close.encode())
        parts = []
        tree = self._plans[formula].strings
        if tree != strings.NONE:
            raw = self._languages.content(tree, "utf8")
            if kinds != f.STRING:
                raw = builder.intersection([raw, builder.complement(self._json_beginnings(kinds))])
            parts.append(up_to_first(raw, close, [close], builder))
        if kinds != f.STRING:
            parts.append(builder.concat([self._body(formula, self._possible), close]))
        return builder.concat([builder.union(parts), builder.literal(notation.after.encode())])

    def _json_beginnings(self, kinds: int) -> Expr:
        """Texts that a parameter of several types takes for JSON; ``is_json`` is the same for the reader."""
        builder = self._builder
        text = builder.repeat(builder.chars(strings.ALL_CHARACTERS), 0, None)
        found = [builder.concat([builder.literal(mark), text]) for mark in _marks(kinds)]
        found += [builder.literal(word) for word in _words(kinds)]
        if kinds & f.NUMBER:
            found.append(builder.decimal())
        return builder.union(found)


class _KeywordLowering(_ArgumentsLowering):
    notation: KeywordArguments

    def _plan(self, formula: Formula) -> Plan:
        plan = super()._plan(formula)
        return plan._replace(words=tuple([PYTHON_WORDS[word] for word in plan.words]))

    def _spellable(self) -> Expr:
        return lower_pattern(IDENTIFIER, self._builder, search=False)

    def _around_key(self) -> tuple[bytes, bytes]:
        return b"", b"="

    def _between(self) -> Expr:
        return self._punctuation.comma

    def _value_text(self, formula: Formula, kinds: int) -> Expr:
        return self._body(formula, self._possible)


def _marks(kinds: int) -> list[bytes]:
    return [b'"'] + [b"{"] * bool(kinds & f.OBJECT) + [b"["] * bool(kinds & f.ARRAY)


def _words(kinds: int) -> list[bytes]:
    return [b"null"] * bool(kinds & f.NULL) + [b"true", b"false"] * bool(kinds & f.BOOLEAN)


def is_json(text: str, kinds: int, is_number: bool) -> bool:
    """Whether the text of a parameter of these kinds is JSON and not a raw string."""
    if not kinds & f.STRING:
        return True
    if kinds == f.STRING:
        return False
    data = text.encode()
    return data.startswith(tuple(_marks(kinds))) or data in _words(kinds) or bool(kinds & f.NUMBER and is_number)
