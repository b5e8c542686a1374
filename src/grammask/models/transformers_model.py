"""Models that run in this process through Hugging Face transformers.

A session keeps the key-value cache of its sequence, so each forward pass reads only the tokens that are new: one
sampled token, or a whole run of forced ones. Logits are asked for at the last position alone (``logits_to_keep``),
since a row for each position of a long prompt would cost more memory than the model's weights.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammask.models.base import Model, Prompt
from grammask.models.errors import MissingDependency, ModelError, ModelNotFound
from grammask.models.prefix_cache import PrefixCache
from grammask.models.threads import thread_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grammask.engine.vocabulary import Vocabulary


class TransformersModel(Model):
    """A causal language model of transformers with its tokenizer.

    Args:
        model: a ``PreTrainedModel`` with a language-modelling head, in evaluation mode.
        tokenizer: its tokenizer.
        name: what to call it in messages; the model's own name if None.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str | None = None) -> None:
        from grammask.engine.vocabulary import Vocabulary

        self._model = model
        self._tokenizer = tokenizer
        self._name = name or str(getattr(model, "name_or_path", "") or type(model).__name__)
        self._config = model.config.get_text_config()
        head = model.get_output_embeddings()
        rows = int(head.weight.shape[0] if head is not None else self._config.vocab_size)
        self._vocabulary = Vocabulary.from_transformers(
            tokenizer, size=rows, eos_token_ids=_end_of_text_ids(model, tokenizer)
        )
        self._calling = _Calling.of(model)
        self._prefix_cache: PrefixCache | None = None
        self._can_cache: bool | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def module(self) -> Any:
        """The torch module behind it, a ``PreTrainedModel``."""
        return self._model

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        return self._tokenizer

    @property
    def context_length(self) -> int | None:
        length = getattr(self._config, "max_position_embeddings", None)
        return int(length) if length else None

    @property
    def has_chat_template(self) -> bool:
        return bool(getattr(self._tokenizer, "chat_template", None))

    @property
    def prefix_cache(self) -> PrefixCache | None:
        """Shared by all calls; set ``prefix_cache.max_tokens`` to bound it. None for architectures whose caches cannot
        be cut (sliding windows, recurrent states)."""
        if self._can_cache is None:
            session = self.session()
            session.forward([0])
            self._can_cache = session.can_be_cut
            self._prefix_cache = PrefixCache() if self._can_cache else None
        return self._prefix_cache

    def encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            ids = list(self._tokenizer(prompt).input_ids)
        else:
            # The template writes the special tokens itself.
            ids = list(self._tokenizer(self.render(prompt), add_special_tokens=False).input_ids)
        if not ids:
            start = self._tokenizer.bos_token_id
            if start is None:
                start = self._tokenizer.eos_token_id
            if start is None:
                raise ModelError("the prompt is empty, and this model has no start token to begin from")
            ids = [start]
        return [int(token) for token in ids]

    def knows_role(self, role: str) -> bool:
        """Whether the chat template names this role."""
        template = self._tokenizer.chat_template
        return any(f"{quote}{role}{quote}" in str(template) for quote in "'\"")

    def render(self, messages: Sequence[Any]) -> str:
        """The text of chat messages under the model's chat template, ready for the assistant's turn.

        Raises:
            ModelError: there is no chat template, or it refuses these messages.
        """
        if not self.has_chat_template:
            raise ModelError(
                f"{self._name} has no chat template, so it takes no list of messages",
                hint="pass the prompt as one string, or set model.tokenizer.chat_template",
            )
        for position, message in enumerate(messages):
            if "role" not in message or "content" not in message:
                raise ModelError(f"message {position} must have the keys 'role' and 'content', got {sorted(message)}")
        try:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # a template is a program of its author: it may raise anything
            raise ModelError(f"the chat template of {self._name} refuses these messages: {error}") from error
        return str(text)

    def session(self) -> TransformersSession:
        return TransformersSession(self._model, self._calling)


