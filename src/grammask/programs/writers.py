"""Who writes a program's generations: a model in this process, a hosted one, or a trace that is replayed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grammask.constraints.algebra import sequence, union
from grammask.decoding import InvalidValue, Result, Usage
from grammask.models.base import LanguageModel, Model
from grammask.models.errors import ModelError
from grammask.programs.trace import Step, Trace, TraceToken, trace_tokens

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary
    from grammask.models.base import Prompt, Session
    from grammask.models.prefix_cache import PrefixCache
    from grammask.programs.document import Document


@dataclass(frozen=True)
class Place:
    """Where in a document a generation begins, for the writer that is to go on there.

    Attributes:
        text: the part of the document, as the model sees it, that ``token_ids`` spell.
        token_ids: its tokens, those that the model wrote as it wrote them.
        session: has read a beginning of them, and may have been used elsewhere since.
        held: what the session held when this place was made.
        step: index in the trace of the last step before it; None at the beginning.
    """

    text: str = ""
    token_ids: tuple[int, ...] = ()
    session: Session | None = None
    held: tuple[int, ...] = ()
    step: int | None = None


@dataclass(frozen=True)
class Written:
    """What a writer wrote.

    Attributes:
        place: after it.
        text: of the output.
        finish_reason, complete: as in ``Result``.
        tokens, usage, seconds: for the trace.
    """

    place: Place
    text: str
    finish_reason: str
    complete: bool
    tokens: tuple[TraceToken, ...]
    usage: Usage
    seconds: float


class Writer(ABC):
    """Writes the generations of one program."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name."""

    @abstractmethod
    def write(
        self, document: Document, place: Place, constraint: Any, stop: Sequence[str], options: dict[str, Any]
    ) -> Written:
        """Goes on with a document.

        Raises:
            ModelError, ConstraintError, SamplingError: as for ``generate``.
        """


def writer_for(model: LanguageModel) -> Writer:
    """The writer that uses a model."""
    return LocalWriter(model) if isinstance(model, Model) else HostedWriter(model)


class LocalWriter(Writer):
    """Goes on from the tokens as they are, so that nothing is read twice: each state keeps a session with its keys and
    values, and a state that goes on in two ways copies it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    def write(
        self, document: Document, place: Place, constraint: Any, stop: Sequence[str], options: dict[str, Any]
    ) -> Written:
        text, token_ids = self._tokens(document, place)
        # A turn's beginning is written by the template, and always where a token begins.
        heal = options.pop("heal", bool(document.text))
        if stop and constraint is not None:
            # The constraint says nothing of what ends it: a stop text may follow, and is taken off.
            constraint = sequence(constraint, sequence(union(*stop)).optional())
        session = self._session(place)
        model = _Continuation(self._model, token_ids)
        result = _unparsed(model, "", constraint, stop=stop, heal=heal, session=session, **options)
        after = Place(text + result.text, tuple(self._after(token_ids, result)), session, session.tokens, place.step)
        return _written(after, result)

    def _session(self, place: Place) -> Session:
        """A session that holds what the place's own did, copied if it has been used elsewhere since."""
        if place.session is None:
            return self._model.session()
        return place.session if place.session.tokens == place.held else place.session.fork()

    def _tokens(self, document: Document, place: Place) -> tuple[str, list[int]]:
        """The document as the model sees it, and its tokens. Those of the place are kept."""
        head = self._render(document) if document.is_chat else ""
        whole = head + document.text
        if not place.token_ids or not whole.startswith(place.text):
            if not document.is_chat:
                return whole, self._model.encode(whole)
            return whole, [*self._template_tokens(head), *self._model.vocabulary.encode(document.text)]
        known = len(place.text)
        between = self._template_tokens(head[known:]) if known < len(head) else []
        added = self._model.vocabulary.encode(whole[max(known, len(head)) :])
        return whole, [*place.token_ids, *between, *added]

    def _render(self, document: Document) -> str:
        """The chat up to the open turn of the assistant."""
        if document.role != "assistant":
            raise ModelError(
                f"the model writes in turns of the assistant, and this one is {document.role or 'not open'}",
                hint="state.assistant(gen(...))",
            )
        render = getattr(self._model, "render", None)
        if render is None:
            raise ModelError(f"{self.name} has no chat template that can be rendered", hint="write plain text")
        return str(render(list(document.turns)))

    def _template_tokens(self, text: str) -> list[int]:
        """Tokens of what a chat template wrote, special tokens by their names."""
        tokenizer = getattr(self._model, "tokenizer", None)
        if tokenizer is None:
            return self._model.vocabulary.encode(text)
        return [int(token) for token in tokenizer(text, add_special_tokens=False).input_ids]

    def _after(self, token_ids: Sequence[int], result: Result[Any]) -> list[int]:
        """The tokens of prompt and output: those that were written, if they spell the output and nothing else."""
        kept = list(token_ids[: result.usage.prompt_tokens])
        healed = b"".join(self._model.vocabulary.token_bytes(token) or b"" for token in token_ids[len(kept) :])
        spelled = [(token, piece) for token, piece in zip(result.token_ids, result.pieces, strict=True) if piece]
        if b"".join(piece for _, piece in spelled) == healed + result.text.encode():
            return [*kept, *[token for token, _ in spelled]]
        return [*token_ids, *self._model.vocabulary.encode(result.text)]


