"""Where a request says what the output must be: OpenAI's fields, and those of vLLM and llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from grammask.server.protocol.base import Neutral, Request, Strict

SchemaObject = dict[str, Any] | bool
FormatName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_\-]{1,64}$")]
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-/]{1,128}$")]


class TextFormat(Strict):
    """Free text."""

    type: Literal["text"]


class JsonObjectFormat(Strict):
    """A JSON object; with ``schema``, as llama.cpp and others take it, one that satisfies the schema."""

    type: Literal["json_object"]
    schema_: SchemaObject | None = Field(None, alias="schema")


class NamedSchema(Strict):
    """A schema with its name."""

    name: FormatName
    description: str | None = None
    schema_: SchemaObject | None = Field(None, alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Strict):
    """Values of a JSON Schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


class RegexFormat(Strict):
    """Texts that a pattern matches as a whole."""

    type: Literal["regex"]
    pattern: str = Field(min_length=1)


class GrammarFormat(Strict):
    """Texts of a grammar in GBNF or Lark notation."""

    type: Literal["grammar"]
    grammar: str = Field(min_length=1)


class StructuralTag(Strict):
    """One tag of a structural tag in vLLM's first form."""

    begin: str = Field(min_length=1)
    schema_: SchemaObject | None = Field(None, alias="schema")
    structure: SchemaObject | None = None
    end: str


class StructuralTagFormat(Strict):
    """Free text with constrained tags: ``structures`` and ``triggers``, or ``format`` in xgrammar's form."""

    type: Literal["structural_tag"]
    structures: list[StructuralTag] | None = Field(None, min_length=1, max_length=256)
    triggers: list[str] | None = Field(None, min_length=1, max_length=256)
    format: dict[str, Any] | None = None


ResponseFormat = Annotated[
    TextFormat | JsonObjectFormat | JsonSchemaFormat | RegexFormat | GrammarFormat | StructuralTagFormat,
    Field(discriminator="type"),
]


class StructuredOutputs(Request):
    """vLLM's ``structured_outputs``: exactly one of json, regex, choice, grammar, json_object and structural_tag."""

    neutral: ClassVar[Mapping[str, Neutral]] = {
        "whitespace_pattern": Neutral("the server's setting whitespace decides about blanks in JSON"),
        "disable_fallback": Neutral("there is one backend", False, True),
        "disable_additional_properties": Neutral('write "additionalProperties": false into the schema', False),
    }

    json_: SchemaObject | str | None = Field(None, alias="json")
    regex: str | None = Field(None, min_length=1)
    choice: list[str] | None = Field(None, min_length=1)
    grammar: str | None = Field(None, min_length=1)
    json_object: bool | None = None
    structural_tag: str | None = None
    disable_any_whitespace: bool | None = None


class ExtraConstraints(Request):
    """The fields beside ``response_format``."""

    structured_outputs: StructuredOutputs | None = None
    guided_json: SchemaObject | str | None = None
    guided_regex: str | None = Field(None, min_length=1)
    guided_choice: list[str] | None = Field(None, min_length=1)
    guided_grammar: str | None = Field(None, min_length=1)
    grammar: str | None = Field(None, min_length=1, description="As llama.cpp takes it: GBNF; Lark is understood, too")
    json_schema: SchemaObject | None = Field(None, description="As llama.cpp takes it")


class Function(Strict):
    """A function that the model may call."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Strict):
    """A tool."""

    type: Literal["function"]
    function: Function


class FunctionName(Strict):
    """The name of a function."""

    name: ToolName


class NamedChoice(Strict):
    """This tool is to be called."""

    type: Literal["function"]
    function: FunctionName


class AllowedTools(Strict):
    """Only these tools may be called; mode is as in ``tool_choice``."""

    mode: Literal["auto", "required"]
    tools: list[NamedChoice] = Field(min_length=1)


class AllowedChoice(Strict):
    """Some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ToolChoice = Literal["none", "auto", "required"] | NamedChoice | AllowedChoice
