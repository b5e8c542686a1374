"""The determinism view: the lab's comparisons of logits, run on the model of the page, with progress."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from grammask.explorer.fields import fields, text, whole
from grammask.explorer.problems import Problem

if TYPE_CHECKING:
    from grammask.lab import Result
    from grammask.models import Model

EXPERIMENTS = ("batching", "dtypes", "kernels", "seeds", "summation")
"""The experiments of the lab that are about determinism."""


class _Stopped(Exception):
    """Raised inside of an experiment, to end it."""


def offered() -> list[dict[str, str]]:
    """The experiments with what each measures."""
    from grammask import lab

    return [{"name": name, "title": lab.EXPERIMENTS[name]} for name in EXPERIMENTS]


def measure(model: Model, request: Any, cancelled: threading.Event) -> Iterator[dict[str, Any]]:
    """Runs an experiment.

    Args:
        model: runs through transformers.
        request: ``experiment``, ``steps`` and ``seed``.
        cancelled: when set, the experiment ends after the current forward pass.

    Yields:
        ``{"done": n, "total": n}`` after each forward pass, then ``{"result": ...}`` or ``{"end": "cancelled"}``.

    Raises:
        Problem: there is no such experiment, or it cannot run on this model.
    """
    from grammask import lab

    request = fields(request)
    name = text(request, "experiment", 40)
    if name not in EXPERIMENTS:
        raise Problem("experiment", "unknown experiment", f"there is no experiment {name!r}")
    told: queue.Queue[dict[str, Any] | Exception] = queue.Queue()

    def progress(done: int, total: int) -> None:
        if cancelled.is_set():
            raise _Stopped
        told.put({"done": done, "total": total})

    options = lab.Options(
        steps=whole(request, "steps", 12, 2, 64), seed=whole(request, "seed", 0, 0, 2**63), progress=progress
    )

    def work() -> None:
        try:
            told.put({"result": _shown(lab.run(name, model, options))})
        except _Stopped:
            told.put({"end": "cancelled"})
        except Exception as error:  # whatever it is, the page must hear of it
            told.put(error)

    worker = threading.Thread(target=work, name=f"lab {name}", daemon=True)
    worker.start()
    while True:
        item = told.get()
        if isinstance(item, Exception):
            raise Problem.of_error(item, "experiment") from item
        yield item
        if "result" in item or "end" in item:
            worker.join()
            return


def _shown(result: Result) -> dict[str, Any]:
    return {
        "name": result.NAME,
        "title": result.TITLE,
        "method": result.METHOD,
        "findings": result.findings(),
        "tables": [
            {"title": table.title, "columns": list(table.columns), "rows": table.texts()} for table in result.tables()
        ],
        "plots": [
            {
                "title": plot.title,
                "y_label": plot.y_label,
                "log_y": plot.log_y,
                "kind": plot.kind,
                "series": [{"name": s.name, "x": list(s.x), "y": list(s.y)} for s in plot.series],
            }
            for plot in result.plots()
        ],
        "setup": {"model": result.setup.model, "fingerprint": result.setup.fingerprint, **result.setup.components},
        "data": result.to_json(),
    }
