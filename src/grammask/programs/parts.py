"""What a program appends to a state besides text: generations, choices, and several of them in one grammar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grammask.constraints.algebra import Exactly, Text, intersection, sequence
from grammask.constraints.base import Constraint
from grammask.constraints.choice import Choice
from grammask.constraints.where import containing
from grammask.decoding.arguments import check_options
from grammask.engine.errors import ConstraintSyntaxError
from grammask.validation.wanted import Wanted


@dataclass(frozen=True)
class Gen:
    """Text that the model writes; made by ``gen``.

    Attributes:
        name: of the capture; None captures nothing.
        wanted: the constraint and its reader.
        options: of ``model.generate``.
        stop: texts that end it.
        many: captures under this name are collected in a list.
        kind: "generation", or "choice" for one of several texts.
    """

    name: str | None
    wanted: Wanted
    options: dict[str, Any] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    many: bool = False
    kind: str = "generation"

    @property
    def constraint(self) -> Constraint:
        """What the text must be as a part of a larger grammar: a stop text does not occur in it.

        Raises:
            UnsupportedConstraint: there is a stop text, and the constraint is not regular.
        """
        wanted = self.wanted.constraint
        whole = Text() if wanted is None else Exactly(wanted) if isinstance(wanted, str) else wanted
        return intersection(whole, ~containing(*self.stop)) if self.stop else whole


@dataclass(frozen=True)
class Together:
    """Texts and generations that are written in one go, under one grammar; made by ``together``."""

    parts: tuple[str | Gen, ...]

    @property
    def constraint(self) -> Constraint:
        """The parts one after the other."""
        return sequence(*[part if isinstance(part, str) else part.constraint for part in self.parts])


def gen(
    name: str | None = None,
    wanted: Any = None,
    *,
    where: Constraint | None = None,
    stop: str | Sequence[str] = (),
    tokens: int | tuple[int | None, int | None] | None = None,
    many: bool = False,
    **options: Any,
) -> Gen:
    """Text that the model writes at this place.

    Args:
        name: under which text and value are captured.
        wanted: what ``model.generate`` takes: a type, a constraint, None for free text.
        where: a condition that the text must satisfy as well (``grammask.where``); ``wanted`` must then be regular.
        stop: texts before which it ends; they are not part of it, and follow only if the program writes them.
        tokens: length in tokens: the most, or (least, most).
        many: append to a list under ``name``, for loops.
        options: of ``model.generate``, such as ``sampling``, ``max_tokens``, ``truncate``.

    Raises:
        UnsupportedConstraint: ``where`` together with a constraint that is not regular.
    """
    check_options("gen", options, more=("where", "tokens", "many"))
    found = Wanted.of(wanted)
    if where is not None:
        known = found.constraint
        found = Wanted.of(where) if known is None else Wanted(intersection(known, where), found.parse)
    if tokens is not None:
        options.update(_token_limits(tokens, options))
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    return Gen(name, found, options, stops, many)


def select(name: str | None, choices: Iterable[Any], *, many: bool = False, **options: Any) -> Gen:
    """One of several texts, chosen by the model.

    Args:
        name: of the capture.
        choices: as for ``Choice``; the captured value is the one given.
        many, options: as for ``gen``.
    """
    check_options("select", options, more=("many",))
    choice = Choice(choices)
    return Gen(name, Wanted(choice, choice.value_of), options, (), many, "choice")


def together(*parts: str | Gen) -> Together:
    """Texts and generations under one grammar, written in one go: a generation may end where the next part can begin,
    and everything that is certain is written without asking the model.

    Which text belongs to which capture is decided afterwards. Where that is ambiguous, earlier parts are as long as
    they can be, like the groups of a regular expression.

    Raises:
        ConstraintSyntaxError: there is nothing to generate, or a part has options of its own.
    """
    for part in parts:
        if isinstance(part, Gen) and part.options:
            raise ConstraintSyntaxError(
                f"{part.name or 'a part'} has options of its own ({', '.join(part.options)})",
                hint="limits of a part are conditions here (where=...); settings go to the state or to gen alone",
            )
    if not any(isinstance(part, Gen) for part in parts):
        raise ConstraintSyntaxError("there is nothing to generate", hint="add text to the state as it is")
    return Together(parts)


def _token_limits(tokens: int | tuple[int | None, int | None], options: dict[str, Any]) -> dict[str, Any]:
    low, high = tokens if isinstance(tokens, tuple) else (None, tokens)
    limits: dict[str, Any] = {}
    if high is not None:
        limits["max_tokens"] = high
    if low:
        from grammask.sampling import Sampling

        sampling = options.get("sampling") or Sampling(temperature=0)
        limits["sampling"] = sampling.replace(min_tokens=low, **({} if high is None else {"max_tokens": high}))
    return limits
