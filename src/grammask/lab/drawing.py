"""Plots as PNG or SVG, drawn by matplotlib."""

from __future__ import annotations

import importlib.util
import io
from typing import Any, Literal

from grammask.lab.experiment import LabError
from grammask.lab.report import Plot

Format = Literal["png", "svg"]


def draw(plot: Plot, image_format: Format) -> bytes:
    """The image file's content; the same plot gives the same bytes under the same version of matplotlib.

    Raises:
        LabError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise LabError('plots need matplotlib: pip install "grammask[lab]", or leave them out with --plots none')
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = {"svg.hashsalt": plot.name, "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.3}
    metadata = {"Date": None} if image_format == "svg" else None
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot()
        if plot.kind == "bar":
            names = [str(name) for name in plot.series[0].x]
            width = 0.8 / len(plot.series)
            for number, series in enumerate(plot.series):
                places = [index + (number - (len(plot.series) - 1) / 2) * width for index in range(len(names))]
                axes.bar(places, series.y, width, label=series.name)
            long = max(map(len, names)) > 12
            axes.set_xticks(range(len(names)), names, rotation=20 if long else 0, ha="right" if long else "center")
        else:
            for series in plot.series:
                marker = "." if len(series.x) < 30 else ""
                axes.plot([float(x) for x in series.x], series.y, marker=marker, label=series.name)
        axes.set_axisbelow(True)
        axes.set_title(plot.title)
        axes.set_xlabel(plot.x_label)
        axes.set_ylabel(plot.y_label)
        if plot.log_x:
            axes.set_xscale("log")
        if plot.log_y:
            axes.set_yscale("log")
        if len(plot.series) > 1:
            axes.legend()
        content = io.BytesIO()
        figure.savefig(content, format=image_format, dpi=110, metadata=metadata)
    return content.getvalue()
