"""Results and traces for people: as HTML in notebooks, and as text in a terminal (Rich).

The objects themselves call these functions from ``_repr_html_`` and ``__rich__``. Everything is read by attribute, so
that this package imports neither of them.
"""

from __future__ import annotations

from grammask.display.result import result_html, result_rich
from grammask.display.trace import trace_html, trace_rich

__all__ = ["result_html", "result_rich", "trace_html", "trace_rich"]