class _Continuation(Model):
    """A model whose prompt is already in tokens."""

    def __init__(self, model: Model, token_ids: Sequence[int]) -> None:
        self._model = model
        self._token_ids = list(token_ids)

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def vocabulary(self) -> Vocabulary:
        return self._model.vocabulary

    @property
    def context_length(self) -> int | None:
        return self._model.context_length

    @property
    def prefix_cache(self) -> PrefixCache | None:
        return self._model.prefix_cache

    def encode(self, prompt: Prompt) -> list[int]:
        return self._token_ids.copy()

    def session(self) -> Session:
        return self._model.session()


class HostedWriter(Writer):
    """Asks for whole turns of a chat: providers do not go on in the middle of one."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    def write(
        self, document: Document, place: Place, constraint: Any, stop: Sequence[str], options: dict[str, Any]
    ) -> Written:
        if document.is_chat and (document.role != "assistant" or document.text):
            raise ModelError(
                f"{self.name} writes whole turns of the assistant, and cannot go on in the middle of a turn",
                hint="write one generation for each turn, or several parts with together(...)",
            )
        prompt: Prompt = document.messages() if document.is_chat else document.text
        options = {name: value for name, value in options.items() if name != "request"}
        result = _unparsed(self._model, prompt, constraint, stop=stop, **options)
        return _written(place, result)


class ReplayDiverged(ValueError):
    """The program did something else than the trace says."""


class ReplayWriter(Writer):
    """Answers from a trace instead of a model.

    Args:
        trace: of an earlier run of the same program.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._used: set[int] = set()

    @property
    def name(self) -> str:
        return self._trace.model

    def follow(self, step: Step, parent: int | None) -> int:
        """The index in the trace of a step that the program just made.

        Raises:
            ReplayDiverged: the trace has no such step there.
        """
        for index, known in enumerate(self._trace.steps):
            if index in self._used or known.parent != parent or known.kind != step.kind:
                continue
            if (known.text, known.role, known.name) == (step.text, step.role, step.name):
                self._used.add(index)
                return index
        raise ReplayDiverged(f"the trace has no {step.kind} {step.text!r} at this place")

    def recorded(self, index: int) -> Step:
        """A step of the trace."""
        return self._trace.steps[index]

    def write(
        self, document: Document, place: Place, constraint: Any, stop: Sequence[str], options: dict[str, Any]
    ) -> Written:
        for index, step in enumerate(self._trace.steps):
            if index in self._used or step.parent != place.step or step.kind not in ("generation", "choice"):
                continue
            usage = step.usage or Usage(0, 0)
            # What was cut when it was written is cut in the replay.
            complete = step.finish_reason in ("stop", "stop_sequence") or constraint is None
            reason = step.finish_reason or "stop"
            return Written(replace(place), step.text, reason, complete, step.tokens, usage, step.seconds)
        raise ReplayDiverged("the trace has no generation at this place")


def _unparsed(model: LanguageModel, prompt: Prompt, constraint: Any, **options: Any) -> Result[Any]:
    """An output whose value the program reads itself."""
    try:
        return model.generate(prompt, constraint, **options)
    except InvalidValue as error:
        raise ModelError(f"no valid output: {error}") from error


def _written(place: Place, result: Result[Any]) -> Written:
    return Written(
        place,
        result.text,
        result.finish_reason,
        result.complete,
        trace_tokens(result),
        result.usage,
        result.seconds,
    )
