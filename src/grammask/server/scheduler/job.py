"""What the scheduler is asked for, and what it tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from grammask.decoding.result import FinishReason
from grammask.engine.compile import CompiledConstraint
from grammask.sampling import SampledToken, Sampling


@dataclass(eq=False)
class Job:
    """One request: n outputs for a prompt.

    Attributes:
        prompt_ids: at least one token.
        compiled: what each output must be.
        sampling: how tokens are drawn; ``stop`` and ``logprobs`` are taken from it, ``n`` and ``seed`` are not.
        seed: of the random numbers; each output draws its own.
        n: how many outputs.
        max_tokens: of each output.
        never_cut: outputs are completed within ``max_tokens``.
        marks: names of special tokens that are part of the text, by id.
        client: whose turn it is.
        deadline: on the clock of ``time.monotonic``; an output still unfinished then fails.
        cancelled: nobody waits any more.
    """

    prompt_ids: Sequence[int]
    compiled: CompiledConstraint
    sampling: Sampling
    seed: int
    n: int
    max_tokens: int
    client: str
    deadline: float
    never_cut: bool = False
    marks: dict[int, str] = field(default_factory=dict)
    cancelled: bool = False


@dataclass(frozen=True)
class Piece:
    """More of an output.

    Attributes:
        index: which of the n outputs.
        text: whole characters.
        marks: offsets in the text where the name of a special token stands.
        tokens: what the text was made of; with those of characters that are not whole yet they run ahead of it.
    """

    index: int
    text: str
    marks: tuple[int, ...]
    tokens: tuple[SampledToken, ...]


@dataclass(frozen=True)
class Ended:
    """An output is over.

    Attributes:
        reason: why.
        token_ids: of the whole output.
        forced: how many of them were certain.
        complete: they are a valid output, even if there could have been more of it.
    """

    index: int
    reason: FinishReason
    token_ids: tuple[int, ...]
    forced: int
    complete: bool


@dataclass(frozen=True)
class Failed:
    """An output cannot go on."""

    index: int
    error: Exception


Event: TypeAlias = Piece | Ended | Failed
