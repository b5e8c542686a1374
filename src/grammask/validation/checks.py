"""Checks: what a value must satisfy beyond what a schema or a type can say.

A check is a function of the parsed value. It may return None or True (nothing is wrong), False, a message, a Problem,
or several of them; or raise ValueError. The functions here make checks from smaller parts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from grammask.validation.problems import Problem, path_of, problems_of, value_at

Check = Callable[[Any], Any]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def run_check(check: Check, value: Any) -> list[Problem]:
    """The problems that a check finds."""
    try:
        outcome = check(value)
    except ValueError as error:
        return problems_of(error)
    if outcome is None or outcome is True:
        return []
    if outcome is False:
        return [Problem(_described(check))]
    if isinstance(outcome, (str, Problem)):
        outcome = [outcome]
    return [Problem(problem) if isinstance(problem, str) else problem for problem in outcome]


def _described(check: Check) -> str:
    summary = (inspect.getdoc(check) or "").strip().partition("\n")[0]
    name = getattr(check, "__name__", type(check).__name__)
    return summary if summary and name != "<lambda>" else f"the check {name} fails"


def field(name: str, check: Callable[[Any], Any], message: str | None = None) -> Check:
    """A check of one part of the value.

    Args:
        name: its place, such as ``"order_id"`` or ``"customer.address.city"``; ``*`` stands for every item of an array.
        check: gets the part; as for any check, or a plain condition.
        message: what is wrong where the condition is False.
    """
    path = path_of(name.replace("*", "0")) if "*" not in name else ()

    def run(value: Any) -> list[Problem]:
        places = [path] if "*" not in name else list(_expanded(value, name.split(".")))
        found: list[Problem] = []
        for place in places:
            try:
                part = value_at(value, place)
            except LookupError:
                continue
            for problem in run_check(check, part):
                text = message if message is not None else problem.message
                found.append(replace(problem, message=text, path=(*place, *(problem.path or ()))))
        return found

    return run


def _expanded(value: Any, parts: list[str], done: tuple[str | int, ...] = ()) -> Iterable[tuple[str | int, ...]]:
    """The paths that a name with stars stands for."""
    if not parts:
        yield done
        return
    first, rest = parts[0], parts[1:]
    if first != "*":
        yield from _expanded(value, rest, (*done, *path_of(first)))
        return
    try:
        items = value_at(value, done)
    except LookupError:
        return
    for position in range(len(items) if isinstance(items, (list, tuple)) else 0):
        yield from _expanded(value, rest, (*done, position))


def across(names: Iterable[str], condition: Callable[[Any], Any], message: str | None = None) -> Check:
    """A rule across fields: when it fails, none of them counts as right.

    Args:
        names: the places that take part.
        condition: gets the whole value.
        message: what is wrong where the condition is False.
    """
    paths = [path_of(name) for name in names]
    if not paths:
        raise ValueError("a rule across fields names at least one field")

    def run(value: Any) -> list[Problem]:
        return [
            Problem(message if message is not None else problem.message, paths[0], tuple(paths[1:]))
            for problem in run_check(condition, value)
        ]

    return run


def exists_in(
    connection: Any, table: str, column: str, *, name: str | None = None, parameter: str = "?", show: int = 5
) -> Check:
    """A look-up: the value (or one part of it) must be in a column of a database.

    Args:
        connection: a DB-API 2.0 connection, such as one of sqlite3.
        table, column: plain names.
        name: the part of the value, as for ``field``; None is the value itself.
        parameter: the placeholder of the database's driver (``"?"`` or ``"%s"``).
        show: how many values of the column the message offers, those that look most alike first. The next attempt of
            ``generate_valid`` chooses among them; 0 leaves it free.

    Raises:
        ValueError: a name is no plain identifier.
    """
    for identifier in (table, column):
        if not _NAME.fullmatch(identifier):
            raise ValueError(f"{identifier!r} is no plain name of a table or column")

    def look_up(value: Any) -> Problem | None:
        cursor = connection.cursor()
        cursor.execute(f'SELECT 1 FROM "{table}" WHERE "{column}" = {parameter} LIMIT 1', (value,))
        if cursor.fetchone() is not None:
            return None
        cursor.execute(f'SELECT DISTINCT "{column}" FROM "{table}" LIMIT 1000')
        similar = _alike(str(value), [row[0] for row in cursor.fetchall()], show)
        offered = f"; there are, for example, {', '.join(map(repr, similar))}" if similar else ""
        return Problem(f"{value!r} is not in {table}.{column}{offered}", (), options=tuple(similar))

    return look_up if name is None else field(name, look_up)


def _alike(wanted: str, values: list[Any], count: int) -> list[Any]:
    from difflib import SequenceMatcher

    return sorted(values, key=lambda value: -SequenceMatcher(None, wanted, str(value)).ratio())[:count]
