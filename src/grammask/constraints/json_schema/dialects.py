"""Which keywords each draft of JSON Schema knows, and how it reads them.

Sources: draft-zyp-json-schema-04, draft-wright-json-schema-01 (draft 6), draft-handrews-json-schema-01 (draft 7),
draft-handrews-json-schema-02 (2019-09), draft-bhutton-json-schema-01 (2020-12), each with its validation companion.
"""

from __future__ import annotations

from dataclasses import dataclass

REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"}) | REFERENCES
"""Applicators that apply to the same instance location, and references."""

UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})

APPLICATORS = IN_PLACE | UNEVALUATED
"""Without these, a schema says what its own keywords say."""

NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
STRING = frozenset({"minLength", "maxLength", "pattern", "format"})
ARRAY = frozenset(
    {"items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains"}
    | {"minItems", "maxItems", "uniqueItems"}
)
MENTIONED = "(mentioned)"
"""Not a keyword of any draft: names that a condition asks for, which gives them a place in the order of properties."""
ABSENT = "(absent)"
"""Not a keyword of any draft: names that the object does not have. Like all negations it gives them no place."""
OBJECT = frozenset(
    {"properties", "patternProperties", "additionalProperties", "propertyNames", "required"}
    | {"minProperties", "maxProperties", "dependentRequired", MENTIONED, ABSENT}
)

_COMMON = (
    frozenset({"type", "enum", "allOf", "anyOf", "oneOf", "not", "$ref", "dependencies"})
    | (ARRAY - {"prefixItems", "contains", "minContains", "maxContains"})
    | (OBJECT - {"propertyNames", "dependentRequired", MENTIONED, ABSENT})
    | STRING
    | NUMBER
)
_DRAFT6 = _COMMON | {"const", "contains", "propertyNames"}
_DRAFT7 = _DRAFT6 | {"if", "then", "else"}
_DRAFT2019 = _DRAFT7 | UNEVALUATED
_DRAFT2019 |= {"$recursiveRef", "dependentRequired", "dependentSchemas", "minContains", "maxContains"}
_DRAFT2020 = (_DRAFT2019 - {"$recursiveRef", "additionalItems"}) | {"$dynamicRef", "prefixItems"}

SCHEMA_POSITIONS = frozenset(
    {"additionalProperties", "additionalItems", "items", "contains", "propertyNames", "not", "if", "then", "else"}
    | {"unevaluatedProperties", "unevaluatedItems", "contentSchema"}
)
"""Keywords whose value is a schema (``items`` may also be a list of schemas)."""
SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"})


@dataclass(frozen=True, eq=False)
class Dialect:
    """How one draft is read.

    Attributes:
        name: for messages and reports.
        keywords: those that assert something; every other keyword is an annotation.
        id_keyword: ``id`` in draft 4, ``$id`` later.
        reference_alone: the siblings of ``$ref`` are ignored (up to draft 7).
        anchors_in_id: ``"$id": "#name"`` declares an anchor (up to draft 7).
        plain_integers: 1.0 is no integer (draft 4 defines integers by their spelling).
        contains_evaluates: items matched by ``contains`` count as evaluated (2020-12).
    """

    name: str
    keywords: frozenset[str]
    id_keyword: str = "$id"
    reference_alone: bool = False
    anchors_in_id: bool = False
    plain_integers: bool = False
    contains_evaluates: bool = False

    def annotations_only(self) -> Dialect:
        """The same draft without its validation vocabulary (a meta-schema may leave it out)."""
        asserting = (
            NUMBER | (STRING - {"format"}) | {"type", "enum", "const", "required", "minProperties", "maxProperties"}
        )
        asserting |= {"dependentRequired", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains"}
        return Dialect(
            self.name, self.keywords - asserting, self.id_keyword, contains_evaluates=self.contains_evaluates
        )


DRAFT4 = Dialect("draft 4", _COMMON, "id", True, True, True)
DRAFT6 = Dialect("draft 6", _DRAFT6, "$id", True, True)
DRAFT7 = Dialect("draft 7", _DRAFT7, "$id", True, True)
DRAFT2019 = Dialect("2019-09", _DRAFT2019)
DRAFT2020 = Dialect("2020-12", _DRAFT2020, contains_evaluates=True)
DEFAULT = Dialect(
    "2020-12 with older spellings", _DRAFT2020 | {"dependencies", "additionalItems"}, contains_evaluates=True
)
"""What a schema without ``$schema`` is read as."""

_BY_URI = {
    "http://json-schema.org/draft-04/schema": DRAFT4,
    "http://json-schema.org/draft-06/schema": DRAFT6,
    "http://json-schema.org/draft-07/schema": DRAFT7,
    "https://json-schema.org/draft/2019-09/schema": DRAFT2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT2020,
}


def by_uri(uri: object) -> Dialect | None:
    """The dialect that ``$schema`` names, or None if it is not one of the published drafts."""
    if not isinstance(uri, str):
        return None
    uri = uri.rstrip("#")
    return _BY_URI.get(uri) or _BY_URI.get(_swap_scheme(uri))


def _swap_scheme(uri: str) -> str:
    """The same address with http for https or the other way round: both are written in practice."""
    if uri.startswith("http://"):
        return "https://" + uri[7:]
    return "http://" + uri[8:] if uri.startswith("https://") else uri
