"""``system_fingerprint``: a short name for everything that decides a model's logits.

Two systems with the same fingerprint, the same request and the same seed are expected to give the same bytes. With
different fingerprints nothing is promised, and the ``components`` tell what differs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from grammask.models.base import Model

SAMPLED_VALUES = 1024
"""So many values of each weight tensor, evenly spaced, go into the digest."""


@dataclass(frozen=True)
class Fingerprint:
    """What decides the logits.

    Attributes:
        components: name to value: weights (a digest), dtype, device, threads, versions and so on.
    """

    components: Mapping[str, str]

    @property
    def digest(self) -> str:
        """64 bits of the SHA-256 of all components, in hexadecimal."""
        lines = "\n".join(f"{name}={value}" for name, value in sorted(self.components.items()))
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"fp_{self.digest}"

    def differences(self, other: Fingerprint | Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
        """The components that differ: name to (here, there); None where one lacks it."""
        theirs = other.components if isinstance(other, Fingerprint) else other
        names = sorted(self.components.keys() | theirs.keys())
        return {
            name: (self.components.get(name), theirs.get(name))
            for name in names
            if self.components.get(name) != theirs.get(name)
        }


def fingerprint_of_results(model: Model) -> str:
    """``str(system_fingerprint(model))``, computed once for a model and a number of threads: each result carries it."""
    import sys

    torch = sys.modules.get("torch")
    threads = 0 if torch is None else int(torch.get_num_threads())
    owner = getattr(model, "module", None) or model
    known = _KNOWN.setdefault(owner, {})
    if threads not in known:
        known[threads] = str(system_fingerprint(model))
    return known[threads]


_KNOWN: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()


def system_fingerprint(model: Model, *, all_weights: bool = False) -> Fingerprint:
    """The fingerprint of a model as it runs in this process. ``Result.system_fingerprint`` is its text.

    Args:
        model: any model. Of those that run through transformers, the weights are part of the digest; of others, the
            name stands in for what they compute.
        all_weights: digest every value instead of 1024 of each tensor. The sample tells apart models, checkpoints and
            dtypes; only all values notice a single weight that was changed by hand.
    """
    components = {
        "grammask": importlib.metadata.version("grammask"),
        "vocabulary": model.vocabulary.fingerprint[:16],
        "machine": platform.machine(),
        "processor": _processor(),
        "numpy": importlib.metadata.version("numpy"),
    }
    module = getattr(model, "module", None)
    if module is None:
        components["model"] = f"{type(model).__name__} {model.name}"
    else:
        components.update(_torch_components(module, all_weights))
    return Fingerprint(components)


def _processor() -> str:
    try:
        return processor_of(Path("/proc/cpuinfo").read_text("utf-8")) or platform.processor()
    except OSError:
        return platform.processor()


def processor_of(cpuinfo: str) -> str:
    """Maker, family and model in Linux's description of the processors.

    Matrix libraries choose kernels by these, also among processors of equal vector instructions.
    """
    pairs = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    names = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")
    return " ".join(fields[name] for name in names if name in fields)


def _torch_components(module: Any, all_weights: bool) -> dict[str, str]:
    import torch

    parameters = dict(module.named_parameters())
    devices = sorted({str(tensor.device) for tensor in parameters.values()})
    config = module.config
    components = {
        "model": type(module).__name__,
        "weights": weights_digest(module, all_weights=all_weights),
        "dtype": ", ".join(sorted({str(tensor.dtype).removeprefix("torch.") for tensor in parameters.values()})),
        "device": ", ".join(devices),
        "attention": str(getattr(config, "_attn_implementation", None)),
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "transformers": importlib.metadata.version("transformers"),
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }
    if any(device.startswith("cuda") for device in devices):
        components["gpu"] = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return components


def weights_digest(module: Any, *, all_weights: bool = False) -> str:
    """64 bits of the SHA-256 of the names, shapes, dtypes and values of what a torch module would save.

    Buffers that it computes when it is made, and keeps under different names from release to release, are left out.
    """
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        flat = tensor.detach().reshape(-1)
        if not all_weights and flat.numel() > SAMPLED_VALUES:
            places = torch.linspace(0, flat.numel() - 1, SAMPLED_VALUES, dtype=torch.float64, device=flat.device)
            flat = flat[places.long()]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(flat.contiguous().cpu().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
