"""The step view: what the model wanted at each step, what the constraint left of it, and why the rest is out."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.explorer.constraints import ConstraintSpec
from grammask.explorer.problems import Problem
from grammask.explorer.reasons import Reasons
from grammask.explorer.settings import sampling_of
from grammask.sampling import Sampler, Sampling, SamplingError, SamplingWarning
from grammask.sampling.inputs import unpack_mask

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.explorer.workbench import Workbench
    from grammask.sampling import SamplerState

TOP = 14
"""Candidates shown out of each of the two distributions."""

MAX_PATH = 4096


@dataclass(frozen=True)
class StepRequest:
    """One output, as far as it goes.

    Attributes:
        prompt: text. chat: whether it is a user's message under the model's chat template.
        spec: the constraint.
        sampling: how tokens are drawn.
        seed: of the draws.
        path: the tokens of the output so far, forced and chosen ones alike.
    """

    prompt: str
    chat: bool
    spec: ConstraintSpec
    sampling: Sampling
    seed: int
    path: tuple[int, ...]

    @classmethod
    def of(cls, value: Any) -> StepRequest:
        """From a JSON object.

        Raises:
            Problem: it is malformed.
        """
        if not isinstance(value, Mapping):
            raise Problem("request", "malformed request", "the request is not an object")
        prompt, seed, path = value.get("prompt", ""), value.get("seed", 0), value.get("path") or []
        if not isinstance(prompt, str) or not _is_whole(seed) or not 0 <= seed < 2**64:
            raise Problem("request", "malformed request", "prompt is a text, and seed a whole number of 64 bits")
        if not isinstance(path, list) or len(path) > MAX_PATH or not all(_is_whole(token) for token in path):
            raise Problem("request", "malformed request", f"path is a list of up to {MAX_PATH} token ids")
        return cls(
            prompt,
            bool(value.get("chat", True)),
            ConstraintSpec.of(value.get("constraint")),
            sampling_of(value.get("sampling")),
            seed,
            tuple(path),
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Walk:
    """A position in an output: the matcher, the sampler's state and the tokens so far.

    Raises:
        Problem: the constraint is no good, or the path leaves it.
    """

    def __init__(self, bench: Workbench, request: StepRequest) -> None:
        self._bench = bench
        self._request = request
        self._prompt_ids = bench.encode(request.prompt, chat=request.chat)
        vocabulary = bench.vocabulary
        self.matcher: Matcher = bench.compile(request.spec).matcher()
        structured = request.spec.kind != "none"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)
            sampler = Sampler(
                request.sampling,
                vocabulary.size,
                eos_token_ids=vocabulary.eos_token_ids,
                structured=structured,
                token_bytes=vocabulary.token_bytes,
            )
        self.state: SamplerState = sampler.start(self._prompt_ids, seed=request.seed)
        self._mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
        self.ended = False

    @property
    def step(self) -> int:
        """How many tokens of output there are."""
        return self.state.step

    @property
    def text(self) -> bytes:
        """The output so far."""
        return self._bench.vocabulary.decode(self.state.output_ids)

    def row(self) -> NDArray[np.float32]:
        """The model's logits at this position."""
        return self._bench.logits([*self._prompt_ids, *self.state.output_ids])

    def mask(self) -> NDArray[np.int32]:
        """The constraint's mask at this position."""
        self.matcher.fill_mask(self._mask)
        return self._mask

    def forced(self) -> list[int]:
        """The tokens that are certain to come next."""
        return list(self.matcher.forced_tokens())

    def only_end(self) -> bool:
        """Whether nothing but the end of the text is possible."""
        if not self.matcher.is_complete:
            return False
        return set(self.matcher.allowed_token_ids().tolist()) <= set(self._bench.vocabulary.eos_token_ids)

    def accept(self, token_id: int) -> None:
        """Go on with a token.

        Raises:
            Problem: the constraint does not allow it here.
        """
        self.require(token_id)
        self.matcher.accept(token_id)
        self.state.append(token_id)
        self.ended = token_id in self._bench.vocabulary.eos_token_ids

    def require(self, token_id: int) -> None:
        """Make sure that a token may come next.

        Raises:
            Problem: it may not.
        """
        size = self._bench.vocabulary.size
        known = 0 <= token_id < size
        if self.ended or not known or not unpack_mask(self.mask(), size)[token_id]:
            name = repr(self._bench.names.text(token_id)) if known else str(token_id)
            where = f"step {self.step}"
            raise Problem("path", "not possible", f"the token {name} may not come at {where} under this constraint")

    def draw(self) -> int:
        """The token that the sampler draws here.

        Raises:
            Problem: none can be drawn.
        """
        try:
            return self.state.sampler.sample(self.row(), self.state, mask=self.mask()).token_id
        except SamplingError as error:
            raise Problem("sampling", "no token left", str(error)) from error


def chip(walk: Walk, bench: Workbench, token_id: int, *, forced: bool) -> dict[str, Any]:
    """A token of the output, told before it is accepted: its probabilities before and after the mask, the mass kept.

    ``entropy`` is the model's own, in bits; ``wanted`` the token that the model itself found most likely.
    """
    raw = _softmax(walk.row())
    allowed = unpack_mask(walk.mask(), bench.vocabulary.size)
    kept = float(raw[allowed].sum())
    return {
        **bench.names.token(token_id),
        "forced": forced,
        "raw": float(raw[token_id]),
        "masked": float(raw[token_id]) / kept if kept > 0 else None,
        "kept": kept,
        "allowed": int(np.count_nonzero(allowed)),
        "entropy": _entropy(raw),
        "wanted": bench.names.token(int(raw.argmax())),
    }


