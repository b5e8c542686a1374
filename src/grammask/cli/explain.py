"""``grammask explain``: what of a schema is enforced, how, and what is annotation only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grammask.cli.check import byte_matcher
from grammask.cli.console import UsageError, errors_as_exit_codes, note
from grammask.cli.constraints import (
    FLEXIBLE,
    ConstraintOptions,
    PropertyOrder,
    PropertyOrderOption,
    SchemaOption,
    TypeOption,
    WhitespaceOption,
)
from grammask.cli.places import quote

if TYPE_CHECKING:
    from grammask.constraints.json_schema import Entry

EXAMPLES = """
Examples:

  grammask explain --schema record.json

  grammask explain --type shop:Order --json-output

Each line is a place in the schema (a JSON pointer), a keyword, what becomes of it, and how.

Exit status:

  0 the schema can be enforced; 2 wrong usage; 3 it cannot, and the message says where and why.
"""


def explain(
    schema: SchemaOption = None,
    type_name: TypeOption = None,
    property_order: PropertyOrderOption = PropertyOrder.SCHEMA,
    whitespace: WhitespaceOption = FLEXIBLE,
    as_json: Annotated[bool, typer.Option("--json-output", help="The report as a JSON list.")] = False,
) -> None:
    """Report which keywords of a schema are enforced, how, and which are annotations."""
    with errors_as_exit_codes():
        options = ConstraintOptions(schema, type_name, property_order=property_order, whitespace=whitespace)
        if options.resolve() is None:
            raise UsageError("no schema: give one of --schema and --type")
        constraint: Any = options.require()
        report: Sequence[Entry] = constraint.report()
        if as_json:
            typer.echo(json.dumps([entry._asdict() for entry in report], ensure_ascii=False))
        else:
            for line in _lines(report):
                typer.echo(line)
        matcher = byte_matcher(constraint)
        counts = Counter(entry.status for entry in report)
        note(f"{counts['enforced']} keywords enforced, {counts['annotation']} annotations; an output can be produced")
        start = matcher.forced_bytes(80)
        if start:
            note(f"every output begins with {quote(start)}")


def _lines(report: Sequence[Entry]) -> list[str]:
    """The report in columns."""
    rows = [(entry.pointer or "(root)", entry.keyword, entry.status, entry.how) for entry in report]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]
