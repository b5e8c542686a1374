"""Programs that generate: plain Python around a document that the model helps to write."""

from __future__ import annotations

from grammask.constraints.where import where
from grammask.programs.parts import Gen, Together, gen, select, together
from grammask.programs.state import State
from grammask.programs.tool_loop import ToolOutcome, ToolRun, run_tools
from grammask.programs.trace import Step, Trace, TraceCapture, TraceToken
from grammask.programs.writers import ReplayDiverged

__all__ = [
    "Gen",
    "ReplayDiverged",
    "State",
    "Step",
    "Together",
    "ToolOutcome",
    "ToolRun",
    "Trace",
    "TraceCapture",
    "TraceToken",
    "gen",
    "run_tools",
    "select",
    "together",
    "where",
]
