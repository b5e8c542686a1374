"""``State``: a document that text and generations are appended to.

States are values: ``state + x`` is a new state, and the old one can go on in another way. So conditions, loops and
functions are Python's own, and a fork is a second use of the same state. What two states share is read by the model
once.

    s = State(model)
    s = s.user("Name a city in Italy.").assistant(gen("city", where=where(words=(1, 2))))
    s = s.user("Is it on the coast?").assistant(select("coast", ["yes", "no"]))
    if s["coast"] == "yes":
        ...
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grammask.decoding.arguments import check_options
from grammask.programs.captures import split
from grammask.programs.document import Document
from grammask.programs.parts import Gen, Together
from grammask.programs.trace import Step, Trace, TraceCapture, as_json
from grammask.programs.writers import Place, ReplayWriter, Writer, Written, writer_for

if TYPE_CHECKING:
    from grammask.models.base import LanguageModel
    from grammask.sampling import Sampling


class State:
    """A document under way, with its captures.

    Args:
        model: who writes: a local model, which goes on wherever the document ends, or a hosted one, which writes whole
            turns of the assistant.
        sampling: for generations that have none of their own; None is greedy locally, and the provider's choice
            elsewhere.
        seed: of the random numbers; each generation of the program draws its own.
        options: further options of ``model.generate`` for every generation.
    """

    def __init__(
        self, model: LanguageModel, *, sampling: Sampling | None = None, seed: int | None = None, **options: Any
    ) -> None:
        check_options("State", options)
        chosen = {"sampling": sampling, "seed": seed, **options}
        self._start(writer_for(model), {name: value for name, value in chosen.items() if value is not None})

    @classmethod
    def replaying(cls, trace: Trace) -> State:
        """A state whose generations come from a trace: the same program runs again without the model.

        The first step that differs raises ``ReplayDiverged``.
        """
        state = cls.__new__(cls)
        state._start(ReplayWriter(trace), {})
        return state

    def _start(self, writer: Writer, options: dict[str, Any]) -> None:
        self._writer = writer
        self._options = options
        self._steps: list[Step] = []
        self._document = Document()
        self._captures: dict[str, Any] = {}
        self._texts: dict[str, Any] = {}
        self._place = Place()
        self._key = 0

    # -- reading

    def __getitem__(self, name: str) -> Any:
        """The value captured under a name.

        Raises:
            KeyError: nothing was.
        """
        return self._captures[name]

    def __contains__(self, name: object) -> bool:
        return name in self._captures

    def get(self, name: str, default: Any = None) -> Any:
        """The value captured under a name, or the default."""
        return self._captures.get(name, default)

    @property
    def captures(self) -> Mapping[str, Any]:
        """All captured values by name."""
        return MappingProxyType(self._captures)

    @property
    def texts(self) -> Mapping[str, Any]:
        """The texts of the captures: of values, what the model wrote."""
        return MappingProxyType(self._texts)

    @property
    def text(self) -> str:
        """The plain text, or that of the open turn."""
        return self._document.text

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The turns of the chat."""
        return self._document.messages()

    @property
    def trace(self) -> Trace:
        """Every step of the program so far, those of other states that began together with this one among them."""
        return Trace(self._writer.name, tuple(self._steps))

    @property
    def path(self) -> list[Step]:
        """The steps that led to this state."""
        return [] if self._place.step is None else self.trace.path(self._place.step)

    def __repr__(self) -> str:
        shown = self.messages if self._document.is_chat else self.text
        return f"<State {shown!r}, captures {self._captures!r}>"

    # -- going on

    def __add__(self, part: Any) -> State:
        """The state with a part appended: text, ``gen``, ``select``, ``together``, or a function of states."""
        if isinstance(part, str):
            return self._add_text(part)
        if isinstance(part, Gen):
            return self._generate(part)
        if isinstance(part, Together):
            return self._generate_together(part)
        if callable(part):
            after = part(self)
            if not isinstance(after, State):
                raise TypeError(f"{getattr(part, '__name__', part)!r} returned {after!r}, not a State")
            return after
        return NotImplemented

    def begin(self, role: str) -> State:
        """Opens a turn: ``"system"``, ``"user"`` or ``"assistant"``."""
        return self._step(Step("role", role=role), self._document.begin(role))

    def end(self) -> State:
        """Closes the turn."""
        return self._step(Step("end", role=self._document.role), self._document.end())

    def turn(self, role: str, *parts: Any) -> State:
        """A whole turn."""
        state = self.begin(role)
        for part in parts:
            state = state + part
        return state.end()

    def system(self, *parts: Any) -> State:
        """A turn of the system."""
        return self.turn("system", *parts)

    def user(self, *parts: Any) -> State:
        """A turn of the user."""
        return self.turn("user", *parts)

    def assistant(self, *parts: Any) -> State:
        """A turn of the assistant, in which the model writes."""
        return self.turn("assistant", *parts)

    def fork(self, count: int) -> list[State]:
        """States that go on from here with random numbers of their own. Local models read what they share once."""
        return [self._keyed(f"fork {number}") for number in range(count)]

    def __iter__(self) -> Iterator[str]:
        raise TypeError("a State is no sequence: read state.captures, state.text or state.messages")

    # -- steps

    def _copy(self) -> State:
        state = State.__new__(State)
        state.__dict__.update(self.__dict__)
        return state

    def _keyed(self, name: str) -> State:
        """A copy whose random numbers depend on one more name."""
        state = self._copy()
        state._key = zlib.crc32(name.encode(), self._key)
        return state

    def _step(self, step: Step, document: Document, place: Place | None = None) -> State:
        """The state after a step, which is recorded."""
        parent = self._place.step
        if isinstance(self._writer, ReplayWriter):
            index = self._writer.follow(step, parent)
            while len(self._steps) <= index:
                self._steps.append(self._writer.recorded(len(self._steps)))
        else:
            index = len(self._steps)
            self._steps.append(replace(step, parent=parent))
        state = self._copy()
        state._document = document
        state._place = replace(place if place is not None else self._place, step=index)
        return state

    def _add_text(self, text: str) -> State:
        return self._step(Step("text", text, role=self._document.role), self._document.add(text))

    def _write(self, constraint: Any, name: str | None, stop: tuple[str, ...], options: dict[str, Any]) -> Written:
        merged = {**self._options, **options}
        merged["request"] = zlib.crc32((name or "").encode(), self._key)
        return self._writer.write(self._document, self._place, constraint, stop, merged)

    def _generate(self, part: Gen) -> State:
        written = self._write(part.wanted.constraint, part.name, part.stop, part.options)
        value = part.wanted.parse(written.text) if written.complete else None
        step = self._recorded(part.kind, written, part.name, value, part.wanted.constraint)
        state = self._step(step, self._document.add(written.text), written.place)._keyed(part.name or "")
        return state._captured(part, written.text, value)

    def _generate_together(self, part: Together) -> State:
        written = self._write(part.constraint, None, (), {})
        pieces = split(written.text, part.parts) if written.complete else []
        captures, place = [], 0
        for piece, inner in zip(pieces, part.parts, strict=False):
            if isinstance(inner, Gen) and inner.name is not None:
                captures.append(TraceCapture(inner.name, piece, place, place + len(piece)))
            place += len(piece)
        step = self._recorded("generation", written, None, None, part.constraint)
        state = self._step(
            replace(step, captures=tuple(captures)), self._document.add(written.text), written.place
        )._keyed("together")
        for piece, inner in zip(pieces, part.parts, strict=False):
            if isinstance(inner, Gen):
                state = state._captured(inner, piece, inner.wanted.parse(piece))
        return state

    def _recorded(self, kind: str, written: Written, name: str | None, value: Any, constraint: Any) -> Step:
        return Step(
            "choice" if kind == "choice" else "generation",
            written.text,
            role=self._document.role,
            name=name,
            value=as_json(value),
            constraint=None if constraint is None else repr(constraint),
            tokens=written.tokens,
            usage=written.usage,
            finish_reason=written.finish_reason,
            seconds=written.seconds,
        )

    def _captured(self, part: Gen, text: str, value: Any) -> State:
        if part.name is None:
            return self
        state = self._copy()
        if part.many:
            state._captures = {**self._captures, part.name: [*self._captures.get(part.name, []), value]}
            state._texts = {**self._texts, part.name: [*self._texts.get(part.name, []), text]}
        else:
            state._captures = {**self._captures, part.name: value}
            state._texts = {**self._texts, part.name: text}
        return state
