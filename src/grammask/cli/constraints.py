"""From options to a constraint."""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from grammask.cli.console import UsageError, note
from grammask.cli.inputs import read_json, read_text
from grammask.constraints.json_schema.whitespace import Whitespace as WhitespaceName

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint

PANEL = "Constraint (at most one)"

SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="JSON Schema: a file, or the schema itself if it begins with {.",
        rich_help_panel=PANEL,
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="MODULE:NAME",
        help="Python type: a Pydantic model, dataclass, TypedDict, Enum, or any annotation bound to a name. "
        "The module is imported from the current folder or the environment.",
        rich_help_panel=PANEL,
    ),
]
RegexOption = Annotated[
    str | None,
    typer.Option(
        "--regex", metavar="PATTERN", help="Regular expression that the whole text matches.", rich_help_panel=PANEL
    ),
]
ChoiceOption = Annotated[
    list[str] | None,
    typer.Option("--choice", metavar="TEXT", help="One of several texts; repeat for each.", rich_help_panel=PANEL),
]
GrammarOption = Annotated[
    Path | None,
    typer.Option("--grammar", metavar="FILE", help="Grammar: a .gbnf or .lark file.", rich_help_panel=PANEL),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Any JSON value.", rich_help_panel=PANEL)]


class PropertyOrder(str, Enum):
    """In which order the members of objects may come."""

    SCHEMA = "schema"
    ANY = "any"


@dataclass(frozen=True)
class Whitespace:
    """Where blanks may stand in JSON: a name, or a number for the layout of ``json.dumps(indent=...)``."""

    value: WhitespaceName | int = "flexible"

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def parse(cls, text: str | Whitespace) -> Whitespace:
        """From the command line."""
        if isinstance(text, Whitespace):
            return text
        if text in get_args(WhitespaceName):
            return cls(cast("WhitespaceName", text))
        if text.isascii() and text.isdigit():
            return cls(int(text))
        raise typer.BadParameter(f"{text!r} is none of flexible, compact, python, or a number of blanks to indent by")


FLEXIBLE = Whitespace()


PropertyOrderOption = Annotated[
    PropertyOrder,
    typer.Option(
        "--property-order",
        help="For --schema and --type: members in the order that the schema lists them, or in any order.",
        rich_help_panel=PANEL,
    ),
]
WhitespaceOption = Annotated[
    Whitespace,
    typer.Option(
        "--whitespace",
        parser=Whitespace.parse,
        metavar="[flexible|compact|python|N]",
        help="For JSON: blanks wherever they are allowed, nowhere, one after each comma and colon, or lines indented "
        "by N.",
        rich_help_panel=PANEL,
    ),
]


@dataclass(frozen=True)
class ConstraintOptions:
    """The constraint options of one command line."""

    schema: str | None = None
    type_name: str | None = None
    regex: str | None = None
    choices: list[str] = field(default_factory=list)
    grammar: Path | None = None
    json: bool = False
    property_order: PropertyOrder = PropertyOrder.SCHEMA
    whitespace: Whitespace = FLEXIBLE

    def resolve(self) -> Any:
        """The Constraint, a TypedOutput for ``--type``, or None if no option was given.

        Raises:
            UsageError: more than one option, or a file or type that is not there.
            ConstraintError: the constraint is malformed.
        """
        given = [
            name
            for name, value in [
                ("--schema", self.schema is not None),
                ("--type", self.type_name is not None),
                ("--regex", self.regex is not None),
                ("--choice", bool(self.choices)),
                ("--grammar", self.grammar is not None),
                ("--json", self.json),
            ]
            if value
        ]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} exclude each other: give one constraint")
        if self.type_name is not None:
            from grammask.constraints.types import typed_output

            return typed_output(import_type(self.type_name), **self._json_options())
        return self._constraint()

    def require(self) -> Constraint:
        """Like ``resolve``, but always a Constraint; an error without any option."""
        value = self.resolve()
        if value is None:
            raise UsageError("no constraint: give one of --schema, --type, --regex, --choice, --grammar, --json")
        constraint: Constraint = value if self.type_name is None else value.constraint
        return constraint

    def _json_options(self) -> dict[str, Any]:
        return {"property_order": self.property_order.value, "whitespace": self.whitespace.value}

    def _constraint(self) -> Constraint | None:
        import grammask

        if self.schema is not None:
            return grammask.JsonSchema(load_schema(self.schema), **self._json_options())
        if self.regex is not None:
            return grammask.Regex(self.regex)
        if self.choices:
            return grammask.Choice(self.choices)
        if self.grammar is not None:
            return load_grammar(self.grammar)
        return grammask.JsonValue(whitespace=self.whitespace.value) if self.json else None


def load_schema(text: str) -> Any:
    """A JSON Schema from a file, or written out on the command line."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"--schema is not JSON: {error.msg} at column {error.colno}") from error
    return read_json(text)


def load_grammar(path: Path) -> Constraint:
    """A grammar file; its ending says in which notation. Its diagnostics go to standard error."""
    import grammask
    from grammask.constraints.grammar.model import GrammarWarning

    readers = {".gbnf": grammask.Grammar.gbnf, ".lark": grammask.Grammar.lark}
    if path.suffix not in readers:
        raise UsageError(f"--grammar {path}: the file's name must end in .gbnf or .lark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        grammar = readers[path.suffix](read_text(str(path)))
    for found in grammar.diagnostics():
        note(f"{path}: {found}")
    return grammar


def import_type(name: str) -> Any:
    """The object ``module:attribute``, the module being looked for in the current folder first."""
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise UsageError(f"--type must look like module:Name, not {name!r}")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        value: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"--type {name}: cannot import {module_name}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise UsageError(f"--type {name}: {module_name} has no {attribute}")
        value = getattr(value, part)
    return value
