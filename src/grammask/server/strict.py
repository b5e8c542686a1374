"""The subset of JSON Schema that OpenAI's ``strict: true`` stands for.

grammask enforces far more, but a client that asks for strict relies on the same refusals everywhere. The rules are
those of OpenAI's guide to structured outputs; docs/reference/server.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grammask.server.errors import ApiError, invalid

MAX_DEPTH = 10
MAX_PROPERTIES = 5000
MAX_NAMES_LENGTH = 120_000
MAX_ENUM_VALUES = 1000

REFUSED = (
    "allOf",
    "not",
    "oneOf",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)


def check_strict(schema: Any, param: str, what: str) -> None:
    """Refuses a schema outside the subset.

    Args:
        param: the place of the schema in the request.
        what: what it belongs to, for the message.

    Raises:
        ApiError: 400, as OpenAI would refuse it, with the way out.
    """

    def refuse(pointer: str, message: str) -> ApiError:
        return invalid(
            f"Invalid schema for {what}: in context={pointer or '(root)'}, {message}. "
            "Use strict: false for all of JSON Schema that grammask enforces",
            param,
            "invalid_json_schema",
        )

    if not isinstance(schema, Mapping):
        raise refuse("", "a strict schema is an object")
    if schema.get("type") != "object" or "anyOf" in schema:
        raise refuse("", 'the outermost schema must have "type": "object", and no anyOf')
    properties = enum_values = names_length = 0
    for pointer, part, depth in _parts(schema):
        if depth > MAX_DEPTH:
            raise refuse(pointer, f"schemas are nested more than {MAX_DEPTH} levels deep")
        for keyword in REFUSED:
            if keyword in part:
                raise refuse(pointer, f"'{keyword}' is not permitted")
        names = part.get("properties")
        if part.get("type") == "object" or names is not None:
            names = names if isinstance(names, Mapping) else {}
            if part.get("additionalProperties") is not False:
                raise refuse(pointer, "'additionalProperties' is required to be supplied and to be false")
            missing = [name for name in names if name not in (part.get("required") or [])]
            if missing:
                raise refuse(
                    pointer,
                    "'required' is required to be supplied and to be an array including every key in properties; "
                    f"missing: {', '.join(map(repr, missing[:5]))}",
                )
            properties += len(names)
            names_length += sum(map(len, names))
        values = part.get("enum")
        if isinstance(values, list):
            enum_values += len(values)
            names_length += sum(len(value) for value in values if isinstance(value, str))
    if properties > MAX_PROPERTIES:
        raise refuse("", f"there are {properties} properties, more than {MAX_PROPERTIES}")
    if enum_values > MAX_ENUM_VALUES:
        raise refuse("", f"there are {enum_values} enum values, more than {MAX_ENUM_VALUES}")
    if names_length > MAX_NAMES_LENGTH:
        raise refuse("", f"names and enum values have {names_length} characters, more than {MAX_NAMES_LENGTH}")


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Every subschema with its JSON pointer and its depth in the values that it describes."""
    pending: list[tuple[str, Any, int]] = [("", schema, 1)]
    while pending:
        pointer, part, depth = pending.pop()
        if not isinstance(part, Mapping):
            continue
        yield pointer, part, depth
        if depth > MAX_DEPTH:
            continue
        for keyword in ("properties", "$defs", "definitions"):
            named = part.get(keyword)
            if isinstance(named, Mapping):
                deeper = depth + (keyword == "properties")
                pending.extend((f"{pointer}/{keyword}/{name}", value, deeper) for name, value in named.items())
        pending.append((f"{pointer}/items", part.get("items"), depth + 1))
        for keyword in ("anyOf", "prefixItems"):
            listed = part.get(keyword)
            if isinstance(listed, list):
                pending.extend((f"{pointer}/{keyword}/{i}", value, depth) for i, value in enumerate(listed))
