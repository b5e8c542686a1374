"""vLLM's second model runner without an accelerator: its Triton kernels run in Triton's own interpreter.

vLLM takes that runner on CPUs when Triton has a backend called "cpu", which no released Triton has. The interpreter
compiles nothing and asks a backend for nothing but that it is there.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def install() -> None:
    """To be called before vLLM or any kernel is loaded."""
    if "vllm.triton_utils" in sys.modules:
        raise RuntimeError("vLLM has looked for Triton already: use a process of its own")
    os.environ.update({"TRITON_INTERPRET": "1", "TRITON_DEFAULT_BACKEND": "cpu", "VLLM_USE_V2_MODEL_RUNNER": "1"})
    from triton.backends import Backend, DriverBase, backends

    class Driver(DriverBase):
        @staticmethod
        def is_active() -> bool:
            return True

    Driver.__abstractmethods__ = frozenset()
    backends["cpu"] = Backend(compiler=None, driver=Driver)
    _narrow_masks()


def _narrow_masks() -> None:
    """A mask has type i1. Where it was combined with a scalar its array is wider, and the interpreter refuses that."""
    from triton.runtime.interpreter import InterpreterBuilder

    for name, position in (("create_masked_load", 1), ("create_masked_store", 2)):
        original = getattr(InterpreterBuilder, name)

        def narrowed(self: Any, *operands: Any, original: Any = original, position: int = position) -> Any:
            mask = operands[position]
            mask.data = mask.data.astype(bool)
            return original(self, *operands)

        setattr(InterpreterBuilder, name, narrowed)
