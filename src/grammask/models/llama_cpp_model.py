"""GGUF files run by llama.cpp, as models of grammask.

llama.cpp comes with the package llama-cpp-py-sync, whose wheels hold it ready built; its C interface is called
directly. All sessions share one context, in which each has a sequence of its own.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.engine.vocabulary import Vocabulary
from grammask.models.base import Message, Model, Prompt
from grammask.models.errors import MissingDependency, ModelError, ModelNotFound

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CONTEXT = 8192
"""Tokens of all sessions together, unless asked for otherwise: the key-value cache is reserved at once."""

LIBRARY = "GRAMMASK_LLAMA_LIBRARY"
"""The variable that names another libllama than the one in the package, of the same version of llama.cpp."""

_BATCH = 512


class LlamaCppModel(Model):
    """A GGUF file.

    Args:
        path: of the file.
        context: tokens that all sessions together can hold; None is what the model was trained for, up to 8192.
        threads: of the processor; None is llama.cpp's choice.
        gpu_layers: layers to put on an accelerator, where llama.cpp was built for one; -1 is all.
        sessions: how many may be open at once.
        name: how messages call it.

    Raises:
        MissingDependency: llama-cpp-py-sync is not installed.
        ModelNotFound: there is no such file.
        ModelError: llama.cpp cannot load it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None = None,
        threads: int | None = None,
        gpu_layers: int = 0,
        sessions: int = 8,
        name: str | None = None,
    ) -> None:
        path = Path(path).expanduser()
        if not path.is_file():
            raise ModelNotFound(f"there is no file {path}")
        self._name = name or str(path)
        self._ffi, self._lib = _library()
        lib, ffi = self._lib, self._ffi
        _be_quiet(ffi, lib)
        lib.llama_backend_init()
        parameters = lib.llama_model_default_params()
        parameters.n_gpu_layers = gpu_layers
        self._model = lib.llama_model_load_from_file(str(path).encode(), parameters)
        if self._model == ffi.NULL:
            raise ModelError(f"llama.cpp cannot load {path}")
        self._vocab = lib.llama_model_get_vocab(self._model)
        self._columns = int(lib.llama_vocab_n_tokens(self._vocab))
        self._vocabulary = Vocabulary.from_gguf(path, size=self._columns, eos_token_ids=self._ends())
        settings = lib.llama_context_default_params()
        self._length = context or min(int(lib.llama_model_n_ctx_train(self._model)), MAX_CONTEXT)
        settings.n_ctx = self._length
        settings.n_batch = settings.n_ubatch = min(_BATCH, self._length)
        settings.n_seq_max = sessions
        settings.kv_unified = True
        if threads is not None:
            settings.n_threads = settings.n_threads_batch = threads
        self._context = lib.llama_init_from_model(self._model, settings)
        if self._context == ffi.NULL:
            lib.llama_model_free(self._model)
            raise ModelError(f"llama.cpp cannot make a context of {self._length} tokens for {path}")
        self._free = list(range(sessions))
        self._held = [0] * sessions
        self._lock = threading.Lock()
        weakref.finalize(self, _release, lib, self._context, self._model)

    @property
    def name(self) -> str:
        return self._name

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def context_length(self) -> int | None:
        return self._length

    @property
    def has_chat_template(self) -> bool:
        return bool(self._lib.llama_model_chat_template(self._model, self._ffi.NULL) != self._ffi.NULL)

    def encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            ids = self._tokenize(prompt, special=True, parse=False)
        else:
            # The template writes the special tokens itself.
            ids = self._tokenize(self.render(prompt), special=False, parse=True)
        if not ids:
            start = int(self._lib.llama_vocab_bos(self._vocab))
            ids = [start if start >= 0 else self._vocabulary.eos_token_ids[0]]
        return ids

    def render(self, messages: Sequence[Message]) -> str:
        """The text of chat messages under the chat template, as far as llama.cpp knows it, ready for the answer.

        Raises:
            ModelError: there is no chat template, or llama.cpp does not know it.
        """
        ffi, lib = self._ffi, self._lib
        template = lib.llama_model_chat_template(self._model, ffi.NULL)
        if template == ffi.NULL:
            raise ModelError(f"{self._name} has no chat template, so it takes no list of messages")
        texts = [(message["role"].encode(), message["content"].encode()) for message in messages]
        kept = [(ffi.new("char[]", role), ffi.new("char[]", content)) for role, content in texts]
        chat = ffi.new("struct llama_chat_message[]", len(kept))
        for place, (role, content) in zip(chat, kept, strict=True):
            place.role, place.content = role, content
        size = 1024
        while True:
            text = ffi.new("char[]", size)
            written = lib.llama_chat_apply_template(template, chat, len(kept), True, text, size)
            if written < 0:
                raise ModelError(
                    f"llama.cpp does not know the chat template of {self._name}", hint="pass the prompt as one string"
                )
            if written <= size:
                return bytes(ffi.buffer(text, written)).decode()
            size = written

    def session(self) -> LlamaCppSession:
        with self._lock:
            if not self._free:
                raise ModelError("too many sessions of this model are open", hint="LlamaCppModel(..., sessions=...)")
            return LlamaCppSession(self, self._free.pop())

    def _tokenize(self, text: str, *, special: bool, parse: bool) -> list[int]:
        data = text.encode()
        room = len(data) + 16
        tokens = self._ffi.new("llama_token[]", room)
        count = self._lib.llama_tokenize(self._vocab, data, len(data), tokens, room, special, parse)
        if count < 0:
            raise ModelError(f"llama.cpp cannot tokenize a text of {len(data)} bytes")
        return [int(tokens[i]) for i in range(count)]

    def _ends(self) -> list[int]:
        return [token for token in range(self._columns) if self._lib.llama_vocab_is_eog(self._vocab, token)]

    def _decode(self, sequence: int, start: int, tokens: Sequence[int], rows: int) -> NDArray[np.float32]:
        """Appends tokens to a sequence; float32 [rows, vocabulary size], the logits after the last ``rows`` of them.

        Raises:
            ModelError: the sessions would hold more than the context. llama.cpp would end the process.
        """
        lib = self._lib
        with self._lock:
            others = sum(self._held) - self._held[sequence]
            if others + start + len(tokens) > self._length:
                raise ModelError(
                    f"{len(tokens)} more tokens do not fit: the sessions hold {others + start} of {self._length}",
                    hint="LlamaCppModel(..., context=...)",
                )
            logits = np.empty((rows, self._columns), dtype=np.float32)
            step = min(_BATCH, self._length)
            first = len(tokens) - rows
            for offset in range(0, len(tokens), step):
                part = tokens[offset : offset + step]
                batch = lib.llama_batch_init(len(part), 0, 1)
                try:
                    batch.n_tokens = len(part)
                    for i, token in enumerate(part):
                        batch.token[i] = token
                        batch.pos[i] = start + offset + i
                        batch.n_seq_id[i] = 1
                        batch.seq_id[i][0] = sequence
                        batch.logits[i] = offset + i >= first
                    status = lib.llama_decode(self._context, batch)
                finally:
                    lib.llama_batch_free(batch)
                if status != 0:
                    raise ModelError(f"llama.cpp cannot read {len(tokens)} tokens (status {status})")
                for i in range(max(first - offset, 0), len(part)):
                    row = self._ffi.buffer(lib.llama_get_logits_ith(self._context, i), 4 * self._columns)
                    logits[offset + i - first] = np.frombuffer(row, dtype=np.float32)
            self._held[sequence] = start + len(tokens)
            return logits

    def _forget(self, sequence: int, start: int) -> bool:
        """Removes what a sequence holds from a position on; False where the model's memory cannot be cut there."""
        with self._lock:
            memory = self._lib.llama_get_memory(self._context)
            done = bool(self._lib.llama_memory_seq_rm(memory, sequence, start, -1))
            if done:
                self._held[sequence] = min(self._held[sequence], start)
            return done

    def _copy(self, source: int, target: int, length: int) -> None:
        """Lets one sequence hold what another one does; the memory is shared, but counted twice."""
        with self._lock:
            self._lib.llama_memory_seq_cp(self._lib.llama_get_memory(self._context), source, target, 0, length)
            self._held[target] = length

    def _give_back(self, sequence: int) -> None:
        self._forget(sequence, 0)
        with self._lock:
            self._free.append(sequence)


