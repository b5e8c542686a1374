"""The order that docs/json-schema.md gives the members of an object, computed from the schema and a valid instance.

It shares no code with the compiler: subschemas are judged by the jsonschema validator, names are collected in one walk
over the text of the schema. Tests put the keys of instances into this order; the constraint must then accept them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
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
        inside: whether what holds inside of a negation, such as what two negations enclose, sets the order, too.
    """

    def __init__(self, schema: Any, *, together: bool = False, inside: bool = True) -> None:
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
        self._root = schema
        self._together = together
        self._inside = inside
        # Up to draft 7 a reference is alone: what stands beside it means nothing.
        self._alone = kind in (jsonschema.Draft4Validator, jsonschema.Draft6Validator, jsonschema.Draft7Validator)

    def of(self, instance: Any) -> Any:
        """The instance with its keys in the documented order, at every depth."""
        return self._ordered([self._root], [], instance)

    def _ordered(self, schemas: list[Any], refuted: list[Any], instance: Any) -> Any:
        if not isinstance(instance, (dict, list)):
            return instance
        place = self._place(schemas, refuted, instance)
        if isinstance(instance, list):
            return [self._ordered(*place.item_schemas(i), item) for i, item in enumerate(instance)]
        return {name: self._ordered(place.member_schemas(name), [], instance[name]) for name in place.names()}

    def objects(self, instance: Any) -> Iterator[Place]:
        """Every object in the instance, with what its schemas say about its names."""
        waiting: list[tuple[list[Any], list[Any], Any]] = [([self._root], [], instance)]
        while waiting:
            schemas, refuted, value = waiting.pop()
            if not isinstance(value, (dict, list)):
                continue
            place = self._place(schemas, refuted, value)
            if isinstance(value, list):
                waiting += [(*place.item_schemas(i), item) for i, item in enumerate(value)]
            else:
                yield place
                waiting += [(place.member_schemas(name), [], member) for name, member in value.items()]

    def _place(self, schemas: list[Any], refuted: list[Any], instance: Any) -> Place:
        place = Place(self, instance)
        for schema in schemas:
            place.read(schema)
        place.read_conditions()
        for schema in refuted:
            place.refute(schema)
        place.read_conditions()
        return place

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


