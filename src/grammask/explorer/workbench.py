"""One model at the page's disposal: its logits after any sequence, without reading a sequence twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grammask.explorer.problems import Problem
from grammask.explorer.shown import TokenNames

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grammask.engine.compile import CompiledConstraint
    from grammask.engine.vocabulary import Vocabulary
    from grammask.explorer.constraints import ConstraintSpec
    from grammask.models import Model

KEPT_ROWS = 384
"""Rows of logits that are kept, the latest used first; 200 kB each for a vocabulary of 50,000."""

KEPT_CONSTRAINTS = 16


class Workbench:
    """Answers questions about one model, one at a time.

    The page keeps no state on this side: every request names its whole sequence. What makes that cheap is kept here,
    the key-value cache of the latest sequence (a new one shares its beginning) and the latest rows of logits.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.vocabulary: Vocabulary = model.vocabulary
        self.names = TokenNames(self.vocabulary)
        self._lock = threading.Lock()
        self._session = model.session()
        self._read: list[int] = []
        self._rows: OrderedDict[tuple[int, ...], NDArray[np.float32]] = OrderedDict()
        self._constraints: OrderedDict[ConstraintSpec, CompiledConstraint] = OrderedDict()

    def logits(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """The logits after a sequence, float32 [vocabulary size]; not to be written to.

        Raises:
            Problem: the sequence is longer than the model's context.
        """
        wanted = tuple(token_ids)
        limit = self.model.context_length
        if limit is not None and len(wanted) > limit:
            raise Problem("request", "too long", f"{len(wanted)} tokens are more than the model's context of {limit}")
        with self._lock:
            row = self._rows.get(wanted)
            if row is None:
                shared = 0
                for ours, theirs in zip(self._read, wanted[:-1], strict=False):
                    if ours != theirs:
                        break
                    shared += 1
                self._session.truncate(shared)
                self._read = list(wanted[:shared])
                row = self._session.forward(wanted[shared:]).copy()
                self._read = list(wanted)
                self._rows[wanted] = row
                if len(self._rows) > KEPT_ROWS:
                    self._rows.popitem(last=False)
            else:
                self._rows.move_to_end(wanted)
            return row

    def compile(self, spec: ConstraintSpec) -> CompiledConstraint:
        """A constraint over the model's vocabulary; the latest ones are kept.

        Raises:
            Problem: the constraint is malformed or cannot be enforced.
        """
        with self._lock:
            compiled = self._constraints.get(spec)
            if compiled is None:
                compiled = spec.compile(self.vocabulary)
                self._constraints[spec] = compiled
                if len(self._constraints) > KEPT_CONSTRAINTS:
                    self._constraints.popitem(last=False)
            else:
                self._constraints.move_to_end(spec)
            return compiled

    def encode(self, prompt: str, *, chat: bool) -> list[int]:
        """Token ids of a prompt, as a chat's user message if wanted and possible.

        Raises:
            Problem: the prompt cannot be encoded.
        """
        from grammask.models import ModelError

        asked: Any = [{"role": "user", "content": prompt}] if chat and self.model.has_chat_template else prompt
        try:
            return self.model.encode(asked)
        except (ModelError, ValueError) as error:
            raise Problem.of_error(error, "prompt") from error