class LlamaCppSession:
    """One sequence of a model's context, given back when the session is closed or no longer referred to."""

    def __init__(self, model: LlamaCppModel, sequence: int) -> None:
        self._model = model
        self._sequence = sequence
        self._tokens: list[int] = []
        self._read = 0
        self._finalizer = weakref.finalize(self, model._give_back, sequence)

    @property
    def length(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the sequence."""
        return tuple(self._tokens)

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._forward(token_ids, 1)[0]
        return row

    def forward_all(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """The logits after each of these tokens: float32 [tokens, vocabulary size]."""
        return self._forward(token_ids, len(token_ids))

    def _forward(self, token_ids: Sequence[int], rows: int) -> NDArray[np.float32]:
        if not token_ids:
            raise ValueError("a forward pass needs at least one token")
        unread = [*self._tokens[self._read :], *token_ids]
        try:
            logits = self._model._decode(self._sequence, self._read, unread, rows)
        except ModelError:
            # Some of them may have been read.
            self.truncate(len(self._tokens))
            raise
        self._tokens.extend(token_ids)
        self._read = len(self._tokens)
        return logits

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self._tokens):
            raise ValueError(f"cannot truncate a sequence of {len(self._tokens)} tokens to {length}")
        del self._tokens[length:]
        if not self._model._forget(self._sequence, length):
            # A memory that cannot be cut is read again from the start.
            self._model._forget(self._sequence, 0)
            length = 0
        self._read = min(self._read, length)

    def fork(self) -> LlamaCppSession:
        """An independent sequence with the same tokens."""
        twin = self._model.session()
        twin._tokens = list(self._tokens)
        twin._read = self._read
        self._model._copy(self._sequence, twin._sequence, self._read)
        return twin

    def close(self) -> None:
        """Gives the sequence back."""
        self._finalizer()


def _library() -> tuple[Any, Any]:
    if importlib.util.find_spec("llama_cpp_py_sync") is None:
        raise MissingDependency(
            "running a model with llama.cpp needs its library", hint='pip install "grammask[llama]"'
        )
    bindings: Any = importlib.import_module("llama_cpp_py_sync._cffi_bindings")
    ffi: Any = bindings.get_ffi()
    path = os.environ.get(LIBRARY)
    try:
        return ffi, ffi.dlopen(path) if path else bindings.get_lib()
    except (OSError, RuntimeError) as error:
        raise MissingDependency(
            f"the library of llama.cpp cannot be loaded: {error}",
            hint=f"set {LIBRARY} to a libllama that was built for this machine, of the version of llama-cpp-py-sync",
        ) from error


_keep: list[Any] = []


def _be_quiet(ffi: Any, lib: Any) -> None:
    """llama.cpp writes pages to standard error; what goes wrong is in the errors raised here."""
    if not _keep:
        _keep.append(ffi.callback("void(int, const char *, void *)", lambda level, text, data: None))
        lib.llama_log_set(ffi.cast("ggml_log_callback", _keep[0]), ffi.NULL)


def _release(lib: Any, context: Any, model: Any) -> None:
    lib.llama_free(context)
    lib.llama_model_free(model)
