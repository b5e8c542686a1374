"""What becomes of each keyword of a schema: behind ``grammask explain`` and ``CompiledConstraint.report()``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from grammask.constraints.json_schema import dialects, formats
from grammask.constraints.json_schema.dialects import Dialect
from grammask.constraints.json_schema.documents import Documents, Resource, escape
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintError, ConstraintTooLarge

if TYPE_CHECKING:
    from grammask.constraints.json_schema.constraint import JsonSchema

Status = Literal["enforced", "annotation", "refused"]

SECONDS = 30.0
"""How long a schema is compiled to see what it fails with."""
MAX_ENTRIES = 300_000
MAX_POINTER = 10_000
"""Schemas given as Python objects may hold themselves, or the same object in very many places."""


class Entry(NamedTuple):
    """One occurrence of a keyword.

    Attributes:
        pointer: JSON pointer of the schema that holds the keyword.
        keyword: its name.
        status: "enforced", "annotation" (nothing is enforced, by the specification) or "refused" (compiling fails
        here). how: in a few words, how it is enforced, or why not.
    """

    pointer: str
    keyword: str
    status: Status
    how: str


_HOW = {
    "type": "only texts of these types",
    "enum": "the listed values, each in every spelling of its numbers",
    "const": "the one value",
    "properties": "members of the object frame",
    "patternProperties": "families of keys, cut where they overlap",
    "additionalProperties": "the keys that no other keyword names",
    "propertyNames": "a language of key texts",
    "required": "the object cannot close before",
    "minProperties": "a count in the object frame",
    "maxProperties": "a count in the object frame",
    "dependentRequired": "a dependency in the object frame",
    "dependentSchemas": "cases: without the key, or with it and the schema",
    "dependencies": "as dependentRequired or dependentSchemas",
    "unevaluatedProperties": "the keys that no accepting subschema covers, case by case",
    "items": "a language over items",
    "prefixItems": "a language over items",
    "additionalItems": "a language over items",
    "contains": "a count of items that satisfy the schema",
    "minContains": "a count of items that satisfy the schema",
    "maxContains": "a count of items that satisfy the schema",
    "minItems": "a count of items",
    "maxItems": "a count of items",
    "uniqueItems": "the items seen are remembered and excluded",
    "unevaluatedItems": "the items that no accepting subschema covers, case by case",
    "minLength": "a count of code points",
    "maxLength": "a count of code points",
    "pattern": "a regular language, found anywhere in the string",
    "minimum": "an automaton over decimal digits",
    "maximum": "an automaton over decimal digits",
    "exclusiveMinimum": "an automaton over decimal digits",
    "exclusiveMaximum": "an automaton over decimal digits",
    "multipleOf": "remainders over decimal digits, exact",
    "allOf": "intersection",
    "anyOf": "union",
    "oneOf": "union, less the overlaps that cannot be excluded",
    "not": "complement",
    "if": "two cases: if and then, or else without if",
    "then": "see if",
    "else": "see if",
    "$ref": "the schema referred to",
    "$dynamicRef": "the schema referred to in the dynamic scope",
    "$recursiveRef": "the schema referred to in the dynamic scope",
}

_NEEDS = {
    "then": ("if",),
    "else": ("if",),
    "minContains": ("contains",),
    "maxContains": ("contains",),
}

_DESCRIBES = {
    "title": "describes only",
    "description": "describes only",
    "default": "describes only",
    "examples": "describes only",
    "deprecated": "describes only",
    "readOnly": "describes only",
    "writeOnly": "describes only",
    "$comment": "describes only",
    "contentEncoding": "says how to decode the string; what is inside is not enforced",
    "contentMediaType": "says what the string holds; what is inside is not enforced",
    "contentSchema": "describes the decoded string; what is inside is not enforced",
}

_STRUCTURE = frozenset({"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})


def explain(
    schema: Mapping[str, Any] | bool | str | JsonSchema, *, registry: Mapping[str, Any] | None = None
) -> list[Entry]:
    """Every keyword of a schema with what becomes of it, in the order written.

    Args:
        schema: as for ``JsonSchema``, or one (then with its options).
        registry: URI -> schema, for references to other documents.

    Raises:
        ConstraintTooLarge: more than 300,000 keywords.
    """
    from grammask.constraints.json_schema.constraint import JsonSchema

    constraint = schema if isinstance(schema, JsonSchema) else JsonSchema(schema, registry=registry)
    documents = Documents(constraint.schema, constraint.registry)
    entries: list[Entry] = []
    waiting: list[tuple[Any, Resource, str]] = [(constraint.schema, documents.root, "")]
    while waiting:
        here, resource, pointer = waiting.pop()
        if not isinstance(here, dict):
            continue
        if len(entries) > MAX_ENTRIES or len(pointer) > MAX_POINTER:
            raise ConstraintTooLarge(
                f"more than {MAX_ENTRIES} keywords to report on, or too deep a place",
                pointer=pointer,
                hint="report on a part of the schema",
            )
        resource = documents.nested(here, resource, pointer)
        children: list[tuple[Any, Resource, str]] = []
        for keyword, value in here.items():
            entries.append(_entry(here, keyword, resource.dialect, pointer, constraint))
            if keyword in dialects.SCHEMA_MAPS and isinstance(value, dict):
                base = f"{pointer}/{keyword}"
                named = [(name, sub) for name, sub in value.items() if isinstance(name, str)]
                children += [(sub, resource, f"{base}/{escape(name)}") for name, sub in named]
            elif keyword in dialects.SCHEMA_LISTS and isinstance(value, list):
                children += [(sub, resource, f"{pointer}/{keyword}/{i}") for i, sub in enumerate(value)]
            elif keyword in dialects.SCHEMA_POSITIONS:
                children.append((value, resource, f"{pointer}/{keyword}"))
        waiting += reversed(children)
    problem = _problem(constraint)
    return entries if problem is None else _with_problem(entries, problem)


def _entry(schema: dict[str, Any], keyword: str, dialect: Dialect, pointer: str, constraint: JsonSchema) -> Entry:
    if dialect.reference_alone and "$ref" in schema and keyword != "$ref":
        return Entry(pointer, keyword, "annotation", f"{dialect.name} ignores what stands beside $ref")
    if keyword in ("$defs", "definitions"):
        return Entry(pointer, keyword, "annotation", "enforced where referred to")
    if keyword in _STRUCTURE:
        return Entry(pointer, keyword, "annotation", "names the schema or its dialect")
    if keyword not in dialect.keywords:
        known = any(keyword in other for other in (dialects.DEFAULT.keywords, dialects.DRAFT2019.keywords))
        return Entry(pointer, keyword, "annotation", f"no keyword of {dialect.name}" if known else _unknown(keyword))
    if keyword == "format":
        name = schema[keyword]
        if not constraint.format_assertion:
            return Entry(pointer, keyword, "annotation", "formats are not asserted (format_assertion=False)")
        if isinstance(name, str) and name in constraint.formats:
            return Entry(pointer, keyword, "enforced", f"the pattern given for {name}")
        if formats.is_known(name, constraint.format_assertion):
            return Entry(pointer, keyword, "enforced", f"the regular language of {name}")
        if isinstance(name, str) and name in formats.INTEGER_RANGES:
            return Entry(pointer, keyword, "enforced", f"whole numbers in the range of {name}")
        if formats.is_known(name, "all"):
            return Entry(pointer, keyword, "annotation", f'{name} is enforced with format_assertion="all" only')
        return Entry(pointer, keyword, "annotation", f"the format {name!r} is not one that is enforced")
    if any(partner not in schema for partner in _NEEDS.get(keyword, ())):
        return Entry(pointer, keyword, "annotation", f"means nothing without {_NEEDS[keyword][0]}")
    if keyword == "if" and "then" not in schema and "else" not in schema:
        return Entry(pointer, keyword, "annotation", "means nothing without then or else")
    if keyword == "additionalItems" and not isinstance(schema.get("items"), list):
        return Entry(pointer, keyword, "annotation", "means nothing unless items is a list")
    return Entry(pointer, keyword, "enforced", _HOW.get(keyword, "enforced"))


def _unknown(keyword: str) -> str:
    """What to say of a keyword that no draft asserts: a slip of the pen would otherwise go unnoticed."""
    if keyword in _DESCRIBES:
        return _DESCRIBES[keyword]
    candidates = [name for name in (dialects.DEFAULT.keywords | dialects.DRAFT2019.keywords) if len(name) > 3]
    close = difflib.get_close_matches(keyword, sorted(candidates), n=1, cutoff=0.8)
    spelled = {name.lower(): name for name in candidates}
    similar = spelled.get(keyword.lower().replace("_", "").replace("-", "")) or (close[0] if close else None)
    return f"describes only; did you mean {similar}?" if similar else "describes only"


def _problem(constraint: JsonSchema) -> ConstraintError | None:
    """What compiling the constraint fails with, if it does."""
    from grammask import _core

    vocabulary = _core.Vocabulary([bytes([byte]) for byte in range(256)] + [None], [256], 257)
    try:
        builder = _core.Builder(vocabulary, max_seconds=SECONDS)
        with time_limit.Limited(SECONDS):
            builder.compile(constraint.lower(builder))
    except ConstraintError as error:
        return error
    except (_core.ConstraintTooLargeError, ValueError) as error:
        return ConstraintError(str(error))
    return None


def _with_problem(entries: list[Entry], problem: ConstraintError) -> list[Entry]:
    """The entries with the place of the problem marked as refused."""
    pointer = problem.pointer or ""
    parent, _, last = pointer.rpartition("/")
    marked = []
    found = False
    for entry in entries:
        if not found and entry.pointer == parent and pointer and escape(entry.keyword) == last:
            entry, found = entry._replace(status="refused", how=problem.message), True
        marked.append(entry)
    if not found:
        marked.append(Entry(pointer, "", "refused", problem.message))
    return marked
