"""The JSON Schema constraint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from grammask.constraints.base import Constraint
from grammask.constraints.json_schema import strings
from grammask.constraints.json_schema import whitespace as blanks
from grammask.constraints.json_schema.arrays import ArrayAlgebra
from grammask.constraints.json_schema.documents import Documents, DynamicScopeNeeded
from grammask.constraints.json_schema.expansion import AnnotationsNeeded, Expander, TextsNeeded
from grammask.constraints.json_schema.formats import FormatAssertion
from grammask.constraints.json_schema.formulas import STRING, Formulas
from grammask.constraints.json_schema.indentation import IndentedLowering
from grammask.constraints.json_schema.keys import KeySpace
from grammask.constraints.json_schema.lowering import Lowering
from grammask.constraints.json_schema.numbers import NumberSpelling
from grammask.constraints.json_schema.object_cells import ObjectAlgebra
from grammask.constraints.json_schema.reader import Reader
from grammask.constraints.json_schema.shapes import ShapeAlgebra
from grammask.constraints.json_schema.strings import StringLanguages
from grammask.constraints.json_schema.whitespace import Whitespace
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Spelling
    from grammask.constraints.json_schema.explain import Entry

PropertyOrder = Literal["schema", "any"]
Escapes = Literal["short", "values", "all"]

_SPELLINGS: dict[Escapes, tuple[Spelling, Spelling]] = {
    "short": ("json-canonical", "json-canonical"),
    "values": ("json-canonical", "json"),
    "all": ("json", "json"),
}


class JsonSchema(Constraint):
    """JSON texts of the values that a schema accepts.

    Args:
        schema: the schema as Python objects, a boolean, or its JSON text. Drafts 4, 6, 7, 2019-09 and 2020-12 by
            ``$schema``; without it 2020-12, with the older spellings understood.
        property_order: "schema" (as written in the schema, further properties last) or "any".
        whitespace: "flexible" (blanks wherever JSON allows them, a bounded number in a row), "compact" (none), "python"
            (one after each comma and colon, as ``json.dumps`` writes), or a number: the layout of
            ``json.dumps(indent=...)``, for values nested at most 16 levels deep.
        format_assertion: whether known formats are enforced; "all" adds those that schemas in use name loosely
            (``byte``). Unknown formats are annotations.
        formats: formats of one's own: name -> an ECMA-262 pattern that the whole string matches. They are enforced like
            those that are known, before which they go, and without ``format_assertion`` they are annotations as well.
        registry: URI -> schema, for references to other documents. Nothing is fetched from the network.
        escapes: which spellings of characters inside strings are allowed: "values" (every legal one in free strings,
            the shortest in keys and constants), "short" (the shortest everywhere), "all" (every legal one, also in
            constants; keys keep their shortest).
        numbers: "bounded" (every number text ends: a limited number of digits, and one digit before the point of an
            exponent) or "any" (as many zeros and digits as JSON allows).
    """

    pointer = ""

    def __init__(
        self,
        schema: Mapping[str, Any] | bool | str,
        *,
        property_order: PropertyOrder = "schema",
        whitespace: Whitespace | int = "flexible",
        format_assertion: FormatAssertion = True,
        formats: Mapping[str, str] | None = None,
        registry: Mapping[str, Any] | None = None,
        escapes: Escapes = "values",
        numbers: NumberSpelling = "bounded",
    ) -> None:
        if property_order not in ("schema", "any"):
            raise ValueError(f'property_order is "schema" or "any", not {property_order!r}')
        blanks.check(whitespace)
        if escapes not in _SPELLINGS:
            raise ValueError(f"escapes is one of {', '.join(_SPELLINGS)}, not {escapes!r}")
        if numbers not in ("bounded", "any"):
            raise ValueError(f'numbers is "bounded" or "any", not {numbers!r}')
        for name, pattern in (formats or {}).items():
            if not isinstance(pattern, str):
                raise TypeError(f"formats[{name!r}] is the text of a pattern, not {type(pattern).__name__}")
        self.schema = parse_schema(schema) if isinstance(schema, str) else schema
        self.property_order: PropertyOrder = property_order
        self.whitespace: Whitespace | int = whitespace
        self.format_assertion = format_assertion
        self.formats = dict(formats or {})
        self.registry = registry
        self.escapes: Escapes = escapes
        self.numbers: NumberSpelling = numbers

    def lower(self, builder: Builder) -> Expr:
        """The expression of the schema's JSON texts.

        Raises:
            ConstraintSyntaxError: the schema is malformed.
            UnsupportedConstraint: it asks for something that cannot be enforced exactly.
            UnsatisfiableConstraint: it accepts nothing.
            ConstraintTooLarge: a limit was reached.
        """
        track_scope = annotations = by_text = False
        while True:
            try:
                return self._lower(builder, track_scope=track_scope, annotations=annotations, by_text=by_text)
            except DynamicScopeNeeded:
                track_scope = True
            except AnnotationsNeeded:
                annotations = True
            except TextsNeeded:
                by_text = True
            except RecursionError:
                raise _too_deep() from None
            except ConstraintTooLarge as error:
                if error.pointer is not None:
                    raise
                raise ConstraintTooLarge(error.message, pointer="", hint=error.hint) from error

    def _lower(self, builder: Builder, *, track_scope: bool, annotations: bool, by_text: bool) -> Expr:
        formulas = Formulas()
        array_algebra = ArrayAlgebra(formulas)
        reader = Reader(
            Documents(self.schema, self.registry, track_scope),
            formulas,
            format_assertion=self.format_assertion,
            own_formats=self.formats,
            any_array=array_algebra.any,
            names=lambda formula: expander.shape(formula, STRING).strings,
            by_text=by_text,
        )
        languages = self._string_languages(builder, reader)
        keys = KeySpace(builder, languages)
        algebra = ShapeAlgebra(formulas, ObjectAlgebra(formulas, keys), array_algebra)
        expander = Expander(reader, algebra, languages, annotations=annotations, by_text=by_text)
        lowering = self._new_lowering(builder, expander, algebra, keys, languages)
        try:
            return lowering.expression(reader.root())
        finally:
            reader.names = None  # it refers to the expander: with this cycle the tables would wait for the collector
            strings.forget()

    def _string_languages(self, builder: Builder, reader: Reader) -> StringLanguages:
        """How strings are spelled; constraints that spell the same values in another notation replace it."""
        literal, value = _SPELLINGS[self.escapes]
        return StringLanguages(builder, reader.pattern_pointers, literal_spelling=literal, value_spelling=value)

    def _new_lowering(
        self, builder: Builder, expander: Expander, algebra: ShapeAlgebra, keys: KeySpace, languages: StringLanguages
    ) -> Lowering:
        """What turns formulas into expressions; constraints that spell values in another notation replace it."""
        indent = self.whitespace if isinstance(self.whitespace, int) else None
        kind = Lowering if indent is None else IndentedLowering
        lowering = kind(
            builder,
            expander,
            algebra,
            keys,
            languages,
            blanks.punctuation("compact" if isinstance(self.whitespace, int) else self.whitespace, builder),
            ordered=self.property_order == "schema",
            policy=f"{self.whitespace}/{self.escapes}",
            spelling=self.numbers,
        )
        if isinstance(lowering, IndentedLowering):
            lowering.indent = indent or 0
        return lowering

    def report(self) -> list[Entry]:
        """What becomes of each keyword of the schema: enforced, annotation or refused."""
        from grammask.constraints.json_schema.explain import explain

        return explain(self)

    def __repr__(self) -> str:
        return f"JsonSchema({self.schema!r})"


def parse_schema(text: str) -> Any:
    """A schema from its JSON text, numbers kept exact.

    Raises:
        ConstraintSyntaxError: not JSON.
        ConstraintTooLarge: nested too deeply for the JSON parser.
    """
    try:
        return json.loads(text, parse_float=Decimal)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise ConstraintTooLarge(
                "the schema holds a whole number of thousands of digits", pointer="", hint="shorten it"
            ) from None
        line = getattr(error, "lineno", None)
        column = getattr(error, "colno", None)
        raise ConstraintSyntaxError(f"the schema is not JSON: {error}", line=line, column=column) from None


def _too_deep() -> ConstraintTooLarge:
    return ConstraintTooLarge(
        "the schema is nested too deeply",
        pointer="",
        hint="give nested subschemas a name in $defs, and refer to it",
    )
