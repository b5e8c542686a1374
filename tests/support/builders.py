"""The Builders that tests of constraints run on: the native one and the slow reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammask import _core
from support.reference_builder import ReferenceBuilder

if TYPE_CHECKING:
    from grammask._core import Builder

BUILDER_NAMES = ["native", "reference"]

_BYTES = _core.Vocabulary([bytes([value]) for value in range(256)], [], 256)


def make_builder(name: str) -> Builder:
    """A fresh Builder; the native ones share the expressions of one vocabulary."""
    builder: Any = _core.Builder(_BYTES) if name == "native" else ReferenceBuilder()
    return builder
