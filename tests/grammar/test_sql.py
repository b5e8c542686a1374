"""SQL over a database's own names: what is generated at random prepares, and nothing else is named."""

from __future__ import annotations

import random
import re
import sqlite3
from typing import Any

import pytest

import grammask
from support.grammars import accepts, byte_vocabulary, random_text

VOCABULARY = byte_vocabulary()

SCHEMA = '''
CREATE TABLE users (id INTEGER PRIMARY KEY, "full name" TEXT, "order" INT, städte TEXT, "say ""hi""" REAL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INT REFERENCES users, total REAL, "back\\slash" TEXT);
CREATE TABLE "order lines" (order_id INT, line INT, PRIMARY KEY (order_id, line),
    FOREIGN KEY (order_id) REFERENCES orders (id));
CREATE TABLE loose (a INT REFERENCES nowhere (b), "select" TEXT);
CREATE VIEW totals AS SELECT user_id, sum(total) AS total FROM orders GROUP BY user_id;
'''

ACCEPTED = [
    "SELECT * FROM users",
    'SELECT "full name", COUNT(*) AS "n" FROM users WHERE id > 3 GROUP BY "full name" HAVING COUNT(*) > 2 LIMIT 5;',
    'SELECT id FROM users WHERE "order" IS NOT NULL OR id >= -3 ORDER BY id DESC LIMIT 10 OFFSET 20',
    "SELECT users.id FROM orders JOIN users ON orders.user_id = users.id WHERE orders.total BETWEEN 1 AND 2",
    'SELECT "order lines".line FROM "order lines" LEFT JOIN orders ON "order lines".order_id = orders.id',
    "SELECT DISTINCT LOWER(\"städte\") || 'it''s' FROM users WHERE NOT (id = 1 OR id IN (2, 3)) ORDER BY id, \"order\"",
    "SELECT SUM(total * 1.5 - -2) FROM totals",
]
REFUSED = [
    "",
    "SELECT nope FROM users",
    "SELECT total FROM users",
    "SELECT id FROM nowhere",
    "SELECT order FROM users",
    "SELECT total FROM orders JOIN users ON orders.user_id = users.id",
    "SELECT users.id FROM users JOIN loose ON users.id = loose.a",
    "SELECT * FROM users; DROP TABLE users",
    "DELETE FROM users",
    "SELECT * FROM users WHERE id = 'x",
    "SELECT * FROM sqlite_master",
]


@pytest.fixture
def connection() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    return database


def test_accepted_and_refused(connection: sqlite3.Connection) -> None:
    compiled = grammask.compile(grammask.sql_constraint(connection), VOCABULARY)
    for query in ACCEPTED:
        assert accepts(compiled, query), query
        connection.execute(f"EXPLAIN {query}")
    assert [query for query in REFUSED if accepts(compiled, query)] == []


@pytest.mark.parametrize(("through", "queries"), [("sqlite3", 200), ("sqlalchemy", 60)])
def test_every_random_query_prepares(connection: sqlite3.Connection, through: str, queries: int) -> None:
    source: Any = connection
    if through == "sqlalchemy":
        sqlalchemy = pytest.importorskip("sqlalchemy")
        pool = sqlalchemy.pool.StaticPool
        source = sqlalchemy.create_engine("sqlite://", creator=lambda: connection, poolclass=pool)
    compiled = grammask.compile(grammask.sql_constraint(source), VOCABULARY)
    generator = random.Random(through)
    sources: set[str] = set()
    for _ in range(queries):
        query = random_text(compiled, generator, ending=0.3)
        connection.execute(f"EXPLAIN {query}")
        sources.update(re.findall(r"FROM\s(\w+|\"[^\"]*\")", query))
    assert sources >= {"users", "orders", '"order lines"', "loose", "totals"}


def test_only_the_tables_asked_for(connection: sqlite3.Connection) -> None:
    compiled = grammask.compile(grammask.sql_constraint(connection, tables=["users"]), VOCABULARY)
    assert accepts(compiled, "SELECT * FROM users")
    assert not accepts(compiled, "SELECT * FROM orders")
    with pytest.raises(grammask.ConstraintError, match="no table or view 'user'"):
        grammask.sql_constraint(connection, tables=["user"])


def test_a_database_without_tables() -> None:
    with pytest.raises(grammask.UnsatisfiableConstraint, match="no table"):
        grammask.sql_constraint(sqlite3.connect(":memory:"))


def test_something_else_than_a_connection() -> None:
    with pytest.raises(grammask.ConstraintError, match="cannot read a schema from int"):
        grammask.sql_constraint(3)


def test_sqlalchemy_reads_the_same_language() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.connect() as connection:
        connection.connection.executescript(SCHEMA)
        for source in (engine, connection):
            compiled = grammask.compile(grammask.sql_constraint(source), VOCABULARY)
            assert [query for query in ACCEPTED if not accepts(compiled, query)] == []
            assert [query for query in REFUSED if accepts(compiled, query)] == []
