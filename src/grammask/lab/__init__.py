"""Measurements of sampling and determinism that can be run again on any model.

An experiment is a module with ``run(model, options) -> Result``; a result is plain numbers that show themselves as
findings, tables and plots, and go to JSON. ``grammask lab NAME`` runs one from the command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from grammask.lab.experiment import Experiment, LabError, Options
from grammask.lab.report import Plot, Result, Series, Setup, Table

if TYPE_CHECKING:
    from grammask.models import Model

EXPERIMENTS = {
    "nucleus": "sizes of nuclei by temperature, on factual and open prompts",
    "mass": "probability kept by a fixed k, tokens kept by a fixed p",
    "degeneration": "loops of greedy decoding, and what each penalty does about them",
    "structure": "penalties on tables, lists, code and JSON",
    "order": "the same settings in another order",
    "seeds": "what a seed repeats",
    "summation": "float32 sums in several orders",
    "batching": "logits by batch size, with the closest gap and the first step that parts",
    "dtypes": "logits by dtype, likewise",
    "kernels": "logits by threads, attention kernel and matrix library, likewise",
    "versions": "a recording to compare versions and machines with",
}
"""Name to what it measures, in the order in which ``all`` runs them."""


def find(name: str) -> Experiment:
    """The module of an experiment.

    Raises:
        LabError: there is no such experiment.
    """
    if name not in EXPERIMENTS:
        raise LabError(f"no experiment {name!r}: use {', '.join(EXPERIMENTS)}")
    return cast(Experiment, import_module(f"grammask.lab.{name}"))


def run(name: str, model: Model, options: Options | None = None) -> Result:
    """Runs an experiment by name.

    Raises:
        LabError: there is no such experiment, or it cannot run on this model.
    """
    return find(name).run(model, options or Options())


__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "LabError",
    "Options",
    "Plot",
    "Result",
    "Series",
    "Setup",
    "Table",
    "find",
    "run",
]
