"""``sql_constraint``: SELECT queries that name only the tables and columns a database has.

The names are read once; the constraint does not follow later changes of the schema. Which columns a query may name
depends on the table after FROM, so there is one set of rules for every table, and one for every pair of tables that a
foreign key joins. Nesting, lists and literals are bounded, so that every query of the language stays within the limits
of SQLite's parser and prepares.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grammask.constraints.grammar.grammar import Grammar
from grammask.engine.errors import ConstraintError, UnsatisfiableConstraint

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# https://www.sqlite.org/lang_keywords.html
_KEYWORDS = frozenset(
    """
    ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY
    CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE
    CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH
    ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL
    GENERATED GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD
    INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL
    NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE
    RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS
    SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE
    USER USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT
    """.split()  # noqa: SIM905 - a table of words
)

_SHARED_RULES = r"""
ws ::= " " | "\n"
integer ::= "0" | [1-9] [0-9]{0,17}
number ::= "-"? integer ("." [0-9]{1,9})?
string ::= "'" ([^'\x00-\x1F\x7F] | "''"){0,200} "'"
literal ::= number | string | "NULL"
limit ::= ws "LIMIT" ws integer (ws "OFFSET" ws integer)?
alias ::= ws "AS" ws "\"" [A-Za-z_] [A-Za-z0-9_]{0,62} "\""
"""

# Rules of one scope; the angle-bracketed places are filled for each.
_SCOPE_RULES = r"""
query-<N> ::= (plain-<N> | grouped-<N>) order-by-<N>? limit?
plain-<N> ::= "SELECT" ws ("DISTINCT" ws)? ("*" | items-<N>) ws source-<N>
grouped-<N> ::= "SELECT" ws items-<N> ws source-<N> ws "GROUP BY" ws columns-<N> having-<N>?
source-<N> ::= "FROM" ws <FROM> (ws "WHERE" ws condition-<N>)?
having-<N> ::= ws "HAVING" ws aggregate-<N> " " compare " " literal
order-by-<N> ::= ws "ORDER BY" ws order-<N> ("," ws? order-<N>){0,7}
order-<N> ::= column-<N> (ws ("ASC" | "DESC"))?
column-<N> ::= <COLUMNS>
columns-<N> ::= column-<N> ("," ws? column-<N>){0,31}
items-<N> ::= item-<N> ("," ws? item-<N>){0,63}
item-<N> ::= (aggregate-<N> | value-<N>) alias?
aggregate-<N> ::= "COUNT(*)" | "COUNT(DISTINCT " column-<N> ")" | summary "(" value-<N> ")"
operand-<N> ::= column-<N> | literal
simple-<N> ::= operand-<N> | function "(" operand-<N> ")"
  | "COALESCE(" operand-<N> "," ws? operand-<N> ")"
value-<N> ::= term-<N> (" " operator " " term-<N>){0,7}
term-<N> ::= simple-<N> | "(" simple-<N> (" " operator " " simple-<N>){0,7} ")"
test-<N> ::= value-<N> (
    " " compare " " value-<N>
  | ws "IS" ws ("NOT" ws)? "NULL"
  | ws ("NOT" ws)? "IN" ws? "(" literal ("," ws? literal){0,63} ")"
  | ws ("NOT" ws)? "BETWEEN" ws value-<N> ws "AND" ws value-<N>
  | ws ("NOT" ws)? "LIKE" ws string
  )
condition-<N> ::= clause-<N> (ws ("AND" | "OR") ws clause-<N>){0,15}
clause-<N> ::= ("NOT" ws)? (test-<N> | "(" test-<N> (ws ("AND" | "OR") ws test-<N>){0,15} ")")
"""

_OPERATORS = r"""
operator ::= "+" | "-" | "*" | "/" | "%" | "||"
compare ::= "=" | "<>" | "<" | "<=" | ">" | ">="
summary ::= "COUNT" | "SUM" | "AVG" | "MIN" | "MAX"
function ::= "LOWER" | "UPPER" | "LENGTH" | "ABS" | "ROUND" | "TRIM"
"""


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that refer to columns of another."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or view: its name, its columns in their order, its foreign keys."""

    name: str
    columns: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()


def sql_constraint(connection: Any, *, tables: Iterable[str] | None = None) -> Grammar:
    """SELECT queries over the tables and views of a database.

    The language: one table, or two along a foreign key (JOIN, LEFT JOIN); columns, literals, arithmetic, a few scalar
    functions and aggregates; WHERE with AND, OR, NOT, comparisons, IN, BETWEEN, LIKE, IS NULL; GROUP BY with HAVING;
    ORDER BY; LIMIT. Keywords are upper case. Names are spelled as in the schema, quoted where SQL needs it; beside a
    second table, columns are qualified.

    Args:
        connection: a ``sqlite3.Connection``, or a SQLAlchemy engine or connection.
        tables: the tables and views that queries may name; all of them if None.

    Raises:
        UnsatisfiableConstraint: the database has no table.
        ConstraintError: a name in tables does not exist, or the connection is of an unknown kind.
    """
    found = _read_sqlite(connection) if isinstance(connection, sqlite3.Connection) else _read_sqlalchemy(connection)
    if tables is not None:
        wanted = list(tables)
        known = {table.name for table in found}
        for name in wanted:
            if name not in known:
                raise ConstraintError(
                    f"the database has no table or view {name!r}",
                    hint=f"it has {', '.join(sorted(known)) or 'none'}",
                )
        found = [table for table in found if table.name in wanted]
    if not found:
        raise UnsatisfiableConstraint("the database has no table to select from", hint="create the tables first")
    return Grammar.gbnf(select_grammar(found))


def select_grammar(tables: Sequence[Table]) -> str:
    """The GBNF text for SELECT queries over these tables."""
    scopes = [(_literal(_name(table.name)), _table_columns(table)) for table in tables]
    by_name = {table.name: table for table in tables}
    for table in tables:
        for key in table.foreign_keys:
            other = by_name.get(key.table)
            if other is not None and other.name != table.name:
                scopes.append((_join(table, key), [*_qualified(table), *_qualified(other)]))
    parts = [f'root ::= ({" | ".join(f"query-{number}" for number in range(len(scopes)))}) ";"?', _SHARED_RULES]
    for number, (source, columns) in enumerate(scopes):
        rules = _SCOPE_RULES.replace("<N>", str(number)).replace("<FROM>", source)
        parts.append(rules.replace("<COLUMNS>", " | ".join(map(_literal, columns))))
    return "\n".join([*parts, _OPERATORS])


def _table_columns(table: Table) -> list[str]:
    return [*(_name(column) for column in table.columns), *_qualified(table)]


def _qualified(table: Table) -> list[str]:
    return [f"{_name(table.name)}.{_name(column)}" for column in table.columns]


def _join(table: Table, key: ForeignKey) -> str:
    left, right = _name(table.name), _name(key.table)
    pairs = zip(key.columns, key.referred, strict=True)
    condition = " AND ".join(f"{left}.{_name(column)} = {right}.{_name(referred)}" for column, referred in pairs)
    return f'{_literal(left)} ws ("LEFT" ws)? "JOIN" ws {_literal(right)} ws "ON" ws {_literal(condition)}'


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " else f"\\x{ord(char):02x}" for char in escaped) + '"'


def _read_sqlite(connection: sqlite3.Connection) -> list[Table]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " ORDER BY name"
    ).fetchall()
    information = {
        name: connection.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
        for (name,) in names
    }
    tables = []
    for name, columns in information.items():
        keys: dict[int, list[tuple[str, str, str | None]]] = {}
        rows = connection.execute(
            'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq', (name,)
        )
        for identity, referred_table, column, referred in rows:
            keys.setdefault(identity, []).append((referred_table, column, referred))
        foreign_keys = []
        for members in keys.values():
            key = _foreign_key(members, information)
            if key is not None:
                foreign_keys.append(key)
        tables.append(Table(name, tuple(column for column, _ in columns), tuple(foreign_keys)))
    return tables


def _foreign_key(
    members: Sequence[tuple[str, str, str | None]], information: dict[str, list[tuple[str, int]]]
) -> ForeignKey | None:
    """A foreign key with its referred columns spelled out; None if the table or column it refers to does not exist.

    SQLite leaves the referred columns out when they are the primary key.
    """
    spelling = {name.lower(): name for name in information}
    table = spelling.get(members[0][0].lower())
    if table is None:
        return None
    columns = {name.lower(): name for name, _ in information[table]}
    primary = [name for name, _ in sorted((row for row in information[table] if row[1]), key=lambda row: row[1])]
    referred = [columns.get(to.lower()) for _, _, to in members if to is not None] or list(primary)
    if len(referred) != len(members) or None in referred:
        return None
    return ForeignKey(
        tuple(column for _, column, _ in members), table, tuple(name for name in referred if name is not None)
    )


def _read_sqlalchemy(connection: Any) -> list[Table]:
    try:
        from sqlalchemy import inspect
        from sqlalchemy.exc import NoInspectionAvailable
    except ImportError as error:
        raise ConstraintError(
            f"sql_constraint cannot read a schema from {type(connection).__name__}",
            hint="give a sqlite3.Connection, or install sqlalchemy and give an engine or a connection of it",
        ) from error
    try:
        inspector = inspect(connection)
        names = [*inspector.get_table_names(), *inspector.get_view_names()]
    except (NoInspectionAvailable, AttributeError) as error:
        raise ConstraintError(
            f"sql_constraint cannot read a schema from {type(connection).__name__}",
            hint="give a sqlite3.Connection, or an engine or a connection of SQLAlchemy",
        ) from error
    tables = []
    for name in names:
        keys = [
            ForeignKey(tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]))
            for key in inspector.get_foreign_keys(name)
            if not key.get("referred_schema") and len(key["constrained_columns"]) == len(key["referred_columns"])
        ]
        columns = tuple(column["name"] for column in inspector.get_columns(name))
        tables.append(Table(name, columns, tuple(keys)))
    return tables
