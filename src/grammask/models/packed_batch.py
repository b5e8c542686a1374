"""Packed forward passes through transformers: tokens of many sequences side by side in one row, without padding.

A decoder works on each token by itself except in attention. So the tokens of all sequences are laid side by side as one
row with their own positions, every matrix product reads the weights once for all of them, and attention alone goes
sequence by sequence, each over its own keys and values (Yu et al., "Orca", OSDI 2022, call this selective batching).

**Invariance.** A matrix product over M tokens may add up in another order than one over M' tokens, so a token's logits
could depend on its company. Kernels choose their order by M, not by what the rows hold: on processors it is the same
for all M from 4 on that divide well among threads. So a pass is padded to one of a few sizes, and when the batch is
made, the model itself is asked which of these sizes agree to the last bit, wherever a token stands; only those are
used. Runs of more than ``PACKED`` tokens (prompts) are read alone, in pieces whose lengths depend on the run only.

Attention functions are chosen by a model's configuration, which other users of the model share; so the batch works on a
twin of the module, with a configuration of its own and the same weights.
"""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from grammask.models.batch import SequenceBatch, check_truncation, check_unread, free_slot

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from grammask.models.transformers_model import TransformersModel

ATTENTION = "grammask_packed"
"""The name of the attention function, as transformers' registry knows it."""
SIZES = (4, 8, 16)
"""The numbers of tokens to which a pass may be padded."""
PACKED = 16
"""Runs of up to this many tokens share a pass with others."""
PIECE = 512
"""Longer runs are read alone, in pieces of this many tokens."""
FIRST_CAPACITY = 32
"""Tokens for which a new sequence has room; doubled when it is full."""


class PackingImpossible(Exception):
    """The model cannot be run in packed passes: another attention, a recurrent state, experts, an old transformers."""