@dataclass(frozen=True)
class _Calling:
    """How a model's ``forward`` wants to be called, which differs between architectures and versions of transformers.

    Attributes:
        cache: name of the cache, as an argument and as a field of the output. None if there is none that can simply be
            passed on (``cache_params`` of older versions wants bookkeeping by the caller): then every forward pass
            reads the whole sequence.
        keeps_logits: it can be told how many positions' logits are wanted.
    """

    cache: str | None
    keeps_logits: bool

    @classmethod
    def of(cls, model: Any) -> _Calling:
        parameters = inspect.signature(model.forward).parameters
        cache = next((name for name in ("cache", "past_key_values") if name in parameters), None)
        return cls(cache, "logits_to_keep" in parameters)


class TransformersSession:
    """One sequence: its tokens, and the cache of those that the model has read.

    ``tokens`` is the truth; the first ``_cached`` of them are in the cache. What a cache can do depends on its layers:

    * Full attention keeps a key and a value for each token. It can be cut anywhere, and many tokens can be appended at
      once.
    * A sliding window forgets, so it cannot be cut: after a truncation, the sequence is read again with the next
      forward pass.
    * A recurrent state cannot be cut either, and is carried on one token at a time: some architectures are not exact
      when they append several at once.
    """

    def __init__(self, model: Any, calling: _Calling) -> None:
        self._model = model
        self._calling = calling
        self._tokens: list[int] = []
        self._cached = 0
        self._cache: Any = None

    @property
    def length(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the sequence."""
        return tuple(self._tokens)

    @property
    def can_be_cut(self) -> bool:
        """Whether ``truncate`` keeps what the model has read of the tokens that stay."""
        return self._cache is not None and _can_be_cut(self._cache)

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._append(token_ids, rows=1)[-1]
        return row

    def forward_all(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        return self._append(token_ids, rows=len(token_ids))

    def fork(self) -> TransformersSession:
        import torch

        twin = TransformersSession(self._model, self._calling)
        twin._tokens = self._tokens.copy()
        twin._cached = self._cached
        with torch.inference_mode():
            twin._cache = copy.deepcopy(self._cache)
        return twin

    def _append(self, token_ids: Sequence[int], *, rows: int) -> NDArray[np.float32]:
        """Reads tokens and returns the logits after the last ``rows`` of them."""
        import torch

        if not token_ids:
            raise ValueError("a forward pass needs at least one token")
        unread = [*self._tokens[self._cached :], *token_ids]
        if self._cache is not None and _is_recurrent(self._cache):
            logits = torch.cat([self._read([token], 1) for token in unread])
        else:
            logits = self._read(unread, rows)
        self._tokens.extend(token_ids)
        self._cached = 0 if self._cache is None else len(self._tokens)
        kept: NDArray[np.float32] = logits[-rows:].float().cpu().numpy()
        return kept

    def _read(self, token_ids: list[int], rows: int) -> Any:
        """One forward pass; the logits of at least the last ``rows`` positions."""
        import torch

        calling = self._calling
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor([token_ids], dtype=torch.long, device=self._model.device),
                **({} if calling.cache is None else {calling.cache: self._cache}),
                **({"logits_to_keep": rows} if calling.keeps_logits else {}),
                use_cache=calling.cache is not None,
            )
        self._cache = None if calling.cache is None else getattr(output, calling.cache)
        return output.logits[0]

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self._tokens):
            raise ValueError(f"cannot truncate a sequence of {len(self._tokens)} tokens to {length}")
        del self._tokens[length:]
        surplus = self._cached - length
        if surplus <= 0:
            return
        if length > 0 and _can_be_cut(self._cache):
            # A negative number is how many tokens to remove in every version of transformers; what a positive one
            # means has changed.
            self._cache.crop(-surplus)
            self._cached = length
        else:
            self._cache = None
            self._cached = 0


def _is_recurrent(cache: Any) -> bool:
    """Whether a cache carries a state from token to token. Caches of an unknown kind count as such."""
    layers = getattr(cache, "layers", None)
    return layers is None or any(hasattr(layer, "recurrent_states") for layer in layers)


def _can_be_cut(cache: Any) -> bool:
    """Whether every layer of a cache still has all of its keys and values."""
    return not _is_recurrent(cache) and not any(getattr(layer, "is_sliding", False) for layer in cache.layers)


def load_transformers(
    source: str | Path,
    *,
    name: str,
    device: str | None = None,
    dtype: str | None = None,
    local_files_only: bool = False,
    revision: str | None = None,
    trust_remote_code: bool = False,
    threads: int | None = None,
) -> TransformersModel:
    """Loads a local folder or a hub id with transformers.

    Args:
        source: folder with ``config.json``, weights and tokenizer files, or a hub id such as "org/model".
        device: torch device; None is "cpu".
        dtype: torch dtype by name; None is "float32" on the CPU and the checkpoint's own elsewhere.
        local_files_only: never ask the hub, only its local cache.
        revision: branch, tag or commit on the hub.
        trust_remote_code: run Python code that comes with the model.
        threads: threads of torch in this process; None is what the environment says, else what ``thread_count`` finds.

    Raises:
        MissingDependency: torch or transformers is not installed.
        ModelNotFound: there is no such model, or the hub cannot be reached and has not cached it.
        ModelError: the files are there but cannot be loaded.
    """
    for module in ("torch", "transformers"):
        if importlib.util.find_spec(module) is None:
            raise MissingDependency(
                f"running {name} needs the package {module}", hint='pip install "grammask[transformers]"'
            )
    import torch
    import transformers

    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}: use at least 1")
    device = device or "cpu"
    wanted: Any = dtype or ("float32" if torch.device(device).type == "cpu" else "auto")
    if wanted != "auto":
        wanted = getattr(torch, wanted, None)
        if not isinstance(wanted, torch.dtype):
            raise ModelError(f"{dtype!r} is not a torch dtype", hint='for example "float32" or "bfloat16"')
    place: dict[str, Any] = {
        "local_files_only": local_files_only,
        "revision": revision or "main",
        "trust_remote_code": trust_remote_code,
    }
    try:
        with _without_progress_bars(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **place)
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(str(source), dtype=wanted, **place)
    except OSError as error:
        raise ModelNotFound(
            f"no model at {str(source)!r}: {_first_line(error)}",
            hint='pass "smollm2", a folder with config.json and weights, a .gguf file, or a hub id such as "org/model"',
        ) from error
    except (ValueError, KeyError, ImportError, RuntimeError) as error:
        raise ModelError(f"transformers cannot load {name!r}: {_first_line(error)}") from error
    if torch.device(device).type == "cpu":
        _set_threads(torch, threads)
    model.to(device)
    model.eval()
    return TransformersModel(model, tokenizer, name=name)


def _set_threads(torch: Any, threads: int | None) -> None:
    """The setting is the process's. Without an explicit number it is only ever lowered: whoever has chosen fewer had a
    reason."""
    wanted = thread_count() if threads is None else threads
    if wanted is not None and (threads is not None or wanted < torch.get_num_threads()):
        torch.set_num_threads(wanted)


def _end_of_text_ids(model: Any, tokenizer: Any) -> list[int]:
    """Every token that ends an output: chat models often have an end of turn beside the end of text."""
    ids: list[Any] = []
    for source in (getattr(model, "generation_config", None), tokenizer):
        found = getattr(source, "eos_token_id", None)
        ids.extend(found if isinstance(found, (list, tuple)) else [found])
    return sorted({int(token) for token in ids if token is not None})


@contextlib.contextmanager
def _without_progress_bars(transformers: Any) -> Iterator[None]:
    """Silences the bar over the weights, which is gone in a second; downloads keep theirs."""
    logging = transformers.utils.logging
    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
