"""A logits processor for TensorRT-LLM's LLM interface.

    params = SamplingParams(logits_processor=ConstraintLogitsProcessor(compiled))
    llm.generate(prompts, params)

Written after the documented interface (``tensorrt_llm.sampling_params.LogitsProcessor``): called with a request's id,
its logits [1, beams, vocabulary] on the device, and the tokens of each beam. **Never run with TensorRT-LLM**, which
needs an accelerator; tested on such calls with torch on the processor.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.integrations.completions import Completions

if TYPE_CHECKING:
    from grammask.engine.compile import CompiledConstraint


class ConstraintLogitsProcessor:
    """Masks the logits of every request that names it.

    Args:
        compiled: the constraint, compiled for the model's vocabulary.
    """

    def __init__(self, compiled: CompiledConstraint) -> None:
        self._compiled = compiled
        self._requests: dict[tuple[int, int], Completions] = {}

    def __call__(
        self, req_id: int, logits: Any, token_ids: list[list[int]], stream_ptr: int | None, client_id: int | None = None
    ) -> None:
        """
        Args:
            req_id: of the request.
            logits: torch tensor [1, beams, vocab_size], changed in place.
            token_ids: prompt and output of each beam.
            stream_ptr: the CUDA stream to work on; None for none.
            client_id: not used.
        """
        import torch

        rows = []
        for beam, tokens in enumerate(token_ids):
            completions = self._requests.get((req_id, beam))
            if completions is None:
                completions = self._requests[req_id, beam] = Completions(self._compiled)
            rows.append(completions.allowed(tokens, logits.shape[-1]))
        stream: Any = contextlib.nullcontext()
        if stream_ptr is not None:
            stream = torch.cuda.stream(torch.cuda.ExternalStream(stream_ptr))  # type: ignore[no-untyped-call]
        with stream:
            allowed = torch.from_numpy(np.stack(rows)).to(logits.device, non_blocking=True)
            logits.masked_fill_(~allowed.unsqueeze(0), float("-inf"))

    def forget(self, req_id: int) -> None:
        """Drops the state of a request that has ended."""
        for key in [key for key in self._requests if key[0] == req_id]:
            del self._requests[key]