def run(
    bench: Workbench,
    request: StepRequest,
    steps: int,
    cancelled: threading.Event | None = None,
    *,
    known: int = 0,
) -> Iterator[dict[str, Any]]:
    """The chips of the path, and then of up to ``steps`` further tokens, one at a time; last, how it ended.

    Args:
        bench: the model.
        request: the output so far.
        steps: how many tokens to add.
        cancelled: asked before each token.
        known: tokens of the path whose chips are not needed again.

    Yields:
        ``{"chip": ...}`` per token, then ``{"end": reason, "complete": bool}`` with the reason "stop", "steps",
        "context" or "cancelled".

    Raises:
        Problem: the constraint is no good, the path leaves it, or no token can be drawn.
    """
    walk = Walk(bench, request)
    limit = bench.model.context_length or math.inf
    forced: list[int] = []
    for count in range(len(request.path) + steps):
        if cancelled is not None and cancelled.is_set():
            yield _end("cancelled", walk)
            return
        if walk.ended or walk.only_end():
            break
        if walk.state.step + len(walk.state.prompt_ids) >= limit:
            yield _end("context", walk)
            return
        forced = forced or walk.forced()
        expected = forced[0] if forced else None
        token_id = request.path[count] if count < len(request.path) else expected
        if token_id is None:
            token_id = walk.draw()
        certain = token_id == expected or bool(len(walk.matcher.allowed_token_ids()) == 1)
        forced = forced[1:] if token_id == expected else []
        if count >= known:
            walk.require(token_id)
            yield {"chip": chip(walk, bench, token_id, forced=certain)}
        walk.accept(token_id)
    yield _end("stop" if walk.ended or walk.only_end() else "steps", walk)


def _end(reason: str, walk: Walk) -> dict[str, Any]:
    return {"end": reason, "complete": walk.ended or walk.matcher.is_complete, "steps": walk.step}


def inspect(bench: Workbench, request: StepRequest) -> dict[str, Any]:
    """Everything about the position after the path: both distributions, why candidates are out, and the place.

    Raises:
        Problem: as ``run``.
    """
    walk = Walk(bench, request)
    for token_id in request.path:
        walk.accept(token_id)
    text = walk.text
    if walk.ended or walk.only_end():
        return {"step": walk.step, "ended": True, "text": text.decode("utf-8", "replace"), "candidates": []}
    raw = _softmax(walk.row())
    allowed = unpack_mask(walk.mask(), bench.vocabulary.size)
    kept = float(raw[allowed].sum())
    masked = np.where(allowed, raw, 0.0)
    if kept > 0:
        masked /= kept
    final, drawable = _final(walk)
    reasons = Reasons(request.spec, walk.matcher, text, bench.vocabulary)
    shown = dict.fromkeys([*_best(raw, TOP), *_best(masked, TOP), *sorted(final, key=lambda i: -final[i])[:TOP]])
    forced = walk.forced()
    candidates = [
        {
            **bench.names.token(token_id),
            "raw": float(raw[token_id]),
            "allowed": bool(allowed[token_id]),
            "masked": float(masked[token_id]),
            "final": final.get(token_id, 0.0),
            "why": None if allowed[token_id] else reasons.why_not(token_id),
        }
        for token_id in sorted(shown, key=lambda i: (-raw[i], i))
    ]
    place = reasons.place
    return {
        "step": walk.step,
        "ended": False,
        "text": text.decode("utf-8", "replace"),
        "complete": walk.matcher.is_complete,
        "candidates": candidates,
        "kept": kept,
        "allowed": int(np.count_nonzero(allowed)),
        "vocabulary": bench.vocabulary.size,
        "entropy": _entropy(raw),
        "entropy_masked": _entropy(masked),
        "drawable": drawable,
        "expected": reasons.expected(),
        "forced": [bench.names.token(token_id) for token_id in forced[:12]],
        "pointer": None if place is None else place.pointer,
        "where": None if place is None else place.where,
    }


def _final(walk: Walk) -> tuple[dict[int, float], int]:
    """The most likely tokens after every setting with their probabilities, and how many could be drawn in all."""
    try:
        ids, probabilities = walk.state.sampler.distribution(walk.row(), walk.state, walk.mask())
    except SamplingError:
        return {}, 0
    best = np.argsort(-probabilities, kind="stable")[: 4 * TOP]
    return {int(ids[i]): float(probabilities[i]) for i in best}, len(ids)


def _best(probabilities: NDArray[np.float64], count: int) -> list[int]:
    """The most likely tokens that are possible at all."""
    count = min(count, len(probabilities))
    best = np.argpartition(-probabilities, count - 1)[:count]
    ordered = best[np.argsort(-probabilities[best], kind="stable")]
    return [int(token_id) for token_id in ordered if probabilities[token_id] > 0]


def _softmax(row: NDArray[np.float32]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.exp(row.astype(np.float64) - float(row.max()))
    weights /= weights.sum()
    return weights


def _entropy(probabilities: NDArray[np.float64] | Sequence[float]) -> float:
    """In bits."""
    values = np.asarray(probabilities, dtype=np.float64)
    values = values[values > 0]
    return max(0.0, float(-(values * np.log2(values)).sum()))
