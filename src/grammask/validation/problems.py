"""What is wrong with a value, and where: the errors of schemas, types and rules in one shape.

A problem's path leads from the root of the value to the faulty place, by member names and array positions. The empty
path is the whole value; None says that the place is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One fault.

    Attributes:
        message: what is wrong, in words that the model is shown.
        path: where; None if the fault cannot be told from the rest of the value.
        others: further places that take part in a rule across fields. None of them counts as right.
        options: JSON values of which one should stand at the path instead; empty if there is nothing to choose from.
    """

    message: str
    path: Path | None = None
    others: tuple[Path, ...] = ()
    options: tuple[Any, ...] = ()

    @property
    def places(self) -> tuple[Path, ...]:
        """All places that the fault may lie in: the root where it is not known."""
        return (self.path if self.path is not None else (), *self.others)

    @property
    def pointer(self) -> str:
        """JSON pointer of the path (RFC 6901); "" for the whole value."""
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self.path or ())

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.path else self.message


def path_of(field: str | Iterable[str | int]) -> Path:
    """A path from ``"customer.address.0.city"``, from parts, or from one name. Digits are array positions."""
    if isinstance(field, str):
        return tuple([int(part) if part.isdigit() else part for part in field.split(".")]) if field else ()
    return tuple(field)


def value_at(value: Any, path: Sequence[str | int]) -> Any:
    """The part of a value that a path leads to, by keys, positions and attributes.

    Raises:
        LookupError: there is nothing.
    """
    for part in path:
        if isinstance(value, dict) or (isinstance(value, (list, tuple)) and isinstance(part, int)):
            container: Any = value
            value = container[part]
        elif isinstance(part, str) and hasattr(value, part):
            value = getattr(value, part)
        else:
            raise LookupError(f"there is no {part!r}")
    return value


def problems_of(error: BaseException) -> list[Problem]:
    """The problems that an exception tells of: one for each entry of a Pydantic ``ValidationError``, else one.

    Pydantic names a place by field and by branch of a union; parts that are no place in the value are for
    ``JsonProblems`` to drop, which has the value.
    """
    if isinstance(error, CheckError):
        return list(error.problems)
    entries = getattr(error, "errors", None)
    if callable(entries):
        try:
            found = list(entries())
        except TypeError:
            found = []
        if found and all(isinstance(entry, dict) and "msg" in entry for entry in found):
            return [Problem(str(entry["msg"]), tuple(entry.get("loc", ()))) for entry in found]
    return [Problem(str(error) or type(error).__name__)]


class CheckError(ValueError):
    """Raised by a check to report several problems, or one with its place.

    Attributes:
        problems: at least one.
    """

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple([Problem(problem) if isinstance(problem, str) else problem for problem in problems])
        super().__init__("; ".join(map(str, self.problems)) or "the check failed")


def listing(problems: Iterable[Problem]) -> str:
    """The problems as lines of a list."""
    return "\n".join(f"- {problem}" for problem in problems)


def within_value(problems: Iterable[Problem], value: Any) -> Iterator[Problem]:
    """The problems with the parts of their paths dropped that lead nowhere in the value: Pydantic puts names of union
    branches and validators between them. The last part may be missing from the value (a required member)."""
    for problem in problems:
        if problem.path is None:
            yield problem
            continue
        kept: list[str | int] = []
        here = value
        for position, part in enumerate(problem.path):
            last = position == len(problem.path) - 1
            if isinstance(here, dict) and (part in here or (last and isinstance(part, str))):
                here = here.get(part)
            elif isinstance(here, list) and isinstance(part, int) and part < len(here):
                here = here[part]
            else:
                continue
            kept.append(part)
        yield replace(problem, path=tuple(kept))
