"""Python types as constraints: the JSON texts that stand for values of a type, and the way back.

``constraint_for(type)`` is the constraint; ``typed_output(type)`` adds ``parse``, from the text to a value of the type.

=============================================  =================================================
``None``, ``bool``, ``int``, ``float``, ``str``  null, booleans, integers, numbers, strings
``Decimal``                                     numbers, read without rounding
``datetime``, ``date``, ``time``, ``timedelta``  strings in RFC 3339 form (durations: ``P1DT2H``)
``UUID``, ``Path``                              strings
``Literal``, ``Enum``                           the listed values
``list``, ``set``, ``frozenset``, ``tuple``     arrays (sets: different items)
``dict[str, X]``                                objects; ``Literal`` or ``Enum`` keys limit the names
``X | Y``, ``Optional``                         either
dataclass, ``TypedDict``, ``NamedTuple``        objects with exactly these members, in this order
Pydantic models, and types that hold one        what ``model_json_schema()`` says; parsed by Pydantic
``Annotated[X, ...]``                           X with limits: ``annotated_types``, ``pydantic.Field``, a dict
``Any``                                         any JSON value
=============================================  =================================================
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import inspect
import json
import pathlib
import re
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from grammask.constraints.base import Constraint
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import UnsupportedConstraint

T = TypeVar("T")

Schema = dict[str, Any]
Reader = Callable[[Any], Any]
"""From a JSON value to a value of the type; raises ValueError where the value does not fit."""


@dataclass(frozen=True)
class TypedOutput(Generic[T]):
    """A type as an output format.

    Attributes:
        constraint: the JSON texts of values of the type.
        parse: from such a text to the value; raises ValueError for another text.
    """

    constraint: Constraint
    parse: Callable[[str], T]


def constraint_for(python_type: Any, **options: Any) -> Constraint:
    """The JSON texts of values of a type.

    Args:
        python_type: see the table of this module.
        options: as for ``JsonSchema`` (property_order, whitespace, ...).

    Raises:
        UnsupportedConstraint: the type has no JSON form.
    """
    return typed_output(python_type, **options).constraint


def typed_output(python_type: Any, **options: Any) -> TypedOutput[Any]:
    """The constraint of a type together with the parser of its texts; arguments as for ``constraint_for``."""
    if _holds_pydantic(python_type):
        return _pydantic_output(python_type, options)
    describer = _Describer()
    schema, read = describer.describe(python_type, "")
    if describer.definitions:
        schema = {**schema, "$defs": describer.definitions}

    def parse(text: str) -> Any:
        return read(json.loads(text, parse_float=Decimal))

    return TypedOutput(JsonSchema(schema, **options), parse)


# -- Pydantic


def _holds_pydantic(python_type: Any) -> bool:
    """Whether a type is, or mentions, a Pydantic model; Pydantic is not imported for the question."""
    if "pydantic" not in sys.modules:
        return False
    return any(hasattr(part, "__pydantic_core_schema__") for part in _mentioned(python_type))


def _mentioned(python_type: Any) -> Iterator[Any]:
    seen: list[Any] = []
    waiting = [python_type]
    while waiting:
        part = waiting.pop()
        if any(part is known for known in seen):
            continue
        seen.append(part)
        yield part
        waiting += typing.get_args(part)
        has_members = dataclasses.is_dataclass(part) or typing.is_typeddict(part) or _is_named_tuple(part)
        if has_members and isinstance(part, type):  # the metadata of Annotated may be an instance
            waiting += _hints(part).values()


def _pydantic_output(python_type: Any, options: Mapping[str, Any]) -> TypedOutput[Any]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(python_type)

    def parse(text: str) -> Any:
        return adapter.validate_json(text)

    return TypedOutput(JsonSchema(adapter.json_schema(), **options), parse)


# -- everything else


def _expect(kind: type | tuple[type, ...], name: str) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"expected {name}, got {value!r}")
        return value

    return read


def _read_integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value != int(value):
        raise ValueError(f"expected an integer, got {value!r}")
    return int(value)


def _read_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


def _read_decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError(f"expected a number, got {value!r}")
    return Decimal(value)


def _read_datetime(value: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_iso(value))


def _read_time(value: Any) -> datetime.time:
    return datetime.time.fromisoformat(_iso(value))


def _iso(value: Any) -> str:
    """RFC 3339 text in the narrower form that Python before 3.11 reads."""
    text = str(_expect(str, "a string")(value)).upper().replace("Z", "+00:00")
    return re.sub(r"\.(\d+)", lambda match: "." + match[1][:6].ljust(6, "0"), text)


_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.ASCII
)


def _read_duration(value: Any) -> datetime.timedelta:
    match = _DURATION.fullmatch(_expect(str, "a string")(value))
    if match is None or not any(match.groups()):
        raise ValueError(f"expected a duration such as P1DT2H, got {value!r}")
    years, months, weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    if years or months:
        raise ValueError(f"{value!r} counts months, whose length varies")
    return datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


_N = "[0-9]{1,6}"
_DURATION_PATTERN = f"^P(?:{_N}W|(?:{_N}D)?T(?:{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S)|{_N}D)$"
# Python's datetime knows no year 0 and no second 60.
_DATE = {"type": "string", "format": "date", "pattern": "^(?!0000)"}
_DATETIME = {"type": "string", "format": "date-time", "pattern": "^(?!0000).{17}[0-5]"}
_TIME = {"type": "string", "format": "time", "pattern": "^.{6}[0-5]"}

_SCALARS: dict[Any, tuple[Schema, Reader]] = {
    type(None): ({"type": "null"}, _expect(type(None), "null")),
    bool: ({"type": "boolean"}, _expect(bool, "a boolean")),
    int: ({"type": "integer"}, _read_integer),
    float: ({"type": "number"}, _read_float),
    str: ({"type": "string"}, _expect(str, "a string")),
    Decimal: ({"type": "number"}, _read_decimal),
    datetime.datetime: (_DATETIME, _read_datetime),
    datetime.date: (_DATE, lambda value: datetime.date.fromisoformat(_expect(str, "a string")(value))),
    datetime.time: (_TIME, _read_time),
    datetime.timedelta: ({"type": "string", "pattern": _DURATION_PATTERN}, _read_duration),
    uuid.UUID: ({"type": "string", "format": "uuid"}, lambda value: uuid.UUID(_expect(str, "a string")(value))),
    pathlib.Path: ({"type": "string"}, lambda value: pathlib.Path(_expect(str, "a string")(value))),
}

_SEQUENCES = {list: list, collections.abc.Sequence: list, collections.abc.Iterable: list}
_SETS = {set: set, frozenset: frozenset, collections.abc.Set: frozenset, collections.abc.MutableSet: set}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

_LIMITS = {
    "ge": ("minimum", None),
    "gt": ("exclusiveMinimum", None),
    "le": ("maximum", None),
    "lt": ("exclusiveMaximum", None),
    "multiple_of": ("multipleOf", None),
    "min_length": ("minLength", "minItems"),
    "max_length": ("maxLength", "maxItems"),
    "pattern": ("pattern", None),
}
"""Attribute of an annotation -> keyword for scalars, and for arrays where it differs."""


class _Describer:
    """Describes types; classes that may refer to themselves become definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._classes: dict[Any, tuple[str, list[Reader]]] = {}

    def describe(self, python_type: Any, where: str) -> tuple[Schema, Reader]:
        if python_type is None:
            python_type = type(None)
        if python_type is Any or python_type is object:
            return {}, _plain
        scalar = _SCALARS.get(python_type) if isinstance(python_type, type) else None
        if scalar is not None:
            return dict(scalar[0]), scalar[1]
        alias = getattr(python_type, "__supertype__", None) or getattr(python_type, "__value__", None)
        if alias is not None:
            return self.describe(alias, where)
        if isinstance(python_type, TypeVar):
            return self.describe(python_type.__bound__ or Any, where)
        origin, args = typing.get_origin(python_type), typing.get_args(python_type)
        if origin is typing.Annotated:
            return self._annotated(args[0], args[1:], where)
        if origin is typing.Literal:
            return self._one_of(args, where)
        if origin is typing.Union or origin is types.UnionType:
            return self._either(args, where)
        if str(origin or "").endswith(("Required", "ReadOnly")):  # NotRequired and the like, from any module
            return self.describe(args[0], where)
        if inspect.isclass(python_type) and issubclass(python_type, enum.Enum):
            return self._one_of(tuple(python_type), where)
        if dataclasses.is_dataclass(python_type) or typing.is_typeddict(python_type) or _is_named_tuple(python_type):
            return self._record(python_type, where)
        return self._collection(origin or python_type, args, python_type, where)

    def _collection(self, origin: Any, args: tuple[Any, ...], python_type: Any, where: str) -> tuple[Schema, Reader]:
        if origin in _SEQUENCES or origin in _SETS:
            make = _SEQUENCES.get(origin) or _SETS[origin]
            items, read = self.describe(args[0] if args else Any, where + "[]")
            schema: Schema = {"type": "array", "items": items}
            if origin in _SETS:
                schema["uniqueItems"] = True
            return schema, lambda value: make([read(item) for item in _expect(list, "an array")(value)])
        if origin is tuple:
            return self._tuple(args if python_type is not tuple else (Any, ...), where)
        if origin in _MAPPINGS:
            return self._mapping(args, where)
        raise UnsupportedConstraint(
            f"{where or 'the type'}: {python_type!r} has no JSON form known here",
            hint="use a dataclass, a TypedDict, a Pydantic model, or pass a JsonSchema",
        )

    def _tuple(self, args: tuple[Any, ...], where: str) -> tuple[Schema, Reader]:
        if len(args) == 2 and args[1] is Ellipsis:
            items, read = self.describe(args[0], where + "[]")
            return {"type": "array", "items": items}, lambda value: tuple(
                [read(item) for item in _expect(list, "an array")(value)]
            )
        args = () if args == ((),) else args
        parts = [self.describe(arg, f"{where}[{i}]") for i, arg in enumerate(args)]
        schema: Schema = {"type": "array", "items": False, "minItems": len(parts)}
        if parts:
            schema["prefixItems"] = [part for part, _ in parts]

        def read_tuple(value: Any) -> tuple[Any, ...]:
            if not isinstance(value, list) or len(value) != len(parts):
                raise ValueError(f"expected an array of {len(parts)}, got {value!r}")
            return tuple([read(item) for (_, read), item in zip(parts, value, strict=True)])

        return schema, read_tuple

    def _mapping(self, args: tuple[Any, ...], where: str) -> tuple[Schema, Reader]:
        key_type, value_type = args or (str, Any)
        names, read_key = self.describe(key_type, where + " key")
        values, read = self.describe(value_type, where + "{}")
        schema: Schema = {"type": "object", "additionalProperties": values}
        if key_type is not str:
            text = {**names, "type": "string"} if names else {"type": "string"}
            if ("enum" in names and not all(isinstance(name, str) for name in names["enum"])) or "$ref" in names:
                raise UnsupportedConstraint(f"{where or 'the type'}: keys of a JSON object are strings")
            if names.get("type", "string") != "string":
                raise UnsupportedConstraint(f"{where or 'the type'}: keys of a JSON object are strings")
            schema["propertyNames"] = text

        def read_mapping(value: Any) -> dict[Any, Any]:
            return {read_key(key): read(item) for key, item in _expect(dict, "an object")(value).items()}

        return schema, read_mapping

    def _one_of(self, members: tuple[Any, ...], where: str) -> tuple[Schema, Reader]:
        values = [member.value if isinstance(member, enum.Enum) else member for member in members]
        for value in values:
            if value is not None and not isinstance(value, (str, int, float, bool)):
                raise UnsupportedConstraint(f"{where or 'the type'}: the value {value!r} has no JSON form known here")

        def read(found: Any) -> Any:
            for member, value in zip(members, values, strict=True):
                if found == value and isinstance(found, bool) == isinstance(value, bool):
                    return member
            raise ValueError(f"{found!r} is not one of {values!r}")

        return {"enum": values}, read

    def _either(self, args: tuple[Any, ...], where: str) -> tuple[Schema, Reader]:
        options = [self.describe(arg, where) for arg in args]

        def read(value: Any) -> Any:
            problems = []
            for _, option in options:
                try:
                    return option(value)
                except ValueError as problem:
                    problems.append(str(problem))
            raise ValueError("; ".join(problems))

        return {"anyOf": [schema for schema, _ in options]}, read

    def _annotated(self, base: Any, notes: tuple[Any, ...], where: str) -> tuple[Schema, Reader]:
        schema, read = self.describe(base, where)
        schema = dict(schema)
        is_array = schema.get("type") == "array"
        for note in notes:
            if isinstance(note, Mapping):
                schema.update(note)
                continue
            for part in (note, *getattr(note, "metadata", ())):
                for attribute, (keyword, for_arrays) in _LIMITS.items():
                    limit = getattr(part, attribute, None)
                    if limit is not None and not callable(limit):
                        name = for_arrays if is_array and for_arrays else keyword
                        schema[name] = limit.pattern if isinstance(limit, re.Pattern) else limit
        return schema, read

    def _record(self, python_type: Any, where: str) -> tuple[Schema, Reader]:
        known = self._classes.get(python_type)
        if known is None:
            name = python_type.__name__
            while name in self.definitions:
                name += "_"
            readers: list[Reader] = []
            known = self._classes[python_type] = (name, readers)
            self.definitions[name] = {}
            self.definitions[name], read = self._members(python_type)
            readers.append(read)
        name, readers = known
        return {"$ref": f"#/$defs/{_pointer_token(name)}"}, lambda value: readers[0](value)

    def _members(self, python_type: Any) -> tuple[Schema, Reader]:
        required, optional = _fields(python_type)
        hints = _hints(python_type)
        names = [name for name in hints if name in required or name in optional]
        parts = {name: self.describe(hints[name], f"{python_type.__name__}.{name}") for name in names}
        schema = {
            "type": "object",
            "properties": {name: part for name, (part, _) in parts.items()},
            "required": [name for name in names if name in required],
            "additionalProperties": False,
        }

        def read(value: Any) -> Any:
            members = _expect(dict, "an object")(value)
            if not members.keys() <= parts.keys() or not required <= members.keys():
                raise ValueError(f"{sorted(members)} are not the members of {python_type.__name__}")
            return python_type(**{name: parts[name][1](item) for name, item in members.items()})

        return schema, read


def _fields(python_type: Any) -> tuple[set[str], set[str]]:
    """The names of the members that must be there, and of those that may be."""
    if typing.is_typeddict(python_type):
        return set(python_type.__required_keys__), set(python_type.__optional_keys__)
    if _is_named_tuple(python_type):
        optional = set(python_type._field_defaults)
        return set(python_type._fields) - optional, optional
    fields = [field for field in dataclasses.fields(python_type) if field.init]
    missing = dataclasses.MISSING
    optional = {field.name for field in fields if not (field.default is missing and field.default_factory is missing)}
    return {field.name for field in fields} - optional, optional


def _hints(python_type: Any) -> dict[str, Any]:
    return typing.get_type_hints(python_type, include_extras=True)


def _is_named_tuple(python_type: Any) -> bool:
    return inspect.isclass(python_type) and issubclass(python_type, tuple) and hasattr(python_type, "_fields")


def _plain(value: Any) -> Any:
    """A JSON value with floats for the exact numbers it was read with."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _pointer_token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
