"""Many sequences of one model, read together: what a scheduler, a beam search or several samples need.

A ``SequenceBatch`` holds sequences in numbered slots. ``forward`` appends tokens to any of them and returns one row of
logits each; sequences come and go between passes. Where ``invariant`` holds, the logits of a sequence have the same
bits whatever is read beside it, so that equal requests with equal seeds give equal bytes in any company.

``sequence_batch`` picks the implementation: ``PackedBatch`` for models of transformers that allow it, ``SessionBatch``,
one sequence after the other, for all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grammask.models.base import Model, Session


class SequenceBatch(ABC):
    """Sequences of one model in numbered slots. One thread at a time."""

    @property
    @abstractmethod
    def invariant(self) -> bool:
        """The logits of a sequence do not depend on what is read beside it, bit for bit."""

    @abstractmethod
    def add(self) -> int:
        """A new, empty sequence; returns its slot, a number not in use."""

    @abstractmethod
    def fork(self, slot: int) -> int:
        """A copy of a sequence, which goes on by itself; returns its slot."""

    @abstractmethod
    def remove(self, slot: int) -> None:
        """Ends a sequence; its slot may be given out again."""

    @abstractmethod
    def length(self, slot: int) -> int:
        """How many tokens a sequence holds."""

    @abstractmethod
    def truncate(self, slot: int, length: int) -> None:
        """Forgets all tokens of a sequence from position ``length`` on (0 ≤ length ≤ its length)."""

    @abstractmethod
    def forward(self, unread: Mapping[int, Sequence[int]]) -> dict[int, NDArray[np.float32]]:
        """Appends tokens to some of the sequences.

        Args:
            unread: slot to the tokens to append, at least one each.

        Returns:
            For each of these slots the logits after its last token, float32 [vocabulary size]; the caller may write to
            them.

        Raises:
            KeyError: there is no such slot.
            ValueError: a slot has no tokens to append.
        """

    @abstractmethod
    def forward_all(self, slot: int, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Appends tokens to one sequence; returns the logits after each of them, float32 [tokens, vocabulary size].

        Raises:
            KeyError, ValueError: as ``forward``.
        """


class SessionBatch(SequenceBatch):
    """Each sequence is a session of its own, read one after the other: works with every model, and gains no speed."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._sessions: dict[int, Session] = {}

    @property
    def invariant(self) -> bool:
        return True

    def add(self) -> int:
        slot = free_slot(self._sessions)
        self._sessions[slot] = self._model.session()
        return slot

    def fork(self, slot: int) -> int:
        twin = free_slot(self._sessions)
        self._sessions[twin] = self._sessions[slot].fork()
        return twin

    def remove(self, slot: int) -> None:
        del self._sessions[slot]

    def length(self, slot: int) -> int:
        return self._sessions[slot].length

    def truncate(self, slot: int, length: int) -> None:
        self._sessions[slot].truncate(length)

    def forward(self, unread: Mapping[int, Sequence[int]]) -> dict[int, NDArray[np.float32]]:
        check_unread(unread, self._sessions)
        return {slot: self._sessions[slot].forward(token_ids) for slot, token_ids in unread.items()}

    def forward_all(self, slot: int, token_ids: Sequence[int]) -> NDArray[np.float32]:
        check_unread({slot: token_ids}, self._sessions)
        return self._sessions[slot].forward_all(token_ids)


def sequence_batch(model: Model) -> SequenceBatch:
    """The fastest batch for a model: packed passes where the model allows them, else one sequence after the other.

    Making a packed batch runs the model a few times, to see that its passes are exact and invariant.
    """
    from grammask.models.transformers_model import TransformersModel

    if isinstance(model, TransformersModel):
        from grammask.models.packed_batch import PackedBatch, PackingImpossible

        try:
            return PackedBatch(model)
        except PackingImpossible:
            pass
    return SessionBatch(model)


def free_slot(taken: Mapping[int, object]) -> int:
    """The lowest number that is not in use."""
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def check_unread(unread: Mapping[int, Sequence[int]], slots: Mapping[int, object]) -> None:
    """The arguments of ``forward``, before anything is changed.

    Raises:
        KeyError, ValueError: as ``SequenceBatch.forward``.
    """
    for slot, token_ids in unread.items():
        if slot not in slots:
            raise KeyError(f"there is no sequence in slot {slot}")
        if not len(token_ids):
            raise ValueError(f"slot {slot} has no tokens to read: a forward pass needs at least one")


def check_truncation(length: int, to: int) -> None:
    """Refuses a length that a sequence cannot be cut to.

    Raises:
        ValueError: it is negative or greater than the sequence's.
    """
    if not 0 <= to <= length:
        raise ValueError(f"cannot truncate a sequence of {length} tokens to {to}")
