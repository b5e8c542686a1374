"""What is asked of the model for every record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Backend = Literal["model", "vllm"]
Format = Literal["jsonl", "parquet"]


class BatchError(ValueError):
    """Input, output folder and job do not fit together."""


@dataclass(frozen=True)
class Job:
    """Everything that decides the outcomes, apart from the records themselves. Can be pickled.

    Attributes:
        constraint: a description as in ``grammask.integrations.wire``; None for free text.
        model: what ``load_model`` takes; for the backend "vllm", what vLLM takes.
        backend: "model" runs ``load_model(model)``, "vllm" vLLM's offline engine.
        column: the member of a record that holds its text.
        instruction: stands before the text, with an empty line between.
        system: system message for chat models.
        raw: plain text, without the model's chat template.
        max_tokens: longest output.
        sampling: settings as for ``Sampling``; greedy if empty. Of vLLM, those of ``SamplingParams``.
        shard_size: records in one file of the output.
        batch_size: records that a model works on at once.
        format: of the output files.
        id_column: the member of a record that is copied into its outcome as ``id``; None for none.
        engine_options: further arguments of the engine.
    """

    constraint: Mapping[str, Any] | None
    model: str = "smollm2"
    backend: Backend = "model"
    column: str = "text"
    instruction: str | None = None
    system: str | None = None
    raw: bool = False
    max_tokens: int = 512
    sampling: Mapping[str, Any] = field(default_factory=dict)
    shard_size: int = 64
    batch_size: int = 8
    format: Format = "jsonl"
    id_column: str | None = None
    engine_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.shard_size < 1 or self.batch_size < 1 or self.max_tokens < 1:
            raise BatchError("shard_size, batch_size and max_tokens are at least 1")
        if self.backend not in ("model", "vllm"):
            raise BatchError(f'the backend is "model" or "vllm", not {self.backend!r}')
        if self.format not in ("jsonl", "parquet"):
            raise BatchError(f'the format is "jsonl" or "parquet", not {self.format!r}')

    def manifest(self, inputs: Sequence[Path]) -> dict[str, Any]:
        """What an output folder is compared by before a job goes on in it. How many records a model works on at once
        and where it runs may differ."""
        facts = {name: value for name, value in asdict(self).items() if name not in ("batch_size", "engine_options")}
        return {**json.loads(json.dumps(facts)), "inputs": [describe(path) for path in inputs]}


def describe(path: Path) -> dict[str, Any]:
    """A file's name, size and digest of its content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}
