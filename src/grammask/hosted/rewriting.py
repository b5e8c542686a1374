"""Schemas in the subset that a provider enforces.

Providers enforce parts of JSON Schema and refuse requests that hold the rest. A schema is rewritten so that the
provider takes it and enforces as much of it as it can; whatever the rewriting leaves open is checked afterwards on the
value, exactly. Three things may happen to a value's language on the way:

* it becomes larger where a keyword is dropped (``minLength`` where the provider does not know it),
* it becomes smaller where only that can be said (an object that may have further members gets none),
* it changes its shape where the provider wants another: a root that is no object is wrapped into one, and a member that
  may be absent may be null instead. ``Rewritten.restore`` undoes this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grammask.hosted.subset import ANNOTATIONS, NUMBERS, Subset

WRAPPER = "value"
"""The only member of an object that stands around a root that must not stand alone."""


class Inexpressible(ValueError):
    """The subset cannot say anything like this schema."""


@dataclass(frozen=True)
class Rewritten:
    """A schema as it is sent.

    Attributes:
        schema: what is sent.
        dropped: (JSON pointer, keyword) of what it leaves open.
        narrowed: JSON pointers of objects that are sent without the further members that they may have.
        wrapped: the value is the only member of an object.
        nullable: JSON pointers of members that may be absent, and are null instead.
    """

    schema: dict[str, Any]
    dropped: tuple[tuple[str, str], ...] = ()
    narrowed: tuple[str, ...] = ()
    wrapped: bool = False
    nullable: frozenset[str] = frozenset()

    def restore(self, value: Any) -> Any:
        """The value without what the rewriting put around and into it."""
        if self.wrapped:
            if not isinstance(value, dict) or WRAPPER not in value:
                return value
            value = value[WRAPPER]
            start = f"/properties/{WRAPPER}"
        else:
            start = ""
        return self._without_nulls(value, {start}) if self.nullable else value

    def _without_nulls(self, value: Any, pointers: set[str]) -> Any:
        """The value without nulls that stand for absent members. ``pointers`` are the places in the schema that may
        describe it: several inside a union."""
        places = {place for pointer in pointers for place in self._branches(pointer)}
        if isinstance(value, dict):
            kept = {}
            for name, member in value.items():
                ways = {f"{place}/properties/{_token(name)}" for place in places}
                if member is None and ways & self.nullable:
                    continue
                kept[name] = self._without_nulls(member, ways)
            return kept
        if isinstance(value, list):
            ways = {f"{place}/items" for place in places}
            ways |= {f"{place}/prefixItems/{i}" for place in places for i in range(len(value))}
            return [self._without_nulls(item, ways) for item in value]
        return value

    def _branches(self, pointer: str, depth: int = 0) -> Iterator[str]:
        node = _at(self.schema, pointer)
        if not isinstance(node, Mapping) or depth > 32:
            return
        yield pointer
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield from self._branches(reference[1:], depth + 1)
        for number in range(len(node.get("anyOf", ()))):
            yield from self._branches(f"{pointer}/anyOf/{number}", depth + 1)


def rewrite(schema: Any, subset: Subset) -> Rewritten:
    """The schema in a subset.

    Raises:
        Inexpressible: not even an approximation can be said.
    """
    if subset.keywords is None and isinstance(schema, Mapping):
        return Rewritten(dict(schema))
    return _Rewriter(subset).run(schema)


@dataclass
class _Rewriter:
    subset: Subset
    definitions: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    narrowed: list[str] = field(default_factory=list)
    nullable: set[str] = field(default_factory=set)
    document: Any = None

    def run(self, schema: Any) -> Rewritten:
        self.document = schema
        wrapped = self.subset.root_object and not self._is_object(schema)
        start = f"/properties/{WRAPPER}" if wrapped else ""
        root = self.node(schema, "", start)
        if wrapped:
            root = {
                "type": "object",
                "properties": {WRAPPER: root},
                "required": [WRAPPER],
                "additionalProperties": False,
            }
        if self.definitions:
            root = {**root, "$defs": self.definitions}
        return Rewritten(root, tuple(self.dropped), tuple(self.narrowed), wrapped, frozenset(self.nullable))

    def _is_object(self, schema: Any) -> bool:
        """Whether the root is an object by itself, neither a reference nor a union."""
        return isinstance(schema, Mapping) and schema.get("type") == "object" and "anyOf" not in schema

    def node(self, schema: Any, at: str, out: str) -> dict[str, Any]:
        """One schema rewritten. ``at`` is its pointer in the document, ``out`` in what is sent."""
        if not isinstance(schema, Mapping):
            raise Inexpressible(f"at {at or '(root)'}: any value may stand here")
        schema = self._merged(schema, at)
        if isinstance(schema.get("const"), (dict, list)):
            schema = _structure(schema["const"])
        if "$ref" in schema:
            return self._reference(schema, at)
        branches = schema.get("anyOf", schema.get("oneOf"))
        if branches is not None:
            return self._union(schema, branches, at, out)
        types = schema.get("type")
        if isinstance(types, list) and (not self.subset.type_lists or len(types) == 1 or set(types) & _WITH_PARTS):
            return self._by_type(schema, types, at, out)
        kept: dict[str, Any] = {}
        if "enum" in schema or "const" in schema:
            self._values(schema, at, kept)
        elif types is None:
            schema = {**schema, "type": self._guessed_type(schema, at)}
        if "type" in schema:
            kept["type"] = schema["type"]
        kind = schema.get("type")
        for keyword, value in schema.items():
            if keyword in ("type", "enum", "const", "$defs", "definitions", "$schema", "$id", "$comment", "examples"):
                continue
            if keyword == "default" and "default" not in (self.subset.keywords or ()):
                continue
            if kind == "object" and keyword in ("properties", "required", "additionalProperties"):
                continue
            if kind == "array" and keyword in ("items", "prefixItems"):
                continue
            if self._passes(keyword, value):
                kept[keyword] = value
            elif keyword not in ANNOTATIONS:
                self.dropped.append((at, keyword))
        if kind == "object" and "enum" not in kept and "const" not in kept:
            self._object(schema, at, out, kept)
        if kind == "array" and "enum" not in kept and "const" not in kept:
            self._array(schema, at, out, kept)
        return kept

    def _passes(self, keyword: str, value: Any) -> bool:
        assert self.subset.keywords is not None
        if keyword not in self.subset.keywords:
            return False
        if keyword == "format":
            return value in self.subset.formats
        return not (keyword == "minItems" and self.subset.min_items is not None and value not in self.subset.min_items)

    def _guessed_type(self, schema: Mapping[str, Any], at: str) -> str:
        for keyword, kind in (("properties", "object"), ("items", "array"), ("prefixItems", "array")):
            if keyword in schema:
                return kind
        raise Inexpressible(f"at {at or '(root)'}: a value of any type may stand here")

    def _merged(self, schema: Mapping[str, Any], at: str) -> Mapping[str, Any]:
        """The schema with its ``allOf`` merged in, as far as the parts do not touch the same keywords."""
        parts = schema.get("allOf")
        if not isinstance(parts, list):
            return schema
        merged = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
        for part in parts:
            if not isinstance(part, Mapping):
                raise Inexpressible(f"at {at or '(root)'}: allOf with a boolean")
            for keyword, value in part.items():
                if keyword in merged and merged[keyword] != value:
                    self.dropped.append((at, "allOf"))
                else:
                    merged[keyword] = value
        return merged

    def _reference(self, schema: Mapping[str, Any], at: str) -> dict[str, Any]:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise Inexpressible(f"at {at or '(root)'}: a reference to {reference}")
        if len(schema) > 1:
            others = [keyword for keyword in schema if keyword not in ("$ref", "default", *ANNOTATIONS)]
            self.dropped += [(at, keyword) for keyword in others if not keyword.startswith("$")]
        target = reference[1:]
        if target in self.open and not self.subset.recursive:
            raise Inexpressible(f"at {at or '(root)'}: the schema refers to itself")
        if target not in self.names:
            name = target.rpartition("/")[2].replace("~1", "_").replace("~0", "_") or "root"
            while name in self.names.values():
                name += "_"
            self.names[target] = name
            self.open.append(target)
            self.definitions[name] = self.node(_at(self.document, target), target, f"/$defs/{_token(name)}")
            self.open.pop()
        return {"$ref": f"#/$defs/{_token(self.names[target])}"}

    def _union(self, schema: Mapping[str, Any], branches: Any, at: str, out: str) -> dict[str, Any]:
        keyword = "anyOf" if "anyOf" in schema else "oneOf"
        if keyword == "oneOf":
            self.dropped.append((at, "oneOf"))
        ignored = ("anyOf", "oneOf", "$defs", "definitions", "$schema", "$id", "default", "discriminator")
        self.dropped += [(at, name) for name in schema if name not in ignored and name not in ANNOTATIONS]
        rewritten = [
            self.node(branch, f"{at}/{keyword}/{number}", f"{out}/anyOf/{number}")
            for number, branch in enumerate(branches)
        ]
        return {**{k: schema[k] for k in ANNOTATIONS & set(schema)}, "anyOf": rewritten}

    def _by_type(self, schema: Mapping[str, Any], types: list[str], at: str, out: str) -> dict[str, Any]:
        if len(types) == 1:
            return self.node({**schema, "type": types[0]}, at, out)
        branches = [
            self.node({**_for_type(schema, kind), "type": kind}, at, f"{out}/anyOf/{number}")
            for number, kind in enumerate(types)
        ]
        return {"anyOf": branches}

    def _values(self, schema: Mapping[str, Any], at: str, kept: dict[str, Any]) -> None:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        if self.subset.enum_scalars and any(isinstance(value, (list, dict)) for value in values):
            raise Inexpressible(f"at {at or '(root)'}: values that are arrays or objects")
        kept["enum"] = list(values)
        if "type" not in schema:
            found = sorted({_type_of(value) for value in values})
            if len(found) == 1:
                kept["type"] = found[0]
            elif self.subset.type_lists:
                kept["type"] = found
        elif "const" in schema and "enum" in schema:
            kept["enum"] = [schema["const"]]

    def _object(self, schema: Mapping[str, Any], at: str, out: str, kept: dict[str, Any]) -> None:
        properties = schema.get("properties", {})
        further = schema.get("additionalProperties", True)
        required = [name for name in schema.get("required", ()) if name in properties]
        if len(required) < len(schema.get("required", ())):
            raise Inexpressible(f"at {at or '(root)'}: required members that have no schema")
        if self.subset.closed and further is not False:
            if not properties:
                raise Inexpressible(f"at {at or '(root)'}: an object with names of the model's choice")
            self.narrowed.append(at)
        kept["properties"] = {}
        for name, part in properties.items():
            inner = f"{out}/properties/{_token(name)}"
            if part is False:
                continue
            absent = self.subset.all_required and name not in required
            if absent and not _may_be_null(part):
                self.nullable.add(inner)
                branch = self.node(part, f"{at}/properties/{_token(name)}", f"{inner}/anyOf/0")
                kept["properties"][name] = {"anyOf": [branch, {"type": "null"}]}
            else:
                kept["properties"][name] = self.node(part, f"{at}/properties/{_token(name)}", inner)
        kept["required"] = list(kept["properties"]) if self.subset.all_required else required
        if self.subset.closed or further is False:
            kept["additionalProperties"] = False
        elif isinstance(further, Mapping):
            kept["additionalProperties"] = self.node(
                further, f"{at}/additionalProperties", f"{out}/additionalProperties"
            )

    def _array(self, schema: Mapping[str, Any], at: str, out: str, kept: dict[str, Any]) -> None:
        assert self.subset.keywords is not None
        items, prefix = schema.get("items"), schema.get("prefixItems")
        if prefix and "prefixItems" in self.subset.keywords:
            kept["prefixItems"] = [
                self.node(part, f"{at}/prefixItems/{i}", f"{out}/prefixItems/{i}") for i, part in enumerate(prefix)
            ]
        elif prefix:
            self.dropped.append((at, "prefixItems"))
            parts = [*prefix, *([items] if isinstance(items, Mapping) else [])]
            union = {"anyOf": [part for i, part in enumerate(parts) if part not in parts[:i]]}
            only = union["anyOf"][0] if len(union["anyOf"]) == 1 else union
            kept["items"] = self.node(only, f"{at}/prefixItems", f"{out}/items")
            if items is False and "maxItems" in self.subset.keywords and "maxItems" not in schema:
                kept["maxItems"] = len(prefix)
            return
        if isinstance(items, Mapping):
            kept["items"] = self.node(items, f"{at}/items", f"{out}/items")
        elif prefix:
            if items is False and "maxItems" not in schema:
                kept["maxItems"] = len(prefix)
        elif items is False:
            raise Inexpressible(f"at {at or '(root)'}: an array without items")
        else:
            raise Inexpressible(f"at {at or '(root)'}: an array of any items")


_WITH_PARTS = {"object", "array"}

_TYPE_OF_KEYWORD = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
        "object",
    ),
}


def _for_type(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The keywords of a schema that say something about values of one type."""
    own = "number" if kind == "integer" else kind
    kept = {keyword: value for keyword, value in schema.items() if _TYPE_OF_KEYWORD.get(keyword, own) == own}
    if "enum" in kept:
        kept["enum"] = [v for v in kept["enum"] if _type_of(v) == kind or (kind, _type_of(v)) == ("number", "integer")]
        if not kept["enum"]:
            raise Inexpressible(f"no value of enum is of type {kind}")
    return kept


def _structure(value: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """A schema for one object or array, member by member: providers take scalars as constants."""
    if isinstance(value, dict):
        members = {name: {"const": part} for name, part in value.items()}
        return {"type": "object", "properties": members, "required": list(value), "additionalProperties": False}
    if not value:
        return {"type": "array", "items": {"type": "null"}, "maxItems": 0}
    items = [{"const": part} for part in value]
    return {"type": "array", "prefixItems": items, "items": False, "minItems": len(value), "maxItems": len(value)}


def _may_be_null(schema: Any) -> bool:
    """Whether a schema itself says that null is among its values: then null means null, and not absence."""
    if not isinstance(schema, Mapping):
        return False
    types = schema.get("type")
    if types == "null" or (isinstance(types, list) and "null" in types):
        return True
    return any(map(_may_be_null, schema.get("anyOf", schema.get("oneOf", ()))))


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (list, dict)):
        return "array" if isinstance(value, list) else "object"
    return "integer" if isinstance(value, int) else "number"


def _at(schema: Any, pointer: str) -> Any:
    place = schema
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, Mapping) and name in place:
            place = place[name]
        elif isinstance(place, list) and name.isdigit() and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
