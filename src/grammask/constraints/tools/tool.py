"""Tools: what a model may call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grammask.constraints.json_schema.constraint import parse_schema
from grammask.engine.errors import ConstraintSyntaxError, UnsatisfiableConstraint

NAME = re.compile(r"[A-Za-z0-9_.\-/]{1,128}")
"""Tool names: letters, digits and ``_ . - /``. Every format can tell where such a name ends."""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.

    Attributes:
        name: see ``NAME``.
        parameters: JSON Schema of the arguments, an object.
        description: for the prompt; not enforced.
        function: what ``run`` calls, if the tool was made from a Python function.
        read: from JSON arguments to the keyword arguments of ``function``.
    """

    name: str
    parameters: Mapping[str, Any]
    description: str = ""
    function: Callable[..., Any] | None = field(default=None, compare=False)
    read: Callable[[str], dict[str, Any]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ConstraintSyntaxError(
                f"the tool name {self.name!r} is not made of 1 to 128 letters, digits and _ . - /",
                hint="rename the tool; the model then calls it by the new name",
            )

    def as_dict(self) -> dict[str, Any]:
        """The tool as chat templates and HTTP interfaces take it."""
        content = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": content}

    def run(self, arguments: Mapping[str, Any]) -> Any:
        """Calls the Python function with arguments read into the types of its signature.

        Raises:
            TypeError: the tool was not made from a function.
            ValueError: the arguments do not fit the signature.
        """
        if self.function is None or self.read is None:
            raise TypeError(f"the tool {self.name!r} was not made from a Python function")
        return self.function(**self.read(json.dumps(arguments)))


def as_tool(value: Tool | Mapping[str, Any] | Callable[..., Any]) -> Tool:
    """A tool from a Tool, from a Python function, or from a description as HTTP interfaces take it (with or without
    ``{"type": "function", "function": ...}`` around it).

    Raises:
        ConstraintSyntaxError: none of these, or malformed.
    """
    if isinstance(value, Tool):
        return value
    if isinstance(value, Mapping):
        content = value["function"] if isinstance(value.get("function"), Mapping) else value
        name = str(content.get("name", ""))
        parameters = content.get("parameters", content.get("input_schema"))
        return Tool(name, object_schema(parameters, name), content.get("description") or "")
    if callable(value):
        from grammask.constraints.tools.functions import tool_from_function

        return tool_from_function(value)
    raise ConstraintSyntaxError(f"a tool is a description, a function or a Tool, not {type(value).__name__}")


def object_schema(schema: Any, name: str) -> dict[str, Any]:
    """The schema of a tool's arguments, which are always an object; no schema means no arguments.

    Raises:
        ConstraintSyntaxError: not a schema.
        UnsatisfiableConstraint: it allows no object.
    """
    if schema is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if schema is True:
        return {"type": "object"}
    if schema is False:
        raise UnsatisfiableConstraint(f"the parameters of {name} allow no object", pointer="")
    if isinstance(schema, str):
        schema = parse_schema(schema)
    if not isinstance(schema, Mapping):
        raise ConstraintSyntaxError(f"the parameters of {name} are not a JSON Schema", pointer="")
    types = schema.get("type")
    if types == "object":
        return dict(schema)
    if types is not None and not (isinstance(types, list) and "object" in types):
        raise UnsatisfiableConstraint(
            f"the parameters of {name} allow no object",
            pointer="/type",
            hint='arguments are an object: "type": "object"',
        )
    narrowed = {**schema, "type": "object"}
    if "$ref" in narrowed:  # drafts up to 7 ignore what stands beside a reference
        narrowed["allOf"] = [*narrowed.get("allOf", []), {"$ref": narrowed.pop("$ref")}]
    return narrowed
