"""The logits processor that vLLM's entry point names, for whichever model runner the engine uses.

vLLM loads one class through one entry point, but has two runners with two interfaces. The class satisfies both and
makes the processor that belongs to the arguments it is called with.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.sample.logits_processor import LogitsProcessor as BatchInterface

from grammask.integrations.vllm import parameters
from grammask.integrations.vllm.batch_processor import BatchProcessor

try:
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as SlotInterface

    from grammask.integrations.vllm.slot_processor import SlotProcessor
except ImportError:  # older vLLM has one runner
    _interfaces: tuple[type, ...] = (BatchInterface,)
else:
    _interfaces = (BatchInterface, SlotInterface)

_Interface: Any = type("_Interface", _interfaces, {})


class ConstraintLogitsProcessor(_Interface):  # type: ignore[misc]  # one of several classes
    """Constraints of requests that name one in ``extra_args["grammask"]``; other requests are left alone.

    ``LLM(..., logits_processors=["grammask.integrations.vllm.processor:ConstraintLogitsProcessor"])`` is not needed
    where grammask is installed, except with asynchronous scheduling under the first model runner.
    """

    def __new__(cls, vllm_config: Any, *arguments: Any) -> Any:
        if len(arguments) == 1:
            return SlotProcessor(vllm_config, *arguments)
        return BatchProcessor(vllm_config, *arguments)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose constraint cannot be enforced.

        Raises:
            ValueError: says why; over HTTP it is an answer with status 400.
        """
        parameters.validate(sampling_params)
