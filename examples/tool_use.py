"""A model that calls Python functions: typed arguments, results and errors fed back, a bounded number of rounds.

    python examples/tool_use.py

The functions' signatures and docstrings are all that describes them. The constraint holds every call to them, so the
arguments always fit; a small model still chooses badly at times, and then reads what went wrong.
"""

from __future__ import annotations

from typing import Literal

import grammask

STOCK = {"lamp": 4, "desk": 0, "chair": 11}


def stock(item: Literal["lamp", "desk", "chair"]) -> int:
    """How many of an item are in stock.

    Args:
        item: what to look for.
    """
    return STOCK[item]


def order(item: Literal["lamp", "desk", "chair"], count: Literal[1, 2, 3]) -> str:
    """Order an item.

    Args:
        item: what to order.
        count: how many.
    """
    if STOCK[item] < count:
        raise ValueError(f"only {STOCK[item]} of {item} in stock")
    STOCK[item] -= count
    return f"ordered: {count} of {item}"


def main() -> None:
    model = grammask.load_model("smollm2")
    outcome = grammask.run_tools(
        model,
        "Please order 2 of the item lamp.",
        [order, stock],
        choice="required",
        parallel=False,
        limit=2,
        answer=Literal["ordered", "not in stock"],
        max_tokens=80,
    )
    for run in outcome.runs:
        arguments = ", ".join(f"{name}={value!r}" for name, value in run.arguments.items())
        print(f"round {run.round}: {run.name}({arguments}) -> {run.result}")
    print(f"\n{outcome.value}\n\n{outcome.rounds} rounds, {outcome.usage.completion_tokens} tokens")


if __name__ == "__main__":
    main()
