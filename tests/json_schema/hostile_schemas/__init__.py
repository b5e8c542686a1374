"""Schemas made to hurt, as data: each is to be answered within the limits of time and memory.

A row makes its schema when it is asked to, in the process that compiles it. Rows of a few bytes (``multipleOf``,
counts) attack what is built from them; rows of megabytes attack what reads them. Each module is a table of one kind.
"""

from __future__ import annotations

from json_schema.hostile_schemas.combinations import COMBINATIONS
from json_schema.hostile_schemas.counts import COUNTS
from json_schema.hostile_schemas.documents import DOCUMENTS
from json_schema.hostile_schemas.enums import ENUMS
from json_schema.hostile_schemas.malformed import MALFORMED
from json_schema.hostile_schemas.numbers import NUMBERS
from json_schema.hostile_schemas.references import REFERENCES
from json_schema.hostile_schemas.row import Row
from json_schema.hostile_schemas.strings import PATTERNS, STRINGS

ROWS: dict[str, Row] = {
    f"{table}: {name}": row
    for table, rows in {
        "combinations": COMBINATIONS,
        "combinations in any order": {
            name: row._replace(options={"property_order": "any"})
            for name, row in COMBINATIONS.items()
            if name.startswith(("allOf", "dependent", "if", "not", "unevaluatedProperties"))
        },
        "documents": DOCUMENTS,
        "enums": ENUMS,
        "counts": COUNTS,
        "patterns": PATTERNS,
        "strings": STRINGS,
        "numbers": NUMBERS,
        "references": REFERENCES,
        "malformed": MALFORMED,
    }.items()
    for name, row in rows.items()
}
