"""Python functions as tools: the schema from the signature, descriptions from the docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.tools.tool import Tool
from grammask.constraints.types import typed_output
from grammask.engine.errors import UnsupportedConstraint


def tool_from_function(function: Callable[..., Any], *, name: str | None = None) -> Tool:
    """A tool whose arguments are the parameters of a function.

    Types are those of ``constraint_for``; a parameter without annotation takes any JSON value, one with a default may
    be left out. The first paragraph of the docstring describes the tool; parameters are described in the style of
    Google (``Args:``), NumPy (``Parameters``) or Sphinx (``:param x:``).

    Raises:
        UnsupportedConstraint: a type has no JSON form, or the function takes ``*args``, ``**kwargs`` or parameters by
            position only.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    called = name or str(getattr(function, "__name__", type(function).__name__))
    fields: list[tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UnsupportedConstraint(
                f"{called}: the parameter {parameter.name} cannot be given by name",
                hint="wrap the function in one whose parameters have names, or write the schema",
            )
        kind = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind, dataclasses.field()))
        else:
            fields.append((parameter.name, kind, dataclasses.field(default_factory=_always(parameter.default))))
    record = dataclasses.make_dataclass("Arguments", fields, kw_only=True)
    output = typed_output(record)
    assert isinstance(output.constraint, JsonSchema)
    summary, described = _docstring(inspect.getdoc(function) or "")
    schema = _flat(output.constraint.schema)
    properties = schema.get("properties", {})
    schema["properties"] = {
        key: {**part, "description": described[key]} if key in described and isinstance(part, dict) else part
        for key, part in properties.items()
    }
    schema["additionalProperties"] = False

    def read(arguments: str) -> dict[str, Any]:
        record_ = output.parse(arguments)
        return {field.name: getattr(record_, field.name) for field in dataclasses.fields(record)}

    return Tool(called, schema, summary, function, read)


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _flat(schema: Any) -> dict[str, Any]:
    """The schema of a record with the record itself at the root."""
    definitions = dict(schema.get("$defs", {}))
    flat = {key: value for key, value in schema.items() if key != "$defs"}
    if "$ref" in flat:
        flat = dict(definitions.pop(flat["$ref"].rpartition("/")[2]))
    return {**flat, "$defs": definitions} if definitions else flat


_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):?$")
_ENTRY = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^(\w+)(?:\s*:.*)?$")
_SPHINX_ENTRY = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and the descriptions of parameters by name."""
    lines = text.splitlines()
    summary: list[str] = []
    for line in lines:
        if not line.strip() or _SPHINX_ENTRY.match(line):
            break
        summary.append(line.strip())
    described: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        sphinx = _SPHINX_ENTRY.match(line.strip())
        if sphinx:
            described[sphinx[1]] = [sphinx[2]]
        elif _SECTION.match(line.strip()):
            rest = lines[number + 1 :]
            underlined = bool(rest) and set(rest[0].strip()) == {"-"}
            entries = _numpy_entries(rest[1:]) if underlined else _google_entries(rest)
            described.update(entries)
    return " ".join(summary), {name: " ".join(filter(None, parts)) for name, parts in described.items()}


def _google_entries(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name, depth = "", 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip() or not indent:
            break
        entry = _ENTRY.match(line.strip())
        if entry and (not name or indent <= depth):
            name, depth = entry[1].lstrip("*"), indent
            found[name] = [entry[2]]
        elif name:
            found[name].append(line.strip())
    return found


def _numpy_entries(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if not line.strip():
            break
        entry = None if line[0].isspace() else _NUMPY_ENTRY.match(line)
        if entry:
            name = entry[1]
            found[name] = []
        elif name:
            found[name].append(line.strip())
    return found
