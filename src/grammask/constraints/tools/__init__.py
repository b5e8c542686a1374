"""Tool calls: constraints, formats, and reading outputs back."""

from grammask.constraints.tools.calls import ToolCalls
from grammask.constraints.tools.format import ToolFormat
from grammask.constraints.tools.formats import FORMATS
from grammask.constraints.tools.functions import tool_from_function
from grammask.constraints.tools.parsing import ToolCall, ToolOutput
from grammask.constraints.tools.source import ToolCallError
from grammask.constraints.tools.tool import Tool

__all__ = [
    "FORMATS",
    "Tool",
    "ToolCall",
    "ToolCallError",
    "ToolCalls",
    "ToolFormat",
    "ToolOutput",
    "tool_from_function",
]