@dataclass
class _Sequence:
    """Keys and values of one sequence: for each layer [1, key-value heads, capacity, head dimension]."""

    length: int = 0
    keys: dict[int, torch.Tensor] = field(default_factory=dict)
    values: dict[int, torch.Tensor] = field(default_factory=dict)

    def append(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Stores the keys and values of the tokens that follow the first ``length``."""
        end = self.length + keys.shape[2]
        for stored, new in ((self.keys, keys), (self.values, values)):
            buffer = stored.get(layer)
            if buffer is None or buffer.shape[2] < end:
                stored[layer] = buffer = self._grown(buffer, new, end)
            buffer[:, :, self.length : end] = new

    def _grown(self, buffer: torch.Tensor | None, new: torch.Tensor, end: int) -> torch.Tensor:
        capacity = FIRST_CAPACITY
        while capacity < end:
            capacity *= 2
        grown = new.new_empty((1, new.shape[1], capacity, new.shape[3]))
        if buffer is not None:
            grown[:, :, : self.length] = buffer[:, :, : self.length]
        return grown

    def copy(self) -> _Sequence:
        keys = {layer: buffer.clone() for layer, buffer in self.keys.items()}
        return _Sequence(self.length, keys, {layer: buffer.clone() for layer, buffer in self.values.items()})


@dataclass(frozen=True)
class _Run:
    """Tokens of one sequence inside a pass: ``count`` places from ``start`` on."""

    sequence: _Sequence
    start: int
    count: int


_RUNS: ContextVar[Sequence[_Run]] = ContextVar("runs")
"""The runs of the pass that this thread is in: the cache and the attention function are called from deep inside."""


class PackedBatch(SequenceBatch):
    """Sequences of a model of transformers, read in packed passes. One thread at a time.

    Args:
        model: the model; it can be used beside the batch.

    Attributes:
        sizes: the numbers of tokens to which passes are padded, ascending, all of them with the same bits. With (1,),
            tokens of different sequences are never read together.

    Raises:
        PackingImpossible: the model has something in it that packed passes cannot do, or they give other logits.
    """

    def __init__(self, model: TransformersModel) -> None:
        self._cache_name = _cache_argument(model)
        self._module = _twin(model.module)
        self._device = model.module.device
        self._cache = _new_cache()
        self._sequences: dict[int, _Sequence] = {}
        self.sizes: tuple[int, ...] = (1,)
        if model.module not in _SIZES:
            try:
                _SIZES[model.module] = self._agreeing_sizes(model)
            except PackingImpossible:
                raise
            except Exception as error:  # whatever an unforeseen architecture does with the cache and the arguments
                raise PackingImpossible(f"{type(model.module).__name__}: {error}") from error
        self.sizes = _SIZES[model.module]

    @property
    def invariant(self) -> bool:
        return True

    def add(self) -> int:
        slot = free_slot(self._sequences)
        self._sequences[slot] = _Sequence()
        return slot

    def fork(self, slot: int) -> int:
        import torch

        with torch.inference_mode():
            twin = self._sequences[slot].copy()
        number = free_slot(self._sequences)
        self._sequences[number] = twin
        return number

    def remove(self, slot: int) -> None:
        del self._sequences[slot]

    def length(self, slot: int) -> int:
        return self._sequences[slot].length

    def truncate(self, slot: int, length: int) -> None:
        check_truncation(self._sequences[slot].length, length)
        self._sequences[slot].length = length

    def forward(self, unread: Mapping[int, Sequence[int]]) -> dict[int, NDArray[np.float32]]:
        check_unread(unread, self._sequences)
        largest = self.sizes[-1]
        short = {slot: len(tokens) for slot, tokens in unread.items() if len(tokens) <= min(PACKED, largest)}
        rows: dict[int, NDArray[np.float32]] = {}
        for slots in _bins(short, largest):
            tokens_together = sum(short[slot] for slot in slots)
            size = next(size for size in self.sizes if size >= tokens_together)
            rows.update(zip(slots, self._pass({slot: unread[slot] for slot in slots}, size), strict=True))
        for slot in unread.keys() - short.keys():
            for piece in _pieces(unread[slot]):
                rows[slot] = self._pass({slot: piece}, len(piece))[0]
        return rows

    def forward_all(self, slot: int, token_ids: Sequence[int]) -> NDArray[np.float32]:
        import numpy as np

        check_unread({slot: token_ids}, self._sequences)
        return np.concatenate([self._pass({slot: piece}, len(piece), every=True) for piece in _pieces(token_ids)])

    def _pass(
        self, unread: Mapping[int, Sequence[int]], size: int, *, every: bool = False
    ) -> list[NDArray[np.float32]]:
        """One pass over all of these tokens, padded to ``size``.

        Returns:
            The logits after the last token of each run, or after ``every`` token.
        """
        import torch

        token_ids: list[int] = []
        positions: list[int] = []
        runs: list[_Run] = []
        for slot, tokens in unread.items():
            sequence = self._sequences[slot]
            runs.append(_Run(sequence, len(token_ids), len(tokens)))
            positions.extend(range(sequence.length, sequence.length + len(tokens)))
            token_ids.extend(tokens)
        padding = [0] * (size - len(token_ids))
        last = list(range(len(token_ids))) if every else [run.start + run.count - 1 for run in runs]
        # The head is one more matrix product, so its number of rows is padded to a size as well.
        heads = next((size for size in self.sizes if size >= len(last)), len(last))
        picked = last + last[:1] * (heads - len(last))
        setting = _RUNS.set(runs)
        try:
            with torch.inference_mode():
                output = self._module(
                    input_ids=torch.tensor([[*token_ids, *padding]], device=self._device),
                    position_ids=torch.tensor([[*positions, *padding]], device=self._device),
                    logits_to_keep=torch.tensor(picked, device=self._device),
                    use_cache=True,
                    **{self._cache_name: self._cache},
                )
        finally:
            _RUNS.reset(setting)
        for run in runs:
            run.sequence.length += run.count
        logits = output.logits[0, : len(last)].float().cpu().numpy()
        return [row.copy() for row in logits]

    def _agreeing_sizes(self, model: TransformersModel) -> tuple[int, ...]:
        """The sizes of passes under which a token's logits are the same to the last bit, wherever it stands.

        Raises:
            PackingImpossible: packed passes give other logits than the model by itself.
        """
        import numpy as np

        vocabulary = model.vocabulary.size
        text = [(7 + 7919 * place) % vocabulary for place in range(8)]
        expected = model.session().forward(text)
        slot = self.add()
        self.forward({slot: text[:6]})
        for token in text[6:]:
            found = self.forward({slot: [token]})[slot]
        self.remove(slot)
        error = float(np.abs(found - expected).max())
        tolerance = _TOLERANCE.get(str(self._module.dtype), _TOLERANCE["torch.bfloat16"])
        if not error <= tolerance * float(np.abs(expected).max()):
            raise PackingImpossible(f"{type(model.module).__name__}: logits in packed passes differ by {error:.2g}")
        rows: dict[int, NDArray[np.float32]] = {}
        for size in SIZES:
            tokens = [text[place * 5 % len(text)] for place in range(size)]
            slots = [self.add() for _ in tokens]
            together = self._pass({slot: [token] for slot, token in zip(slots, tokens, strict=True)}, size)
            for slot, token, row in zip(slots, tokens, together, strict=True):
                self.remove(slot)
                if not np.array_equal(row, rows.setdefault(token, row)):
                    return SIZES[: SIZES.index(size)] or (1,)
        return _agreeing_products(self._module)


def _agreeing_products(module: Any) -> tuple[int, ...]:
    """The sizes, from the smallest on, with which every shape of matrix in a module gives a row the same bits wherever
    it stands.

    In half precision, two orders of addition seldom round to different numbers: it takes many rows to see it.
    """
    import torch

    shapes = {
        (part.weight.shape, part.weight.dtype): part for part in module.modules() if type(part) is torch.nn.Linear
    }
    agreeing: tuple[int, ...] = SIZES
    for part in shapes.values():
        generator = torch.Generator().manual_seed(0)
        count = 16 if part.weight.numel() > _LARGE else 64
        rows = torch.randn((count, part.in_features), generator=generator).to(part.weight)
        expected = None
        for size, _ in itertools.product(agreeing, range(2)):
            order = torch.randperm(count, generator=generator)
            with torch.inference_mode():
                found = torch.empty((count, part.out_features), dtype=rows.dtype, device=rows.device)
                for start in range(0, count, size):
                    places = order[start : start + size]
                    found[places] = part(rows[places].unsqueeze(0))[0]
            if expected is not None and not torch.equal(found, expected):
                agreeing = agreeing[: agreeing.index(size)]
                break
            expected = found
    return agreeing or (1,)


_LARGE = 8_000_000
"""Matrices of more numbers than this are tried with fewer rows."""

_SIZES: WeakKeyDictionary[Any, tuple[int, ...]] = WeakKeyDictionary()
"""Module to the sizes found for it, which the next batch of the same module need not look for."""

_TOLERANCE = {"torch.float64": 1e-6, "torch.float32": 1e-3, "torch.float16": 3e-2, "torch.bfloat16": 2e-1}
"""By dtype, how much rounding may move a logit between packed and plain passes, as a share of the largest logit."""


def _pieces(tokens: Sequence[int]) -> list[Sequence[int]]:
    return [tokens[start : start + PIECE] for start in range(0, len(tokens), PIECE)]


def _bins(counts: Mapping[int, int], capacity: int) -> Iterator[list[int]]:
    """The slots in groups whose counts sum up to at most ``capacity``, in their order."""
    group: list[int] = []
    room = capacity
    for slot, count in counts.items():
        if count > room:
            yield group
            group, room = [], capacity
        group.append(slot)
        room -= count
    if group:
        yield group


# -- fitting into transformers


def _cache_argument(model: TransformersModel) -> str:
    """What ``forward`` calls the cache.

    Raises:
        PackingImpossible: it lacks an argument that packed passes need, or has experts, which see tokens in groups
            whose sizes depend on all tokens of a pass.
    """
    parameters = inspect.signature(model.module.forward).parameters
    name = next((name for name in ("cache", "past_key_values") if name in parameters), None)
    kind = type(model.module).__name__
    if name is None or not {"position_ids", "logits_to_keep"} <= parameters.keys():
        raise PackingImpossible(f"{kind} takes no cache, position_ids or logits_to_keep")
    config = model.module.config.get_text_config()
    if any(getattr(config, experts, None) for experts in ("num_experts", "num_local_experts", "n_routed_experts")):
        raise PackingImpossible(f"{kind} routes tokens to experts")
    return name


def _twin(module: Any) -> Any:
    """A module with the same tensors and a configuration of its own, whose attention goes run by run.

    Raises:
        PackingImpossible: this version of transformers has no registry of attention functions, or the module holds
            something that cannot be copied.
    """
    try:
        from transformers import AttentionInterface
    except ImportError as error:
        raise PackingImpossible("packed passes need transformers 4.48 or newer") from error
    AttentionInterface.register(ATTENTION, _attention)
    tensors = {id(tensor): tensor for tensor in itertools.chain(module.parameters(), module.buffers())}
    try:
        twin = copy.deepcopy(module, tensors)
    except TypeError as error:
        raise PackingImpossible(f"{type(module).__name__} cannot be copied: {error}") from error
    for part in twin.modules():
        config = getattr(part, "config", None)
        if config is not None:
            config._attn_implementation = ATTENTION
    return twin


def _new_cache() -> Any:
    """An object that takes the place of transformers' cache and keeps the tensors with their sequences."""
    from transformers import Cache

    class PackedCache(Cache):
        def __init__(self) -> None:
            self.layers: list[Any] = []

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            for run in _RUNS.get():
                places = slice(run.start, run.start + run.count)
                run.sequence.append(layer_idx, key_states[:, :, places], value_states[:, :, places])
            return key_states, value_states

        def get_seq_length(self, layer_idx: int = 0, *args: Any) -> int:
            return 0

    return PackedCache()


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention, for each run over the keys and values of its own sequence, which hold the run's by now.

    Args:
        query: [1, heads, tokens, head dimension].
        key, value: of this pass alone; not used.
        sliding_window: how many tokens, itself included, a token looks at; None is all.

    Returns:
        [1, tokens, heads, head dimension]; padding is zero.
    """
    unknown = [name for name in ("softcap", "s_aux", "position_bias", "head_mask") if options.get(name) is not None]
    if unknown or attention_mask is not None:
        raise PackingImpossible(f"attention with {', '.join(unknown) or 'a mask'}")
    output = query.new_zeros((1, query.shape[2], query.shape[1], value.shape[3]))
    for run in _RUNS.get():
        places = slice(run.start, run.start + run.count)
        length = run.sequence.length + run.count
        first = 0 if sliding_window is None else max(0, run.sequence.length + 1 - sliding_window)
        keys = run.sequence.keys[module.layer_idx][:, :, first:length]
        values = run.sequence.values[module.layer_idx][:, :, first:length]
        found = _attend(query[:, :, places], keys, values, run.sequence.length - first, scaling, sliding_window)
        output[:, places] = found.transpose(1, 2)
    return output, None


def _attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int,
    scaling: float | None,
    window: int | None,
) -> torch.Tensor:
    """Causal attention of tokens at ``position`` and after, [1, heads, count, dimension].

    Heads that share keys and values are laid beside each other as further queries, so that nothing is repeated.
    """
    import torch

    _, heads, count, dimension = query.shape
    shared = keys.shape[1]
    mask = None
    if count > 1:
        at = torch.arange(position, position + count, device=query.device).unsqueeze(1)
        seen = torch.arange(keys.shape[2], device=query.device)
        mask = seen <= at
        if window is not None:
            mask &= seen > at - window
        mask = mask.repeat(heads // shared, 1)
    packed = query.reshape(1, shared, heads // shared * count, dimension)
    found = torch.nn.functional.scaled_dot_product_attention(packed, keys, values, attn_mask=mask, scale=scaling)
    return found.reshape(1, heads, count, values.shape[3])
