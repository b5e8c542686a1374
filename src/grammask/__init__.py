"""Language-model output that is well-formed by construction.

Names are imported on first use, so that ``import grammask`` stays quick and needs numpy alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammask import _compiled as _compiled  # from here on, imports find the modules that the build compiled
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
    from grammask.constraints.where import where
    from grammask.decoding import (
        BeamSearch,
        BudgetTooSmall,
        Classification,
        Draft,
        InvalidValue,
        PartialText,
        ReasoningField,
        Result,
        SequentialMonteCarlo,
        StreamEvent,
        TextStream,
        Thinking,
        Vote,
    )
    from grammask.engine.compile import CompiledConstraint, Limits, compile
    from grammask.engine.errors import (
        ConstraintError,
        ConstraintSyntaxError,
        ConstraintTooLarge,
        UnsatisfiableConstraint,
        UnsupportedConstraint,
    )
    from grammask.engine.vocabulary import Vocabulary, VocabularyError
    from grammask.hosted import HostedModel, load_hosted, openai_compatible
    from grammask.models import (
        ConcurrentModel,
        FunctionModel,
        LanguageModel,
        Model,
        ModelError,
        load_model,
        load_vocabulary,
        system_fingerprint,
    )
    from grammask.programs import State, Trace, gen, run_tools, select, together
    from grammask.sampling import Sampler, Sampling, SamplingError, SamplingWarning
    from grammask.validation import generate_checked, generate_valid

_HOME = {
    "BeamSearch": "decoding",
    "BudgetTooSmall": "decoding",
    "Choice": "constraints.choice",
    "Classification": "decoding",
    "CompiledConstraint": "engine.compile",
    "ConcurrentModel": "models",
    "Constraint": "constraints.base",
    "ConstraintError": "engine.errors",
    "ConstraintSyntaxError": "engine.errors",
    "ConstraintTooLarge": "engine.errors",
    "Draft": "decoding",
    "FunctionModel": "models",
    "Grammar": "constraints.grammar",
    "HostedModel": "hosted",
    "InvalidValue": "decoding",
    "JsonSchema": "constraints.json_schema",
    "JsonValue": "constraints.json_value",
    "LanguageModel": "models",
    "Limits": "engine.compile",
    "Matcher": "_core",
    "Model": "models",
    "ModelError": "models",
    "PartialText": "decoding",
    "ReasoningField": "decoding",
    "Regex": "constraints.regex",
    "Result": "decoding",
    "Sampler": "sampling",
    "Sampling": "sampling",
    "SamplingError": "sampling",
    "SamplingWarning": "sampling",
    "SequentialMonteCarlo": "decoding",
    "SpecialToken": "constraints.special_token",
    "State": "programs",
    "StreamEvent": "decoding",
    "Tag": "constraints.triggered",
    "Text": "constraints.algebra",
    "TextStream": "decoding",
    "Thinking": "decoding",
    "Tool": "constraints.tools",
    "ToolCall": "constraints.tools",
    "ToolCallError": "constraints.tools",
    "ToolCalls": "constraints.tools",
    "ToolFormat": "constraints.tools",
    "Trace": "programs",
    "Triggered": "constraints.triggered",
    "UnsatisfiableConstraint": "engine.errors",
    "UnsupportedConstraint": "engine.errors",
    "Vocabulary": "engine.vocabulary",
    "VocabularyError": "engine.vocabulary",
    "Vote": "decoding",
    "compile": "engine.compile",
    "constraint_for": "constraints.types",
    "fill_masks": "_core",
    "gen": "programs",
    "generate_checked": "validation",
    "generate_valid": "validation",
    "load_hosted": "hosted",
    "load_model": "models",
    "load_vocabulary": "models",
    "openai_compatible": "hosted",
    "run_tools": "programs",
    "select": "programs",
    "sql_constraint": "constraints.grammar.sql",
    "system_fingerprint": "models",
    "together": "programs",
    "tool_from_function": "constraints.tools",
    "typed_output": "constraints.types",
    "where": "constraints.where",
}

__all__ = [
    "BeamSearch",
    "BudgetTooSmall",
    "Choice",
    "Classification",
    "CompiledConstraint",
    "ConcurrentModel",
    "Constraint",
    "ConstraintError",
    "ConstraintSyntaxError",
    "ConstraintTooLarge",
    "Draft",
    "FunctionModel",
    "Grammar",
    "HostedModel",
    "InvalidValue",
    "JsonSchema",
    "JsonValue",
    "LanguageModel",
    "Limits",
    "Matcher",
    "Model",
    "ModelError",
    "PartialText",
    "ReasoningField",
    "Regex",
    "Result",
    "Sampler",
    "Sampling",
    "SamplingError",
    "SamplingWarning",
    "SequentialMonteCarlo",
    "SpecialToken",
    "State",
    "StreamEvent",
    "Tag",
    "Text",
    "TextStream",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolCallError",
    "ToolCalls",
    "ToolFormat",
    "Trace",
    "Triggered",
    "UnsatisfiableConstraint",
    "UnsupportedConstraint",
    "Vocabulary",
    "VocabularyError",
    "Vote",
    "__version__",
    "compile",
    "constraint_for",
    "fill_masks",
    "gen",
    "generate_checked",
    "generate_valid",
    "load_hosted",
    "load_model",
    "load_vocabulary",
    "openai_compatible",
    "run_tools",
    "select",
    "sql_constraint",
    "system_fingerprint",
    "together",
    "tool_from_function",
    "typed_output",
    "where",
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
