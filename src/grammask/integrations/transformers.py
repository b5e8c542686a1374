"""grammask inside ``transformers``: a ``LogitsProcessor`` for ``model.generate``, and ``generate`` with forced tokens.

    processor = constrain(model, tokenizer, grammask.JsonSchema(schema))
    model.generate(**inputs, logits_processor=[processor])

A processor is told the tokens of every row at every step, and rows change places: beam search drops some and goes on
with several copies of others, assisted generation looks ahead and goes back. So the state of a row is found by its
tokens, not by its place: it is a copy of the state one token shorter, which was known one step ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from grammask.engine.compile import CompiledConstraint, compile
from grammask.integrations.following import Follower, fill_rows
from grammask.integrations.masking import apply_masks_
from grammask.integrations.vocabularies import check_columns, check_tokenizer, vocabulary_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grammask.constraints.base import Constraint
    from grammask.decoding import Result
    from grammask.models import Prompt
    from grammask.models.transformers_model import TransformersModel


class HistoryError(ValueError):
    """The tokens of a row are none that the constraint allows."""


class ConstraintLogitsProcessor(transformers.LogitsProcessor):
    """Masks the logits of a batch, for one call of ``generate`` after the other.

    Works with greedy search, sampling, beam search, assisted generation and prompt lookup, every kind of cache, and any
    padding of prompts. Rows that have ended keep their logits. Beam search fills beams up with excluded sequences when
    the constraint leaves fewer than it asks for; their score is −inf, so do not ask for more sequences than there are
    valid outputs.

    Args:
        constraints: one for all prompts, or one for each prompt of the batch, compiled for the model's tokens.
        stop_ids: ids at which ``generate`` stops, beside the vocabulary's ends of text.
        prompt_length: columns of ``input_ids`` that are prompt; None: those of the first call.
        in_place: write into the logits that ``generate`` passes. Saves a copy, but ``output_logits=True`` then shows
            masked logits.
    """

    def __init__(
        self,
        constraints: CompiledConstraint | Sequence[CompiledConstraint],
        *,
        stop_ids: Iterable[int] = (),
        prompt_length: int | None = None,
        in_place: bool = False,
    ) -> None:
        self._constraints = [constraints] if isinstance(constraints, CompiledConstraint) else list(constraints)
        if not self._constraints:
            raise ValueError("there are no constraints")
        vocabularies = {compiled.vocabulary.fingerprint for compiled in self._constraints}
        if len(vocabularies) > 1:
            raise ValueError("the constraints of one batch must be compiled for the same vocabulary")
        self._stop_ids = tuple(stop_ids)
        self._given_prompt_length = prompt_length
        self._in_place = in_place
        self._prompts: torch.Tensor | None = None
        self._known: dict[tuple[int, bytes], Follower] = {}

    @torch.no_grad()
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """
        Args:
            input_ids: int64 [rows, columns], prompt and output so far.
            scores: floating [rows, vocab_size].

        Returns:
            The masked scores.

        Raises:
            VocabularyMismatch: the logits do not have a column for every token.
            HistoryError: no row's output satisfies the constraint so far.
        """
        vocabulary = self._constraints[0].vocabulary
        check_columns(vocabulary, scores.shape[1])
        start = self._start_of_output(input_ids)
        followers, places = self._followers(input_ids[:, start:].cpu().numpy())
        if all(follower.is_lost for follower in followers):
            raise HistoryError(
                "the output so far does not satisfy the constraint: use a new processor for each call of generate with "
                "another prompt, or pass prompt_length"
            )
        words = np.empty((len(followers), (vocabulary.size + 31) // 32), dtype=np.int32)
        fill_rows(followers, words)
        packed = torch.from_numpy(words[places]).to(scores.device, non_blocking=True)
        return apply_masks_(scores if self._in_place else scores.clone(), packed)

    def _start_of_output(self, input_ids: torch.Tensor) -> int:
        """Columns of prompt. Another prompt than before begins another call of ``generate``."""
        prompts = self._prompts
        columns = input_ids.shape[1] if prompts is None else prompts.shape[1]
        if prompts is None or input_ids.shape[1] < columns or not _same_prompts(prompts, input_ids[:, :columns]):
            columns = input_ids.shape[1] if self._given_prompt_length is None else self._given_prompt_length
            if columns > input_ids.shape[1]:
                raise ValueError(f"prompt_length is {columns}, but there are {input_ids.shape[1]} columns")
            self._prompts = input_ids[:, :columns].clone()
            self._known = {}
        return columns

    def _followers(self, outputs: NDArray[np.int64]) -> tuple[list[Follower], list[int]]:
        """The different states of the rows, and which of them each row has."""
        rows = len(outputs)
        if rows % len(self._constraints):
            raise ValueError(f"{len(self._constraints)} constraints do not divide a batch of {rows} rows")
        per_constraint = rows // len(self._constraints)
        known: dict[tuple[int, bytes], Follower] = {}
        places: list[int] = []
        order: dict[tuple[int, bytes], int] = {}
        for row, output in enumerate(outputs):
            key = (row // per_constraint, output.tobytes())
            if key not in order:
                order[key] = len(order)
                known[key] = self._follower(key[0], output)
            places.append(order[key])
        followers = [known[key] for key in order]
        # Those of the step before stay, for the beams that go on from there and for looking back by one.
        shortest = outputs.shape[1] - 1
        self._known = {key: each for key, each in self._known.items() if each.length == shortest} | known
        return followers, places

    def _follower(self, group: int, output: NDArray[np.int64]) -> Follower:
        same = self._known.get((group, output.tobytes()))
        if same is not None:
            return same
        parent = self._known.get((group, output[:-1].tobytes())) if len(output) else None
        if parent is None:
            follower = Follower(self._constraints[group], self._stop_ids)
            follower.read(output.tolist())
        else:
            follower = parent.copy()
            follower.read([int(output[-1])])
        return follower


def _same_prompts(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether the prompts are the same, be it that each stands there once or once for each of its beams."""
    more, fewer = (ours, theirs) if len(ours) >= len(theirs) else (theirs, ours)
    if len(more) % len(fewer):
        return False
    return torch.equal(more, fewer.repeat_interleave(len(more) // len(fewer), dim=0))


def constrain(
    model: Any,
    tokenizer: Any,
    constraint: Constraint | CompiledConstraint | Sequence[Constraint | CompiledConstraint] | Any,
    **options: Any,
) -> ConstraintLogitsProcessor:
    """A processor for a model's ``generate``.

    Args:
        model: a causal language model of transformers.
        tokenizer: its tokenizer, a fast one.
        constraint: a constraint, a compiled one, or a Python type; or a list, one for each prompt of the batch.
        options: of ``ConstraintLogitsProcessor``.

    Raises:
        ConstraintError: a constraint cannot be enforced.
        VocabularyMismatch: a compiled constraint belongs to other tokens than the tokenizer has now, or the tokenizer
            has more tokens than the model.
    """
    ends = _end_ids(model)
    vocabulary = vocabulary_of(tokenizer, _columns(model), ends)
    several = isinstance(constraint, (list, tuple))
    wanted: Sequence[Any] = constraint if isinstance(constraint, (list, tuple)) else [constraint]
    compiled = []
    for each in wanted:
        if isinstance(each, CompiledConstraint):
            check_tokenizer(each.vocabulary, tokenizer)
            compiled.append(each)
        else:
            compiled.append(compile(_as_constraint(each), vocabulary))
    options.setdefault("stop_ids", ends)
    return ConstraintLogitsProcessor(compiled if several else compiled[0], **options)


def generate(model: Any, tokenizer: Any, prompt: Prompt, constraint: Any = None, **options: Any) -> Result[Any]:
    """One output of a model of transformers through grammask's own loop, which does not ask the model for tokens that
    the constraint makes certain.

    Args:
        model: a causal language model of transformers.
        tokenizer: its tokenizer, a fast one.
        prompt: text, or chat messages.
        constraint: a Constraint, a CompiledConstraint or a Python type; None for free text.
        options: those of ``Model.generate``: sampling, max_tokens, seed, stop ...

    Raises:
        ConstraintError: the constraint cannot be enforced.
        ModelError: the prompt cannot be encoded or does not fit.
    """
    return _wrapped(model, tokenizer).generate(prompt, constraint, **options)


@dataclass(frozen=True)
class _Kept:
    """What is kept with a module. Copies of the module begin without it."""

    model: TransformersModel
    tokens: str

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None


def _wrapped(model: Any, tokenizer: Any) -> TransformersModel:
    """The model as grammask sees it, kept with the model itself, so that it lives as long."""
    from grammask.models.transformers_model import TransformersModel

    known = getattr(model, "_grammask_kept", None)
    tokens = vocabulary_of(tokenizer, _columns(model), _end_ids(model)).fingerprint
    if not isinstance(known, _Kept) or known.model.tokenizer is not tokenizer or known.tokens != tokens:
        known = model._grammask_kept = _Kept(TransformersModel(model, tokenizer), tokens)
    return known.model


def _columns(model: Any) -> int:
    head = model.get_output_embeddings()
    if head is not None and hasattr(head, "weight"):
        return int(head.weight.shape[0])
    return int(model.config.get_text_config().vocab_size)


def _end_ids(model: Any) -> list[int]:
    declared = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ids = declared if isinstance(declared, (list, tuple)) else [declared]
    return [int(token) for token in ids if token is not None]


def _as_constraint(wanted: Any) -> Constraint | str:
    from grammask.constraints.base import Constraint
    from grammask.constraints.types import constraint_for

    return wanted if isinstance(wanted, (Constraint, str)) else constraint_for(wanted)
