"""Whether a JSON value satisfies a schema, exactly, and which parts of it do not.

The verdict is that of grammask's own matcher, so a value that was received from elsewhere is held to the very language
that a constraint would have enforced. The blame is found by asking the same question about the parts: each member and
item against its own subschema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from grammask._core import Compiled
from grammask.constraints.base import Constraint
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.tools.arguments import byte_builder
from grammask.engine.errors import UnsatisfiableConstraint
from grammask.validation.problems import Path, Problem

_ROOT = "urn:grammask:checked-schema"
_SHOWN = 200
"""Characters of a schema or value that a message shows."""


def compile_for_bytes(constraint: Constraint) -> Compiled:
    """A constraint for texts as they are, whatever the tokens.

    Raises:
        ConstraintError: it cannot be enforced, or nothing satisfies it.
    """
    builder = byte_builder()
    try:
        return builder.compile(constraint.lower(builder))
    except ValueError as error:
        if "language is empty" in str(error):
            raise UnsatisfiableConstraint("no output satisfies this constraint") from error
        raise


def accepts(compiled: Compiled, text: str) -> bool:
    """Whether a text is a whole output."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return False
    matcher = compiled.matcher()
    return matcher.accept_bytes(data) and matcher.is_complete


class ExactNumber(float):
    """A number that is written as it was read."""

    def __new__(cls, text: str) -> ExactNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[ExactNumber], tuple[str]]:
        return ExactNumber, (self.text,)


def read_json(text: str) -> Any:
    """A JSON value whose numbers with a fraction or exponent keep their spelling, so that no digit is lost before the
    value is checked.

    Raises:
        ValueError: not JSON, NaN and Infinity included, or an object that names a member twice.
    """
    return json.loads(text, parse_float=ExactNumber, parse_constant=_refuse_constant, object_pairs_hook=_members)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object names a member twice")
    return members


def write_json(value: Any) -> str:
    """The JSON text of a value of ``read_json``."""
    # json.dumps writes floats by float.__repr__, whatever a subclass says.
    if isinstance(value, dict):
        members = [f"{json.dumps(name, ensure_ascii=False)}: {write_json(item)}" for name, item in value.items()]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_json, value)) + "]"
    if isinstance(value, ExactNumber):
        return value.text
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class JsonProblems:
    """The faults of values under one schema.

    Args:
        constraint: the schema with its options; property order, blanks and spellings do not matter for values.

    Raises:
        ConstraintError: the schema cannot be enforced.
    """

    def __init__(self, constraint: JsonSchema) -> None:
        self._constraint = constraint
        self._compiled = compile_for_bytes(self._lenient(constraint.schema))
        self._parts: dict[str, Compiled | None] = {}

    def _lenient(self, schema: Any, registry: Mapping[str, Any] | None = None) -> JsonSchema:
        known = {**(self._constraint.registry or {}), **(registry or {})}
        return JsonSchema(
            schema,
            property_order="any",
            whitespace="flexible",
            escapes="all",
            numbers="any",
            format_assertion=self._constraint.format_assertion,
            formats=self._constraint.formats,
            registry=known or None,
        )

    def accepts(self, value: Any) -> bool:
        """Whether a JSON value satisfies the schema."""
        return accepts(self._compiled, write_json(value))

    def find(self, value: Any) -> list[Problem]:
        """The problems of a JSON value; empty exactly if it satisfies the schema."""
        return [] if self.accepts(value) else self._blame(value, "", ())

    def _blame(self, value: Any, pointer: str, path: Path) -> list[Problem]:
        pointer, schema = self._resolve(pointer)
        found: list[Problem] = []
        for part, step in self._steps(value, schema):
            if not self._part_accepts(pointer + step, value[part]):
                found += self._blame(value[part], pointer + step, (*path, part))
        structure = _structure(value, schema)
        if structure:
            found.append(Problem(structure, path))
        return found or [Problem(f"{_cut(write_json(value))} does not satisfy {_shown_schema(schema)}", path)]

    def _steps(self, value: Any, schema: Any) -> list[tuple[Any, str]]:
        """Members and items that have a subschema of their own, with the way to it."""
        if not isinstance(schema, Mapping):
            return []
        if isinstance(value, dict) and isinstance(schema.get("properties"), Mapping):
            return [
                (name, f"/properties/{name.replace('~', '~0').replace('/', '~1')}")
                for name in value
                if name in schema["properties"]
            ]
        if isinstance(value, list):
            prefix = schema.get("prefixItems", [])
            first = [(i, f"/prefixItems/{i}") for i in range(min(len(prefix), len(value)))]
            rest = range(len(prefix), len(value)) if isinstance(schema.get("items"), Mapping) else range(0)
            return [*first, *[(i, "/items") for i in rest]]
        return []

    def _resolve(self, pointer: str) -> tuple[str, Any]:
        """Follows references inside the schema from a place in it."""
        for _ in range(32):
            schema = self._at(pointer)
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#") or "properties" in schema:
                return pointer, schema
            if reference != "#" and not reference.startswith("#/"):
                return pointer, schema
            pointer = reference[1:]
        return pointer, self._at(pointer)

    def _at(self, pointer: str) -> Any:
        place: Any = self._constraint.schema
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, Mapping) and name in place:
                place = place[name]
            elif isinstance(place, list) and name.isdigit() and int(name) < len(place):
                place = place[int(name)]
            else:
                return None
        return place

    def _part_accepts(self, pointer: str, value: Any) -> bool:
        """Whether a value satisfies the subschema at a pointer."""
        if pointer not in self._parts:
            self._parts[pointer] = self._compile_part(pointer)
        compiled = self._parts[pointer]
        return compiled is not None and accepts(compiled, write_json(value))

    def _compile_part(self, pointer: str) -> Compiled | None:
        try:
            return compile_for_bytes(self._lenient({"$ref": f"{self._root_uri}#{pointer}"}, self._own_document))
        except UnsatisfiableConstraint:
            return None

    @property
    def _root_uri(self) -> str:
        schema = self._constraint.schema
        own = schema.get("$id") if isinstance(schema, Mapping) else None
        return own.rstrip("#") if isinstance(own, str) and own else _ROOT

    @cached_property
    def _own_document(self) -> dict[str, Any]:
        return {self._root_uri: self._constraint.schema}


def _structure(value: Any, schema: Any) -> str:
    """Which members of an object are missing or too many; empty if neither can be told from the schema."""
    if not isinstance(value, dict) or not isinstance(schema, Mapping):
        return ""
    missing = [name for name in schema.get("required", ()) if name not in value]
    closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
    unknown = [name for name in value if name not in schema.get("properties", {})] if closed else []
    faults = []
    if missing:
        faults.append(f"the required {_names(missing)} missing")
    if unknown:
        faults.append(f"{_names(unknown)} not allowed")
    return " and ".join(faults)


def _shown_schema(schema: Any) -> str:
    return _cut(json.dumps(schema, ensure_ascii=False, default=str))


def _names(names: list[str]) -> str:
    listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
    return f"member {listed} is" if len(names) == 1 else f"members {listed} are"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 4] + " ..."