class Place:
    """What the schemas that hold at one place of the instance say about its members."""

    def __init__(self, order: Order, instance: Any) -> None:
        self._order = order
        self._instance = instance
        self.keys = list(instance) if isinstance(instance, dict) else []
        self._applied: list[dict[str, Any]] = []
        self._refuted: list[dict[str, Any]] = []
        self._seen: set[tuple[int, bool]] = set()
        self._waiting: list[tuple[tuple[int, ...], Callable[[], None]]] = []
        self._condition: tuple[int, ...] = ()
        self._steps = count()
        self._equal: list[Any] = []
        self._constants: dict[str, None] = {}
        self._declared: dict[str, None] = {}
        self._required: dict[str, tuple[int, ...]] = {}
        self._implied: dict[str, tuple[int, ...]] = {}
        self._negated: dict[str, None] = {}

    def names(self) -> list[str]:
        """The instance's keys: constants, declared, required, implied, those that negations speak of, the rest."""
        groups = (self.placed(), self._negated, self._instance)
        return [name for name in dict.fromkeys(name for group in groups for name in group) if name in self._instance]

    def placed(self) -> dict[str, None]:
        """The names that have a place in the order, in that order."""
        required, implied = (sorted(names, key=names.__getitem__) for names in (self._required, self._implied))
        return dict.fromkeys([*self._constants, *self._declared, *required, *implied])

    def written(self) -> list[list[str]]:
        """The lists of names that the schemas which hold here write down: ``properties`` and constants."""
        constants = [list(value) for value in self._equal if isinstance(value, dict)]
        return constants + [list(schema["properties"]) for schema in self._applied if "properties" in schema]

    def member_schemas(self, name: str) -> list[Any]:
        found: list[Any] = [{"enum": [value[name]]} for value in self._equal if name in value]
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
        found: list[Any] = [{"enum": [value[position]]} for value in self._equal]
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
        """Reads a schema that the instance satisfies, from top to bottom; its conditions wait."""
        if not isinstance(schema, dict) or self._known(schema, True):
            return
        if "$ref" in schema and self._order._alone:
            self.read(self._order.target(schema["$ref"]))
            return
        instance, holds = self._instance, self._order.holds
        self._applied.append(schema)
        for value in [schema["const"]] if "const" in schema else schema.get("enum", ()):
            if isinstance(value, (dict, list)) and holds({"enum": [value]}, instance):
                self._equal.append(value)
                self._constants.update(dict.fromkeys(value if isinstance(value, dict) else ()))
        if "properties" not in schema:
            self._read_own(schema)
        for keyword, value in schema.items():
            if keyword == "properties":
                self._declared.update(dict.fromkeys(value))
                self._read_own(schema)
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
        if "not" in schema:
            self.refute(schema["not"])
        for keyword, value in schema.items():
            if keyword == "if" and ("then" in schema or "else" in schema):
                self._waiting.append((self._here(), partial(self._read_if, schema)))
            elif keyword in ("dependentSchemas", "dependencies"):
                for name, sub in value.items():
                    if isinstance(sub, list):
                        self._note(self._implied, [name, *sub])
                    elif name in instance:
                        self._waiting.append((self._here(), partial(self._read_dependent, name, sub)))

    def _read_own(self, schema: dict[str, Any]) -> None:
        """Names that are not declared, which stand with ``properties``."""
        if isinstance(schema.get("required"), list):
            self._note(self._required, schema["required"])
        for name, others in schema.get("dependentRequired", {}).items():
            self._note(self._implied, [name, *others])

    def _note(self, table: dict[str, tuple[int, ...]], names: list[str]) -> None:
        """Notes names that no list has, by where they are first read if conditions are read behind their own schema."""
        for name in names:
            at = self._here()
            table[name] = min(table.get(name, at), at)

    def _here(self) -> tuple[int, ...]:
        return (*self._condition, next(self._steps))

    def read_conditions(self) -> None:
        """Reads the conditions met so far, each with the conditions in it."""
        waiting, self._waiting = self._waiting, []
        around = self._condition
        for self._condition, read in waiting:
            read()
            self.read_conditions()
        self._condition = around

    def _read_if(self, schema: dict[str, Any]) -> None:
        test = schema["if"]
        if isinstance(test, dict):
            self._declared.update(dict.fromkeys([*test.get("properties", ()), *test.get("required", ())]))
        if self._order.holds(test, self._instance):
            self.read(test)
            self.read(schema.get("then", True))
        else:
            self.refute(test)
            self.read(schema.get("else", True))

    def _read_dependent(self, name: str, schema: Any) -> None:
        self._declared[name] = None
        self.read(schema)

    def refute(self, schema: Any) -> None:
        """Reads a schema that the instance does not satisfy: the names it mentions have no place."""
        if isinstance(schema, list):
            for sub in schema:
                self.refute(sub)
        if not isinstance(schema, dict) or self._known(schema, False):
            return
        if "$ref" in schema and self._order._alone:
            schema = {"$ref": schema["$ref"]}
        self._refuted.append(schema)
        for keyword in ("properties", "required", "dependentSchemas", "dependencies", "dependentRequired"):
            self._negated.update(dict.fromkeys(schema.get(keyword, ())))
        holds = self._order.holds
        for keyword in ("allOf", "anyOf", "oneOf", "if", "then", "else", "not"):
            parts = schema.get(keyword, [])
            for sub in parts if isinstance(parts, list) else [parts]:
                # A part may hold where the whole does not, as the second of oneOf or under not.
                if self._order._inside and keyword in ("oneOf", "not", "if") and holds(sub, self._instance):
                    self.read(sub)
                else:
                    self.refute(sub)
        if "$ref" in schema:
            self.refute(self._order.target(schema["$ref"]))

    def _known(self, schema: dict[str, Any], holds: bool) -> bool:
        """Whether the schema has been read here before: a second time adds no names, and references may go round."""
        key = (id(schema), holds)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False
