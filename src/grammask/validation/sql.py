"""Checks of SQL against a real database, for queries that are being written: values that exist, and results.

The form of a query is a matter of its grammar (``grammask.sql_constraint``). What a grammar cannot know is the data:
that no customer is called like this, or that the query finds nothing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from grammask.validation.parts import Part, whole

_NAME = r'(?:"(?:[^"]|"")*"|[A-Za-z_][A-Za-z0-9_]*)'
_VALUE = r"'(?:[^']|'')*'|-?[0-9]+(?:\.[0-9]+)?"
_EQUAL = re.compile(rf"(?P<column>{_NAME})\s*=\s*(?P<value>{_VALUE})")


def sql_parts(text: str, ended: bool) -> list[Part]:
    """Parts are the texts and numbers that columns are equal to, and the whole query. One that ends where the query so
    far does could still go on (a further digit, a doubled quote), so it counts when something follows."""
    comparisons = [
        Part(match["value"], match.start("value"), match.end(), text[: match.end()], value=match)
        for match in _EQUAL.finditer(text)
        if ended or match.end() < len(text)
    ]
    return [*comparisons, *whole(text, ended)]


class SqlCheck:
    """Refuses values that no row has, and queries that fail or find nothing.

    Args:
        connection: the database; only read.
        tables: those to look into; None are all.
        rows: whether a query has to find at least one row.
        steps: how many steps of SQLite's virtual machine a query may take.

    A check for ``generate_checked(..., parts=sql_parts)``.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        tables: Iterable[str] | None = None,
        rows: bool = True,
        steps: int = 1_000_000,
    ) -> None:
        self._connection = connection
        self._rows = rows
        self._steps = steps
        wanted = None if tables is None else set(tables)
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        self._columns: dict[str, list[str]] = {}
        """Column, in lower case -> tables that have it."""
        for (table,) in found:
            if wanted is not None and table not in wanted:
                continue
            for row in connection.execute(f"PRAGMA table_info({_quoted(table)})"):
                self._columns.setdefault(row[1].lower(), []).append(table)

    def __call__(self, part: Part) -> str | None:
        return self._whole(part.text) if part.is_whole else self._comparison(part.value)

    def _comparison(self, match: re.Match[str]) -> str | None:
        column = _plain(match["column"])
        value = _read(match["value"])
        tables = self._columns.get(column.lower())
        if not tables:
            return None
        for table in tables:
            query = f"SELECT 1 FROM {_quoted(table)} WHERE {_quoted(column)} = ? LIMIT 1"
            if self._connection.execute(query, (value,)).fetchone() is not None:
                return None
        return f"no row has {column} {match['value']}"

    def _whole(self, query: str) -> str | None:
        left = self._steps

        def out_of_patience() -> int:
            nonlocal left
            left -= 1000
            return left <= 0

        self._connection.set_progress_handler(out_of_patience, 1000)
        try:
            row = self._connection.execute(query).fetchone()
        except sqlite3.Error as error:
            return f"the query fails: {error}"
        finally:
            self._connection.set_progress_handler(None, 0)
        return "the query finds nothing" if self._rows and row is None else None


def _read(literal: str) -> str | float:
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else float(literal)


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
