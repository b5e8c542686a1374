"""Questions to a real SQLite database: every query is valid, and names and values in it exist.

    python examples/text_to_sql.py [QUESTION]

Three layers see to that, and each does what the one before cannot. The grammar, made from the database's schema, lets
no query be written that SQLite refuses. While the query is written, each value that a column is compared with is looked
up; one that no row has is taken back and written another way. At the end the query is run.
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

import grammask
from grammask.validation import SqlCheck, sql_parts

QUESTIONS = ("Which customers live in the Czech Republic?", "What does the desk cost?", "How many orders are there?")

EXAMPLES = (
    ("Which customers live in Japan?", "SELECT name FROM customers WHERE country = 'JP';"),
    ("What does the lamp cost?", "SELECT price FROM orders WHERE item = 'lamp';"),
    ("How many customers are there?", "SELECT COUNT(*) FROM customers;"),
)


def shop() -> sqlite3.Connection:
    """A small shop, whose countries are codes."""
    database = sqlite3.connect(":memory:")
    database.executescript(
        """
        CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, country TEXT);
        CREATE TABLE orders(
            id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), item TEXT, price REAL
        );
        INSERT INTO customers VALUES (1, 'Amelia Novak', 'CZ'), (2, 'Jun Sato', 'JP'), (3, 'Lena Vogel', 'DE');
        INSERT INTO orders VALUES (1, 1, 'lamp', 20), (2, 1, 'desk', 120), (3, 2, 'chair', 60), (4, 3, 'lamp', 20);
        """
    )
    return database


def prompt(database: sqlite3.Connection, question: str) -> list[dict[str, Any]]:
    """The schema, worked examples, and the question."""
    schema = "\n".join(row[0] for row in database.execute("SELECT sql FROM sqlite_master"))
    messages = [{"role": "system", "content": f"Answer with one query for SQLite. The tables are:\n{schema}"}]
    for asked, query in EXAMPLES:
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": query}]
    return [*messages, {"role": "user", "content": question}]


def main() -> None:
    database = shop()
    model = grammask.load_model("smollm2")
    queries = grammask.sql_constraint(database)
    for question in sys.argv[1:] or QUESTIONS:
        result = grammask.generate_checked(
            model, prompt(database, question), queries, SqlCheck(database), parts=sql_parts, max_tokens=60
        )
        print(f"{question}\n  {result.text.strip()}")
        for rejection in result.history:
            print(f"  taken back: {rejection.text} ({rejection.message})")
        print(f"  {database.execute(result.text).fetchall()}\n")


if __name__ == "__main__":
    main()
