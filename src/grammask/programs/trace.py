"""The trace of a program: every step, kept so that it can be looked at, stored and replayed.

A program is a tree of steps, since a state may go on in several ways: each step names the one before it. The text of a
state is what the steps from the root to its own add up to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from grammask.decoding import Result, Usage

StepKind = Literal["text", "generation", "choice", "role", "end", "tool", "check"]
"""What a step did.

``text``        the program wrote text.
``generation``  the model wrote text.
``choice``      the model chose one of several texts.
``role``        a turn of a chat was opened.
``end``         it was closed.
``tool``        a tool was run; the text is its result.
``check``       a part of an output was rejected; the text is what was rejected.
"""


@dataclass(frozen=True)
class TraceToken:
    """One token that the model wrote.

    Attributes:
        id: token id.
        text: its bytes as text; bytes that are no whole characters are lone surrogates U+DC80 to U+DCFF
            (``surrogateescape``).
        logprob: natural logarithm of the probability that it was drawn with; 0 where nothing else was possible.
        forced: the constraint left no choice, so the model was not asked.
        mass: share of the model's own probability that the constraint allowed at this position, where known.
    """

    id: int
    text: str
    logprob: float
    forced: bool
    mass: float | None = None


@dataclass(frozen=True)
class TraceCapture:
    """One of several captures inside a generation: ``text[start:end]`` of the step, in characters."""

    name: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        kind: what was done.
        text: what it adds to the document.
        parent: index of the step before it; None at the beginning.
        role: whose turn it belongs to; None outside of turns.
        name: under which the text was captured.
        value: the captured value as JSON.
        constraint: what the output had to be, as its ``repr``.
        tokens: what the model wrote, token by token; empty for hosted models.
        usage: what it cost.
        finish_reason: why the output ended.
        seconds: wall time.
        note: whatever else there is to say.
        captures: several captures in one generation.
    """

    kind: StepKind
    text: str = ""
    parent: int | None = None
    role: str | None = None
    name: str | None = None
    value: Any = None
    constraint: str | None = None
    tokens: tuple[TraceToken, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None
    seconds: float = 0.0
    note: str | None = None
    captures: tuple[TraceCapture, ...] = ()


@dataclass(frozen=True)
class Trace:
    """All steps of a program, in the order in which they were made.

    Attributes:
        model: its name.
        steps: a tree by their ``parent``.
    """

    model: str
    steps: tuple[Step, ...] = field(default=())

    def path(self, index: int) -> list[Step]:
        """The steps from the beginning to one of them."""
        found = []
        place: int | None = index
        while place is not None:
            step = self.steps[place]
            found.append(step)
            place = step.parent
        return found[::-1]

    @property
    def leaves(self) -> list[int]:
        """Indices of the steps that nothing follows: one for each way that the program took."""
        parents = {step.parent for step in self.steps}
        return [index for index in range(len(self.steps)) if index not in parents]

    @property
    def usage(self) -> Usage:
        """What all steps cost together."""
        total = Usage(0, 0)
        for step in self.steps:
            if step.usage is not None:
                total = total + step.usage
        return total

    def frames(self, leaf: int | None = None) -> Iterator[tuple[Step, str]]:
        """Replays one way through the program: each step with the text of the document after it.

        Args:
            leaf: the last step; None is the last one made.
        """
        text = ""
        for step in self.path(len(self.steps) - 1 if leaf is None else leaf) if self.steps else []:
            if step.kind != "check":
                text += step.text
            yield step, text

    def to_json(self) -> str:
        """The trace as JSON text, for ``from_json``."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """A trace from ``to_json``.

        Raises:
            ValueError: the text is no trace.
        """
        try:
            content = json.loads(text)
            return cls(content["model"], tuple([_step(step) for step in content["steps"]]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no trace: {error!r}") from error

    def __rich__(self) -> Any:
        from grammask.display import trace_rich

        return trace_rich(self)

    def _repr_html_(self) -> str:
        from grammask.display import trace_html

        return str(trace_html(self))


def _step(content: Mapping[str, Any]) -> Step:
    known = dict(content)
    known["tokens"] = tuple([TraceToken(**token) for token in known.get("tokens", ())])
    known["captures"] = tuple([TraceCapture(**capture) for capture in known.get("captures", ())])
    if known.get("usage") is not None:
        known["usage"] = Usage(**known["usage"])
    return Step(**known)


def trace_tokens(result: Result[Any]) -> tuple[TraceToken, ...]:
    """The tokens of a result as a trace keeps them."""
    return tuple(
        [
            TraceToken(
                token.token_id,
                piece.decode("utf-8", "surrogateescape"),
                float(token.final_logprob),
                bool(token.report.forced),
                _mass(token.report),
            )
            for token, piece in zip(result.tokens, result.pieces, strict=False)
        ]
    )


def _mass(report: Any) -> float | None:
    mass = getattr(report, "mask_mass", None)
    return None if mass is None else float(mass)


def as_json(value: Any) -> Any:
    """A captured value as JSON: what has no JSON form is kept as its ``repr``."""
    from dataclasses import is_dataclass

    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return as_json(vars(value) if hasattr(value, "__dict__") else asdict(value))
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return repr(value)
