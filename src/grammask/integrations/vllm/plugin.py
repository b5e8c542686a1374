"""What vLLM runs in each of its processes before it does anything else (entry point ``vllm.general_plugins``).

vLLM has no registry of structured-output backends: it has four names, and imports a class and a function that checks
requests for each. With ``GRAMMASK_VLLM_BACKEND`` set, grammask's take their places, so that every request that vLLM
would give to such a backend is checked and constrained by grammask instead:

* ``GRAMMASK_VLLM_BACKEND=all``        all of them, whatever ``--structured-outputs-config.backend`` says, "auto"
  included. vLLM's fallback from one backend to the next then leads from grammask to grammask: what it refuses is
  refused.
* ``GRAMMASK_VLLM_BACKEND=guidance``   that one; start vLLM with ``--structured-outputs-config.backend guidance``.

Unset, vLLM's structured outputs stay as they are.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

VARIABLE = "GRAMMASK_VLLM_BACKEND"

_PLACES = {
    "xgrammar": (
        ("vllm.v1.structured_output", "XgrammarBackend"),
        ("vllm.v1.structured_output.backend_xgrammar", "validate_xgrammar_grammar"),
    ),
    "guidance": (
        ("vllm.v1.structured_output", "GuidanceBackend"),
        ("vllm.v1.structured_output.backend_guidance", "validate_guidance_grammar"),
    ),
    "outlines": (
        ("vllm.v1.structured_output.backend_outlines", "OutlinesBackend"),
        ("vllm.v1.structured_output.backend_outlines", "validate_structured_output_request_outlines"),
    ),
    "lm-format-enforcer": (
        ("vllm.v1.structured_output.backend_lm_format_enforcer", "LMFormatEnforcerBackend"),
        (
            "vllm.v1.structured_output.backend_lm_format_enforcer",
            "validate_structured_output_request_lm_format_enforcer",
        ),
    ),
}
"""Name of a backend: where vLLM looks up its class, and the function that checks requests for it."""


def register() -> None:
    """Called by vLLM, possibly several times."""
    _refuse_what_would_be_ignored()
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted:
        take_places(list(_PLACES) if wanted == "all" else [name.strip() for name in wanted.split(",")])


def take_places(names: list[str]) -> None:
    """Puts grammask in the place of backends of vLLM, in this process.

    Raises:
        ValueError: there is no such backend.
        RuntimeError: this vLLM looks backends up in other places than the version that this was written for.
    """
    unknown = [name for name in names if name not in _PLACES]
    if unknown:
        raise ValueError(f"{VARIABLE} is 'all' or names of {', '.join(_PLACES)}, not {', '.join(unknown)}")
    from grammask.integrations.vllm.backend import GrammaskBackend, validate_request

    for name in names:
        for (module_name, attribute), ours in zip(_PLACES[name], (GrammaskBackend, validate_request), strict=True):
            module = importlib.import_module(module_name)
            if not hasattr(module, attribute):
                raise RuntimeError(f"vLLM has no {module_name}.{attribute}: this grammask does not know this vLLM")
            setattr(module, attribute, ours)


def _refuse_what_would_be_ignored() -> None:
    """Has requests for the logits processor checked against the engine's configuration as well.

    vLLM checks a request with a class method that sees neither configuration nor tokenizer, and its first model runner
    leaves processors out when it decodes speculatively. A constraint would then be ignored without a word.
    """
    from vllm.v1.engine.input_processor import InputProcessor

    original = InputProcessor.__init__
    if getattr(original, "__grammask__", False):
        return

    @functools.wraps(original)
    def init(self: Any, vllm_config: Any, *arguments: Any, **keywords: Any) -> None:
        from grammask.integrations.vllm.admission import Admission

        original(self, vllm_config, *arguments, **keywords)
        self.validate_logits_processors_params = Admission(
            vllm_config, lambda: self.tokenizer, self.validate_logits_processors_params
        )

    init.__grammask__ = True  # type: ignore[attr-defined]
    InputProcessor.__init__ = init
