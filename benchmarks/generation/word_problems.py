"""Word problems from templates, in the style of GSM8K, each with its exact answer.

One to three steps of arithmetic with small numbers, which a small model gets right often enough to tell methods apart.
The same seed gives the same problems.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

NAMES = ("Anna", "Ben", "Chen", "Dana", "Elif", "Farid", "Gita", "Hugo", "Ines", "Jonas", "Kofi", "Lior")
THINGS = ("apples", "books", "coins", "eggs", "marbles", "pencils", "shells", "stamps")


@dataclass(frozen=True)
class Problem:
    """A question and the whole number that answers it."""

    question: str
    answer: int
    steps: int


def _gain(r: random.Random) -> Problem:
    name, thing, a, b = r.choice(NAMES), r.choice(THINGS), r.randint(2, 20), r.randint(2, 20)
    return Problem(f"{name} has {a} {thing} and finds {b} more. How many {thing} does {name} have now?", a + b, 1)


def _loss(r: random.Random) -> Problem:
    name, thing, b = r.choice(NAMES), r.choice(THINGS), r.randint(2, 12)
    a = b + r.randint(1, 20)
    return Problem(f"{name} has {a} {thing} and gives {b} away. How many {thing} are left?", a - b, 1)


def _groups(r: random.Random) -> Problem:
    thing, a, b = r.choice(THINGS), r.randint(2, 9), r.randint(2, 9)
    return Problem(f"There are {a} boxes with {b} {thing} in each box. How many {thing} are there in all?", a * b, 1)


def _shared(r: random.Random) -> Problem:
    thing, a, b = r.choice(THINGS), r.randint(2, 6), r.randint(2, 9)
    return Problem(f"{a} friends share {a * b} {thing} equally. How many {thing} does each of them get?", b, 1)


def _shopping(r: random.Random) -> Problem:
    name, thing, count, price = r.choice(NAMES), r.choice(THINGS), r.randint(2, 6), r.randint(2, 5)
    paid = count * price + r.randint(1, 10)
    return Problem(
        f"{name} buys {count} {thing} for {price} dollars each and pays with {paid} dollars. "
        f"How many dollars does {name} get back?",
        paid - count * price,
        2,
    )


def _two_people(r: random.Random) -> Problem:
    (one, two), thing, a, b = r.sample(NAMES, 2), r.choice(THINGS), r.randint(2, 12), r.randint(2, 12)
    return Problem(
        f"{one} has {a} {thing}. {two} has {b} {thing} more than {one}. How many {thing} do they have together?",
        2 * a + b,
        2,
    )


def _packs(r: random.Random) -> Problem:
    name, thing, packs, size, used = (
        r.choice(NAMES),
        r.choice(THINGS),
        r.randint(2, 5),
        r.randint(3, 6),
        r.randint(1, 5),
    )
    extra = r.randint(1, 9)
    return Problem(
        f"{name} buys {packs} packs of {size} {thing}, uses {used} of them, and is given {extra} more. "
        f"How many {thing} does {name} have?",
        packs * size - used + extra,
        3,
    )


TEMPLATES: tuple[Callable[[random.Random], Problem], ...] = (
    _gain,
    _loss,
    _groups,
    _shared,
    _shopping,
    _two_people,
    _packs,
)


def problems(count: int, seed: int = 0) -> list[Problem]:
    """Different problems, the templates in turn."""
    r = random.Random(seed)
    found: dict[str, Problem] = {}
    while len(found) < count:
        problem = TEMPLATES[len(found) % len(TEMPLATES)](r)
        found.setdefault(problem.question, problem)
    return list(found.values())
