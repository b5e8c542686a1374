"""From a request to what its outputs must be.

A request may say it in OpenAI's way (``response_format``, ``tools``), in vLLM's (``structured_outputs``, ``guided_*``)
or in llama.cpp's (``grammar``, ``json_schema``), but only once: two constraints at a time are refused, so that none is
dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grammask.constraints.base import Constraint
from grammask.constraints.choice import Choice
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.regex import Regex
from grammask.constraints.tools import ToolCalls
from grammask.constraints.tools.arguments import byte_builder
from grammask.constraints.tools.format import ToolFormat
from grammask.constraints.tools.formats import HERMES
from grammask.decoding.output import FREE_TEXT
from grammask.engine.errors import ConstraintError
from grammask.server.errors import ApiError, invalid
from grammask.server.grammars import grammar_from_text
from grammask.server.protocol.constraints import (
    AllowedChoice,
    ExtraConstraints,
    FunctionTool,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    NamedChoice,
    RegexFormat,
    ResponseFormat,
    StructuralTagFormat,
    StructuredOutputs,
    TextFormat,
    ToolChoice,
)
from grammask.server.strict import check_strict
from grammask.server.structural_tags import from_format, from_structures

JsonOptions = dict[str, Any]
"""Keyword arguments of JsonSchema."""


@dataclass(frozen=True)
class Wanted:
    """What an output must be.

    Attributes:
        kind: a word for logs and metrics.
        build: makes the constraint; may raise ConstraintError.
        key: equal for equal constraints.
        size: bytes of what the client sent for it.
        param: the place in the request that a ConstraintError is about.
        content: the schema, pattern, choices or grammar, for people and models to read.
        structured: not free text.
    """

    kind: str
    build: Callable[[], Constraint]
    key: str
    size: int
    param: str | None
    content: str = ""
    structured: bool = True


@dataclass(frozen=True)
class WantedTools:
    """Which tools an output may call.

    Attributes:
        tools: those that may be called, as requests describe them.
        choice: as for ToolCalls.
        parallel: whether there may be several calls.
        named: the request named the one tool to call.
    """

    tools: tuple[dict[str, Any], ...]
    choice: str
    parallel: bool
    named: bool

    def calls(self, format: ToolFormat, **options: Any) -> ToolCalls:
        """The constraint, which also reads outputs.

        Raises:
            ConstraintError: a malformed tool.
        """
        return ToolCalls(self.tools, format, choice=self.choice, parallel=self.parallel, **options)

    def calls_are_sound(self) -> None:
        """Compiles the tools over bytes alone.

        Raises:
            ConstraintError: a tool's schema cannot be enforced.
        """
        self.calls(HERMES).lower(byte_builder())


def free_text() -> Wanted:
    """Any text, special tokens left out."""
    return Wanted("text", lambda: Regex(FREE_TEXT), "text", 0, None, structured=False)


def wanted_format(
    response_format: ResponseFormat | None,
    extra: ExtraConstraints,
    *,
    options: JsonOptions,
    place: str = "response_format",
) -> Wanted:
    """The one constraint of a request; free text if it has none.

    Args:
        options: for JsonSchema, such as its whitespace.
        place: of ``response_format`` in the request.

    Raises:
        ApiError: several constraints, a malformed one, or a strict schema outside of the subset.
    """
    found = [item for item in (_of_format(response_format, options, place), *_of_extra(extra, options)) if item]
    if len(found) > 1:
        raise invalid(
            f"{found[0].param} and {found[1].param} both say what the output must be: send one of them", found[1].param
        )
    return found[0] if found else free_text()


def wanted_tools(
    tools: Sequence[FunctionTool] | None, choice: ToolChoice | None, parallel: bool | None
) -> WantedTools | None:
    """Which tools may be called; None without tools, or when none may be.

    Raises:
        ApiError: a choice without tools, an unknown or repeated name, or a strict tool outside of the subset.
    """
    if not tools:
        if choice not in (None, "none", "auto"):
            raise invalid("tool_choice is set but there are no tools: send tools, or leave it out", "tool_choice")
        return None
    names = [tool.function.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise invalid(f"two tools are named {name!r}", "tools")
    for i, tool in enumerate(tools):
        if tool.function.strict and tool.function.parameters is not None:
            check_strict(
                tool.function.parameters, f"tools[{i}].function.parameters", f"function {tool.function.name!r}"
            )
    described = {tool.function.name: _described(tool) for tool in tools}
    if choice == "none":
        return None
    if isinstance(choice, NamedChoice):
        name = _known(choice.function.name, described, "tool_choice.function.name")
        return WantedTools((described[name],), name, parallel=False, named=True)
    allowed, mode = names, choice
    if isinstance(choice, AllowedChoice):
        mode = choice.allowed_tools.mode
        allowed = [
            _known(tool.function.name, described, f"tool_choice.allowed_tools.tools[{i}]")
            for i, tool in enumerate(choice.allowed_tools.tools)
        ]
    kept = tuple(described[name] for name in names if name in allowed)
    return WantedTools(kept, str(mode or "auto"), parallel=parallel is not False, named=False)


def wanted_with_tools(
    answer: Wanted, tools: WantedTools, format: ToolFormat, *, options: JsonOptions
) -> tuple[Wanted, ToolCalls]:
    """Calls of tools or, where the choice leaves it open, the answer that the request asks for.

    Raises:
        ApiError: a malformed tool.
    """
    own_answer = tools.choice == "auto" and answer.structured
    try:
        calls = tools.calls(format, **options)
        only_calls = (
            ToolCalls(tools.tools, format, choice="required", parallel=tools.parallel, **options)
            if own_answer
            else calls
        )
    except ConstraintError as error:
        raise constraint_error(error, "tools") from error
    key = _key("tools", [format.name, options, tools.choice, tools.parallel, tools.tools, own_answer and answer.key])
    size = answer.size + len(json.dumps(tools.tools))
    build = (lambda: only_calls | answer.build()) if own_answer else (lambda: calls)
    return Wanted("tools", build, key, size, "tools"), only_calls


def constraint_error(error: ConstraintError, param: str | None) -> ApiError:
    """400 that says where the constraint cannot be enforced, and what to do."""
    name = type(error).__name__
    code = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")
    return ApiError(400, str(error).replace("\n  hint: ", "\nHint: "), param=param, code=code)


def _described(tool: FunctionTool) -> dict[str, Any]:
    return tool.model_dump(exclude_none=True)


def _known(name: str, described: dict[str, Any], param: str) -> str:
    if name not in described:
        raise invalid(f"there is no tool named {name!r} among the tools: {', '.join(described)}", param)
    return name


def _of_format(format: ResponseFormat | None, options: JsonOptions, place: str) -> Wanted | None:
    if format is None or isinstance(format, TextFormat):
        return None
    if isinstance(format, JsonObjectFormat):
        return _schema(_object_schema(format.schema_), options, "json_object", f"{place}.schema")
    if isinstance(format, JsonSchemaFormat):
        named = format.json_schema
        param = f"{place}.json_schema.schema"
        schema = {"type": "object"} if named.schema_ is None else named.schema_
        if named.strict:
            check_strict(schema, param, f"response_format {named.name!r}")
        return _schema(schema, options, "json_schema", param)
    if isinstance(format, RegexFormat):
        return _pattern(format.pattern, f"{place}.pattern")
    if isinstance(format, GrammarFormat):
        return _grammar(format.grammar, f"{place}.grammar")
    return _structural_tag(format, options, place)


def _of_extra(extra: ExtraConstraints, options: JsonOptions) -> list[Wanted]:
    found = _of_structured_outputs(extra.structured_outputs, options)
    if extra.guided_json is not None:
        schema = _parsed(extra.guided_json, "guided_json")
        found.append(_schema(schema, options, "json_schema", "guided_json"))
    if extra.guided_regex is not None:
        found.append(_pattern(extra.guided_regex, "guided_regex"))
    if extra.guided_choice is not None:
        found.append(_choice(extra.guided_choice, "guided_choice"))
    if extra.guided_grammar is not None:
        found.append(_grammar(extra.guided_grammar, "guided_grammar"))
    if extra.grammar is not None:
        found.append(_grammar(extra.grammar, "grammar"))
    if extra.json_schema is not None:
        found.append(_schema(extra.json_schema, options, "json_schema", "json_schema"))
    return found


def _of_structured_outputs(wanted: StructuredOutputs | None, options: JsonOptions) -> list[Wanted]:
    place = "structured_outputs"
    if wanted is None:
        return []
    if wanted.disable_any_whitespace:
        options = {**options, "whitespace": "python"}
    found: list[Wanted] = []
    if wanted.json_ is not None:
        found.append(_schema(_parsed(wanted.json_, f"{place}.json"), options, "json_schema", f"{place}.json"))
    if wanted.regex is not None:
        found.append(_pattern(wanted.regex, f"{place}.regex"))
    if wanted.choice is not None:
        found.append(_choice(wanted.choice, f"{place}.choice"))
    if wanted.grammar is not None:
        found.append(_grammar(wanted.grammar, f"{place}.grammar"))
    if wanted.json_object:
        found.append(_schema({"type": "object"}, options, "json_object", f"{place}.json_object"))
    if wanted.structural_tag is not None:
        found.append(_structural_tag(_tag_text(wanted.structural_tag, place), options, f"{place}.structural_tag"))
    if not found:
        raise invalid(
            "structured_outputs says nothing: give one of json, regex, choice, grammar, json_object, structural_tag",
            place,
        )
    return found


def _object_schema(schema: dict[str, Any] | bool | None) -> dict[str, Any]:
    """What ``json_object`` stands for: an object in any case."""
    if schema is None or schema is True:
        return {"type": "object"}
    return {"allOf": [schema, {"type": "object"}]} if not isinstance(schema, dict) or "type" not in schema else schema


def _schema(schema: Any, options: JsonOptions, kind: str, param: str) -> Wanted:
    return Wanted(
        kind,
        lambda: JsonSchema(schema, **options),
        _key("schema", [schema, options]),
        _size(schema),
        param,
        json.dumps(schema, ensure_ascii=False),
    )


def _pattern(pattern: str, param: str) -> Wanted:
    return Wanted("regex", lambda: Regex(pattern), _key("regex", pattern), _size(pattern), param, pattern)


def _choice(values: list[str], param: str) -> Wanted:
    return Wanted(
        "choice",
        lambda: Choice(values),
        _key("choice", values),
        _size(values),
        param,
        json.dumps(values, ensure_ascii=False),
    )


def _grammar(text: str, param: str) -> Wanted:
    return Wanted("grammar", lambda: grammar_from_text(text), _key("grammar", text), _size(text), param, text)


def _structural_tag(format: StructuralTagFormat, options: JsonOptions, param: str) -> Wanted:
    described = format.model_dump(exclude_none=True, by_alias=True)
    if (format.format is None) == (format.structures is None):
        raise invalid("a structural tag has either structures and triggers, or format", param)

    def build() -> Constraint:
        if format.format is not None:
            return from_format(format.format, options, f"{param}.format")
        structures = [
            (tag.begin, tag.schema_ if tag.schema_ is not None else tag.structure, tag.end)
            for tag in format.structures or []
        ]
        return from_structures(structures, format.triggers or [], options, param)

    return Wanted(
        "structural_tag",
        build,
        _key("structural_tag", [described, options]),
        _size(described),
        param,
        json.dumps(described),
    )


def _tag_text(text: str, place: str) -> StructuralTagFormat:
    value = _parsed(text, f"{place}.structural_tag")
    try:
        return StructuralTagFormat.model_validate({"type": "structural_tag", **value})
    except (TypeError, ValueError) as error:
        raise invalid(f"not a structural tag: {error}", f"{place}.structural_tag") from error


def _parsed(value: Any, param: str) -> Any:
    """A schema that may have come as its JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise invalid(f"{param} is not JSON: {error}", param) from None


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _key(kind: str, value: Any) -> str:
    """A digest that keeps the order of object members, which decides about the order in the output."""
    text = f"{kind}:{json.dumps(value)}"
    return hashlib.sha256(text.encode()).hexdigest()
