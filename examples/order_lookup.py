"""Extracts an order from a message and checks it against a database; what the database refuses is asked again.

    python examples/order_lookup.py

A grammar can say what an order id looks like, not which orders exist. So the record is checked after it is written:
the order must be in the database, and the item must belong to it. When a check fails, the model is told what is wrong,
and writes again under a narrower constraint: what was right is forced, what was refused is excluded, and of the orders
that look most alike one is chosen.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any

import grammask
from grammask.validation import across, exists_in

MESSAGE = """\
Hello, this is Jun Sato. My order 90-12245 arrived today and the lamp is broken. Please send a new one."""

EXAMPLES = (
    (
        "Hi, Lena Vogel here, order 71-00312. The mirror has a crack.",
        '{"name": "Lena Vogel", "order_id": "71-00312", "item": "mirror"}',
    ),
    (
        "My name is Amelia Novak. Of order 90-13388 the desk came with a scratch.",
        '{"name": "Amelia Novak", "order_id": "90-13388", "item": "desk"}',
    ),
)


@dataclass(frozen=True)
class Complaint:
    """What a complaint is about."""

    name: Annotated[str, {"minLength": 2, "maxLength": 30}]
    order_id: Annotated[str, {"pattern": "^[0-9]{2}-[0-9]{5}$"}]
    item: Annotated[str, {"minLength": 2, "maxLength": 20}]


def shop() -> sqlite3.Connection:
    """A small shop. The customer's order id has a slip in it: 90-12245 does not exist, 90-12254 does."""
    database = sqlite3.connect(":memory:")
    database.executescript(
        """
        CREATE TABLE orders(id TEXT PRIMARY KEY, customer TEXT, item TEXT);
        INSERT INTO orders VALUES
            ('90-12254', 'Jun Sato', 'lamp'),
            ('71-00312', 'Lena Vogel', 'mirror'),
            ('90-13388', 'Amelia Novak', 'desk');
        """
    )
    return database


def main() -> None:
    database = shop()

    def belongs(complaint: Complaint) -> bool:
        row = database.execute("SELECT item FROM orders WHERE id = ?", (complaint.order_id,)).fetchone()
        return row is None or row[0] == complaint.item

    prompt: list[dict[str, Any]] = []
    for message, record in EXAMPLES:
        prompt += [{"role": "user", "content": message}, {"role": "assistant", "content": record}]
    prompt.append({"role": "user", "content": MESSAGE})
    model = grammask.load_model("smollm2")
    result = grammask.generate_valid(
        model,
        prompt,
        grammask.typed_output(Complaint, whitespace="python"),
        [
            exists_in(database, "orders", "id", name="order_id", show=2),
            across(["item"], belongs, "this item was not part of that order"),
        ],
        attempts=4,
        max_tokens=80,
    )
    for number, attempt in enumerate(result.history, start=1):
        print(f"{number}. {attempt.text}")
        for problem in attempt.problems:
            print(f"   {problem}")
        print(f"   {attempt.usage.model_calls} forward passes, {attempt.usage.forced_tokens} tokens forced")
    print(f"\n{result.value}")


if __name__ == "__main__":
    main()
