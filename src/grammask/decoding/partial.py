"""Partial typed values: what the beginning of an output tells of its value.

``partial_reader(wanted)`` gives, for whatever an output may be asked to be, a function from a beginning of its text to
a partial value:

===========================  =======================================================================
free text, Regex, Choice ...  the text
JsonSchema, JsonValue         the JSON value, see ``partial_json``
dataclass                     an instance of a subclass, with the attributes that are known
Pydantic model                an instance made without validation, with the fields that are known
NamedTuple                    a dict of the members that are known
other types                   dicts and lists of typed values
===========================  =======================================================================

A member that has not been written is absent: reading it from a dataclass or a model raises AttributeError, also where
the class has a default. Leaves have their type (a date is a ``date``) once they are complete; before that, a string is
there as ``PartialText`` where the type is ``str``, and anything else is absent.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from grammask.decoding.partial_json import ABSENT, PartialText, partial_json


def partial_reader(wanted: Any) -> Callable[[str], Any]:
    """From the beginning of an output to its partial value.

    Args:
        wanted: what ``Model.generate`` takes as its constraint.
    """
    from grammask.constraints.base import Constraint
    from grammask.constraints.json_schema import JsonSchema
    from grammask.constraints.json_value import JsonValue
    from grammask.constraints.types import TypedOutput
    from grammask.decoding.output import Output
    from grammask.engine.compile import CompiledConstraint

    if isinstance(wanted, Output):
        return wanted.partial
    if isinstance(wanted, CompiledConstraint):
        wanted = wanted.constraint
    if isinstance(wanted, (JsonSchema, JsonValue, TypedOutput)):
        return partial_json
    if wanted is None or isinstance(wanted, (Constraint, str)):
        return _as_it_is

    def read(text: str) -> Any:
        value = _typed(wanted, partial_json(text, parse_float=Decimal))
        return None if value is ABSENT else value

    return read


def _as_it_is(text: str) -> str:
    return text


def _typed(python_type: Any, value: Any) -> Any:
    """A partial JSON value as a partial value of a type."""
    origin, arguments = typing.get_origin(python_type), typing.get_args(python_type)
    if origin is typing.Annotated:
        return _typed(arguments[0], value)
    if origin is typing.Union or origin is types.UnionType:
        return _one_of(arguments, value)
    if isinstance(value, dict):
        return _object(python_type, arguments, value)
    if isinstance(value, list):
        kinds = _item_types(origin or python_type, arguments, len(value))
        return [item for item in map(_typed, kinds, value) if item is not ABSENT]
    if isinstance(value, PartialText):
        return value if python_type in (str, Any, object) else ABSENT
    return _leaf(python_type, value)


def _one_of(options: tuple[Any, ...], value: Any) -> Any:
    """Of a union, the one option that can hold such a value; the plain value where several can."""
    if isinstance(value, PartialText):
        return value if str in options else ABSENT
    if value is None or not isinstance(value, (dict, list)):
        return _leaf(typing.Union[options], value)  # noqa: UP007 - made from a tuple
    kind = dict if isinstance(value, dict) else list
    fitting = [option for option in options if _is_collection(option, kind)]
    return _typed(fitting[0], value) if len(fitting) == 1 else value


def _is_collection(python_type: Any, kind: type) -> bool:
    origin = typing.get_origin(python_type) or python_type
    if origin is typing.Annotated:
        return _is_collection(typing.get_args(python_type)[0], kind)
    if not isinstance(origin, type):
        return False
    if _members(origin) is not None or issubclass(origin, Mapping):
        return kind is dict
    return kind is list and not issubclass(origin, (str, bytes)) and hasattr(origin, "__iter__")


def _item_types(collection: Any, arguments: tuple[Any, ...], count: int) -> list[Any]:
    if collection is tuple and arguments and arguments[-1] is not Ellipsis:
        return [*arguments[:count], *[Any] * (count - len(arguments))]
    return [arguments[0] if arguments else Any] * count


def _object(python_type: Any, arguments: tuple[Any, ...], value: dict[str, Any]) -> Any:
    members = _members(python_type)
    if members is None:
        kind = arguments[1] if len(arguments) == 2 else Any
        members = {name: (name, kind) for name in value}
    known = {}
    for name, item in value.items():
        attribute, kind = members.get(name, (name, Any))
        typed = _typed(kind, item)
        if typed is not ABSENT:
            known[attribute] = typed
    if isinstance(python_type, type) and dataclasses.is_dataclass(python_type):
        return _partial_dataclass(python_type, known)
    if hasattr(python_type, "__pydantic_fields__"):
        model = python_type.__new__(python_type)
        for name, content in (
            ("__dict__", known),
            ("__pydantic_fields_set__", set(known)),
            ("__pydantic_extra__", None),
            ("__pydantic_private__", None),
        ):
            object.__setattr__(model, name, content)
        return model
    return known


def _members(python_type: Any) -> dict[str, tuple[str, Any]] | None:
    """JSON name -> (attribute, type) of a class with members, None for other types."""
    fields = getattr(python_type, "__pydantic_fields__", None)
    if fields is not None and not dataclasses.is_dataclass(python_type):
        return {_json_name(name, field): (name, field.annotation) for name, field in fields.items()}
    is_named_tuple = (
        isinstance(python_type, type) and issubclass(python_type, tuple) and hasattr(python_type, "_fields")
    )
    if dataclasses.is_dataclass(python_type) or typing.is_typeddict(python_type) or is_named_tuple:
        return {name: (name, _bare(hint)) for name, hint in _hints(python_type).items()}
    return None


def _json_name(name: str, field: Any) -> str:
    for alias in (field.validation_alias, field.alias):
        if isinstance(alias, str):
            return alias
    return name


@functools.lru_cache(maxsize=256)
def _hints(python_type: Any) -> dict[str, Any]:
    return typing.get_type_hints(python_type, include_extras=True)


def _bare(hint: Any) -> Any:
    """A member's type without ``Required``, ``NotRequired`` and ``ReadOnly``."""
    while str(typing.get_origin(hint) or "").endswith(("Required", "ReadOnly")):
        hint = typing.get_args(hint)[0]
    return hint


