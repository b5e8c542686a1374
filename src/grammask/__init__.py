"""Language-model output that is well-formed by construction.

Names are imported on first use, so that ``import grammask`` stays quick and needs numpy alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammask._version import __version__

if TYPE_CHECKING:
    from grammask._core import Matcher, fill_masks
    from grammask.constraints.algebra import Text
    from grammask.constraints.base import Constraint
    from grammask.constraints.choice import Choice
    from grammask.constraints.grammar import Grammar
    from grammask.constraints.grammar.sql import sql_constraint
    from grammask.constraints.json_schema import JsonSchema
    from grammask.constraints.json_value import JsonValue
    from grammask.constraints.regex import Regex
    from grammask.constraints.special_token import SpecialToken
    from grammask.constraints.tools import Tool, ToolCall, ToolCallError, ToolCalls, ToolFormat, tool_from_function
    from grammask.constraints.triggered import Tag, Triggered
    from grammask.constraints.types import constraint_for, typed_output
    from grammask.decoding import InvalidValue, Result, TextStream
    from grammask.engine.compile import CompiledConstraint, Limits, compile
    from grammask.engine.errors import (
        ConstraintError,
        ConstraintSyntaxError,
        ConstraintTooLarge,
        UnsatisfiableConstraint,
        UnsupportedConstraint,
    )
    from grammask.engine.vocabulary import Vocabulary, VocabularyError
    from grammask.models import FunctionModel, Model, ModelError, load_model, load_vocabulary
    from grammask.sampling import Sampler, Sampling, SamplingError, SamplingWarning

_HOME = {
    "Choice": "constraints.choice",
    "CompiledConstraint": "engine.compile",
    "Constraint": "constraints.base",
    "ConstraintError": "engine.errors",
    "ConstraintSyntaxError": "engine.errors",
    "ConstraintTooLarge": "engine.errors",
    "FunctionModel": "models",
    "Grammar": "constraints.grammar",
    "InvalidValue": "decoding",
    "JsonSchema": "constraints.json_schema",
    "JsonValue": "constraints.json_value",
    "Limits": "engine.compile",
    "Matcher": "_core",
    "Model": "models",
    "ModelError": "models",
    "Regex": "constraints.regex",
    "Result": "decoding",
    "Sampler": "sampling",
    "Sampling": "sampling",
    "SamplingError": "sampling",
    "SamplingWarning": "sampling",
    "SpecialToken": "constraints.special_token",
    "Tag": "constraints.triggered",
    "Text": "constraints.algebra",
    "Tool": "constraints.tools",
    "ToolCall": "constraints.tools",
    "ToolCallError": "constraints.tools",
    "ToolCalls": "constraints.tools",
    "ToolFormat": "constraints.tools",
    "Triggered": "constraints.triggered",
    "TextStream": "decoding",
    "UnsatisfiableConstraint": "engine.errors",
    "UnsupportedConstraint": "engine.errors",
    "Vocabulary": "engine.vocabulary",
    "VocabularyError": "engine.vocabulary",
    "compile": "engine.compile",
    "constraint_for": "constraints.types",
    "fill_masks": "_core",
    "load_model": "models",
    "load_vocabulary": "models",
    "sql_constraint": "constraints.grammar.sql",
    "tool_from_function": "constraints.tools",
    "typed_output": "constraints.types",
}

__all__ = [
    "Choice",
    "CompiledConstraint",
    "Constraint",
    "ConstraintError",
    "ConstraintSyntaxError",
    "ConstraintTooLarge",
    "FunctionModel",
    "Grammar",
    "InvalidValue",
    "JsonSchema",
    "JsonValue",
    "Limits",
    "Matcher",
    "Model",
    "ModelError",
    "Regex",
    "Result",
    "Sampler",
    "Sampling",
    "SamplingError",
    "SamplingWarning",
    "SpecialToken",
    "Tag",
    "Text",
    "TextStream",
    "Tool",
    "ToolCall",
    "ToolCallError",
    "ToolCalls",
    "ToolFormat",
    "Triggered",
    "UnsatisfiableConstraint",
    "UnsupportedConstraint",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "compile",
    "constraint_for",
    "fill_masks",
    "load_model",
    "load_vocabulary",
    "sql_constraint",
    "tool_from_function",
    "typed_output",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'grammask' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"grammask.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
