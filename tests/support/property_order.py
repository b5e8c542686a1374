"""The order that docs/json-schema.md gives the members of an object, computed from the schema and a valid instance.

It shares no code with the compiler: subschemas are judged by the jsonschema validator, names are collected in one walk
over the text of the schema. Tests put the keys of instances into this order; the constraint must then accept them.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import jsonschema
import jsonschema.validators

PATTERN_PROPERTIES = "patternProperties"


class Order:
    """The documented order under one schema.

    Args:
        schema: the root schema.
        together: whether all alternatives of an ``anyOf`` that hold set the order together, or the first one alone.
    """

    def __init__(self, schema: Any, *, together: bool = False) -> None:
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
        self._root = schema
        self._together = together
        # Up to draft 7 a reference is alone: what stands beside it means nothing.
        self._alone = kind in (jsonschema.Draft4Validator, jsonschema.Draft6Validator, jsonschema.Draft7Validator)

    def of(self, instance: Any) -> Any:
        """The instance with its keys in the documented order, at every depth."""
        return self._ordered([self._root], [], instance)

    def _ordered(self, schemas: list[Any], refuted: list[Any], instance: Any) -> Any:
        if not isinstance(instance, (dict, list)):
            return instance
        place = _Place(self, instance)
        for schema in schemas:
            place.read(schema)
        for schema in refuted:
            place.refute(schema)
        if isinstance(instance, list):
            return [self._ordered(*place.item_schemas(i), item) for i, item in enumerate(instance)]
        return {name: self._ordered(place.member_schemas(name), [], instance[name]) for name in place.names()}

    def holds(self, schema: Any, instance: Any) -> bool:
        if isinstance(schema, bool):
            return schema
        return bool(self._validator.evolve(schema=schema).is_valid(instance))

    def target(self, reference: str) -> Any:
        """What a reference into the same document points to."""
        here = self._root
        for token in unquote(reference).lstrip("#").split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            here = here[int(token)] if isinstance(here, list) else here[token]
        return here


class _Place:
    """What the schemas that hold at one place of the instance say about its members."""

    def __init__(self, order: Order, instance: Any) -> None:
        self._order = order
        self._instance = instance
        self._applied: list[dict[str, Any]] = []
        self._refuted: list[dict[str, Any]] = []
        self._constants: dict[str, None] = {}
        self._declared: dict[str, None] = {}
        self._required: dict[str, None] = {}
        self._implied: dict[str, None] = {}
        self._conditions: dict[str, None] = {}

    def names(self) -> list[str]:
        """The instance's keys: constants, declared, required, implied, those that conditions speak of, the rest."""
        groups = (self._constants, self._declared, self._required, self._implied, self._conditions, self._instance)
        return [name for name in dict.fromkeys(name for group in groups for name in group) if name in self._instance]

    def member_schemas(self, name: str) -> list[Any]:
        found = []
        for schema in self._applied:
            named = [schema["properties"][name]] if name in schema.get("properties", ()) else []
            patterns = schema.get(PATTERN_PROPERTIES, {})
            named += [sub for pattern, sub in patterns.items() if _matches(pattern, name)]
            if not named and "additionalProperties" in schema:
                named = [schema["additionalProperties"]]
            found += named
            if "unevaluatedProperties" in schema:
                found.append(schema["unevaluatedProperties"])
        return found

    def item_schemas(self, position: int) -> tuple[list[Any], list[Any]]:
        """What an item satisfies, and which ``contains`` it does not."""
        found: list[Any] = []
        refuted: list[Any] = []
        item = self._instance[position]
        # A whole that does not hold may count too few or too many items: each still passes the test or does not.
        tests = [schema["contains"] for schema in [*self._applied, *self._refuted] if "contains" in schema]
        for schema in self._applied:
            items = schema.get("items", True)
            prefix = schema.get("prefixItems", items if isinstance(items, list) else [])
            rest = schema.get("additionalItems", True) if isinstance(items, list) else items
            found.append(prefix[position] if position < len(prefix) else rest)
            if "unevaluatedItems" in schema:
                tests.append(schema["unevaluatedItems"])
        for test in tests:
            (found if self._order.holds(test, item) else refuted).append(test)
        return found, refuted

    def read(self, schema: Any) -> None:
        """Reads a schema that the instance satisfies, from top to bottom."""
        if not isinstance(schema, dict):
            return
        if "$ref" in schema and self._order._alone:
            self.read(self._order.target(schema["$ref"]))
            return
        instance, holds = self._instance, self._order.holds
        self._applied.append(schema)
        for value in [schema["const"]] if "const" in schema else schema.get("enum", ()):
            if isinstance(value, dict) and value == instance:
                self._constants.update(dict.fromkeys(value))
        if isinstance(schema.get("required"), list):
            self._required.update(dict.fromkeys(schema["required"]))
        for name, others in schema.get("dependentRequired", {}).items():
            self._implied.update(dict.fromkeys([name, *others]))
        for keyword, value in schema.items():
            if keyword == "properties":
                self._declared.update(dict.fromkeys(value))
            elif keyword == "allOf":
                for sub in value:
                    self.read(sub)
            elif keyword in ("anyOf", "oneOf"):
                holding = [sub for sub in value if holds(sub, instance)]
                for sub in holding if self._order._together else holding[:1]:
                    self.read(sub)
                for sub in value:
                    if sub not in holding:
                        self.refute(sub)
            elif keyword == "$ref":
                self.read(self._order.target(value))
        self._read_conditions(schema)

    def _read_conditions(self, schema: dict[str, Any]) -> None:
        """Conditions, which come behind."""
        instance, holds = self._instance, self._order.holds
        for keyword, value in schema.items():
            if keyword == "if" and ("then" in schema or "else" in schema):
                if isinstance(value, dict):
                    self._declared.update(dict.fromkeys([*value.get("properties", ()), *value.get("required", ())]))
                if holds(value, instance):
                    self.read(value)
                    self.read(schema.get("then", True))
                else:
                    self.refute(value)
                    self.read(schema.get("else", True))
            elif keyword == "not":
                self.refute(value)
            elif keyword in ("dependentSchemas", "dependencies"):
                for name, sub in value.items():
                    if isinstance(sub, list):
                        self._implied.update(dict.fromkeys([name, *sub]))
                    elif name in instance:
                        self._declared[name] = None
                        self.read(sub)

    def refute(self, schema: Any) -> None:
        """Reads a schema that the instance does not satisfy: the names it mentions are conditions."""
        if isinstance(schema, list):
            for sub in schema:
                self.refute(sub)
        if not isinstance(schema, dict):
            return
        if "$ref" in schema and self._order._alone:
            schema = {"$ref": schema["$ref"]}
        self._refuted.append(schema)
        for keyword in ("properties", "required", "dependentSchemas", "dependencies", "dependentRequired"):
            self._conditions.update(dict.fromkeys(schema.get(keyword, ())))
        holds = self._order.holds
        for keyword in ("allOf", "anyOf", "oneOf", "if", "then", "else", "not"):
            parts = schema.get(keyword, [])
            for sub in parts if isinstance(parts, list) else [parts]:
                # A part may hold where the whole does not, as the second of oneOf or under not.
                if keyword in ("oneOf", "not", "if") and holds(sub, self._instance):
                    self.read(sub)
                else:
                    self.refute(sub)
        if "$ref" in schema and schema["$ref"] not in self._refuting:
            self._refuting.add(schema["$ref"])
            self.refute(self._order.target(schema["$ref"]))

    @property
    def _refuting(self) -> set[str]:
        return self.__dict__.setdefault("_seen", set())


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False