class _Missing:
    """Hides a class attribute that is a field's default. Not a data descriptor, so an instance's own attribute wins."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(f"{self._name} has not been written yet")


@functools.lru_cache(maxsize=256)
def _partial_class(python_type: type) -> type:
    """A subclass whose instances may lack attributes, and which compares and prints those that are there."""
    names = [field.name for field in dataclasses.fields(python_type)]

    def known(instance: object) -> dict[str, Any]:
        return {name: getattr(instance, name) for name in names if hasattr(instance, name)}

    def represent(instance: object) -> str:
        return (
            f"{python_type.__qualname__}({', '.join(f'{name}={value!r}' for name, value in known(instance).items())})"
        )

    def equal(instance: object, other: object) -> bool:
        return isinstance(other, python_type) and known(instance) == known(other)

    hidden = {
        field.name: _Missing(field.name)
        for field in dataclasses.fields(python_type)
        if field.default is not dataclasses.MISSING and field.name not in getattr(python_type, "__slots__", ())
    }
    body = {**hidden, "__repr__": represent, "__eq__": equal, "__hash__": None, "__module__": python_type.__module__}
    return type(python_type.__name__, (python_type,), body)


def _partial_dataclass(python_type: type, known: dict[str, Any]) -> Any:
    made: Any = object.__new__(_partial_class(python_type))
    for name, value in known.items():
        object.__setattr__(made, name, value)
    return made


def _leaf(python_type: Any, value: Any) -> Any:
    """A complete number, string, boolean or null as a value of its type; as it is where the type has no reader."""
    parse = _leaf_parser(python_type) if _is_hashable(python_type) else None
    plain = float(value) if isinstance(value, Decimal) else value
    if parse is None:
        return plain
    try:
        return parse(str(value) if isinstance(value, Decimal) else json.dumps(value))
    except (ValueError, TypeError):
        return plain


def _is_hashable(python_type: Any) -> bool:
    try:
        hash(python_type)
    except TypeError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def _leaf_parser(python_type: Any) -> Callable[[str], Any] | None:
    from grammask.constraints.types import typed_output
    from grammask.engine.errors import ConstraintError

    try:
        return typed_output(python_type).parse
    except (ConstraintError, TypeError, ValueError):
        return None
