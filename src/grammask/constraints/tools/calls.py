"""``ToolCalls``: outputs that call tools, for one format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from grammask.constraints.base import Constraint
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.json_schema.whitespace import POLICIES
from grammask.constraints.special_token import vocabulary_of
from grammask.constraints.tools.arguments import ArgumentsSchema
from grammask.constraints.tools.format import KeywordArguments, Parameters, ToolFormat, walk
from grammask.constraints.tools.formats import ALIASES, FORMATS
from grammask.constraints.tools.lowering import FormatLowering
from grammask.constraints.tools.parsing import FormatReader, ToolCall, ToolOutput, Validator
from grammask.constraints.tools.source import source_of_text, source_of_tokens
from grammask.constraints.tools.tool import Tool, as_tool
from grammask.engine.errors import ConstraintError, ConstraintSyntaxError

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.json_schema.whitespace import Whitespace
    from grammask.engine.vocabulary import Vocabulary


class ToolCalls(Constraint):
    """Outputs in which a model calls tools, or answers, in the format that it was trained on.

    Args:
        tools: descriptions as HTTP interfaces take them, Python functions, or ``Tool``.
        format: a name of ``FORMATS`` or a description of your own (``ToolFormat``).
        choice: "auto" (calls or an answer), "required" (calls), "none" (an answer), or the name of the tool to call.
        parallel: whether one output may hold several calls; a number is the most. Formats may allow fewer.
        preamble: whether free text may stand before the calls. None: where an answer is allowed as well.
        special_tokens: markers that the vocabulary has as special tokens match by their id alone. False: all markers
            are text, for tokenizers without them.
        whitespace, options: as for ``JsonSchema`` (property_order, format_assertion, ...).

    Raises:
        ConstraintSyntaxError: a malformed tool, an unknown format, choice or policy for blanks.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Mapping[str, Any] | Callable[..., Any]],
        format: str | ToolFormat,
        *,
        choice: str = "auto",
        parallel: bool | int = True,
        preamble: bool | None = None,
        special_tokens: bool = True,
        whitespace: Whitespace = "flexible",
        **options: Any,
    ) -> None:
        self.tools = tuple([as_tool(tool) for tool in tools])
        self.format = _format(format)
        names = [tool.name for tool in self.tools]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ConstraintSyntaxError(f"two tools are named {repeated[0]!r}")
        if not names and choice != "none":
            raise ConstraintSyntaxError("there are no tools", hint='without tools use choice="none"')
        if choice not in ("auto", "required", "none", *names):
            raise ConstraintSyntaxError(
                f'choice is "auto", "required", "none" or the name of a tool, not {choice!r}',
                hint=f"the tools are {', '.join(names)}",
            )
        if whitespace not in POLICIES:
            raise ConstraintSyntaxError(
                f"the whitespace of tool calls is one of {', '.join(POLICIES)}, not {whitespace!r}"
            )
        self.choice = choice
        most = None if parallel is True else int(parallel) or 1
        if most is not None and most < 1:
            raise ConstraintSyntaxError(f"parallel is True, False or a number of calls, not {parallel!r}")
        limits = [limit for limit in (most, self.format.max_calls) if limit is not None]
        self._high = 0 if choice == "none" else min(limits, default=None)
        self._answers = choice in ("auto", "none")
        self._preamble = self._answers if preamble is None else preamble
        self._special_tokens = special_tokens
        self._whitespace: Whitespace = whitespace
        callable_ = [tool for tool in self.tools if choice in ("auto", "required", tool.name)]
        notation = next((p for p in walk(self.format.call) if isinstance(p, (Parameters, KeywordArguments))), None)
        self._arguments: dict[str, JsonSchema] = {
            tool.name: JsonSchema(tool.parameters, whitespace=whitespace, **options)
            if notation is None
            else ArgumentsSchema(tool.parameters, notation, whitespace=whitespace, **options)
            for tool in callable_
        }
        self._validators = {tool.name: Validator(tool.parameters, options) for tool in callable_}

    def lower(self, builder: Builder) -> Expr:
        """The expression of the outputs.

        Raises:
            ConstraintError: a tool's schema cannot be enforced or satisfied; the message names the tool.
        """
        vocabulary = vocabulary_of(builder)
        tokens = vocabulary.special_tokens if vocabulary is not None and self._special_tokens else {}
        lowering = FormatLowering(
            builder, self.format, tokens, () if vocabulary is None else vocabulary.eos_token_ids, self._whitespace
        )
        for name, schema in self._arguments.items():
            try:
                lowering.add_tool(name, schema)
            except ConstraintError as error:
                message = f"parameters of {name}: {error.message}"
                raise type(error)(
                    message, pointer=error.pointer, line=error.line, column=error.column, hint=error.hint
                ) from error
        return lowering.output(answers=self._answers, high=self._high, preamble=self._preamble)

    def parse(self, output: str | Iterable[int], vocabulary: Vocabulary | None = None) -> list[ToolCall]:
        """The calls of an output, in the order written; an answer has none.

        Every output that the constraint allows can be parsed. Texts that a model wrote without the constraint are held
        to the same rules, except that members may stand in any order and blanks anywhere JSON allows them.

        Args:
            output: token ids, or text with special tokens spelled by name. Tokens are exact: in text, a name typed by
                the model cannot be told from the token.
            vocabulary: what token ids mean.

        Raises:
            ToolCallError: the output is malformed; the error says where and what was expected.
        """
        return list(self.read(output, vocabulary).calls)

    def read(self, output: str | Iterable[int], vocabulary: Vocabulary | None = None) -> ToolOutput:
        """Like ``parse``, with the free text of the output."""
        if isinstance(output, str):
            source = source_of_text(output)
        elif vocabulary is None:
            raise TypeError("token ids need the vocabulary that they belong to")
        else:
            source = source_of_tokens(output, vocabulary, self.format.markers if self._special_tokens else ())
        reader = FormatReader(source, self.format, self._arguments, self._validators)
        return reader.output(answers=self._answers, high=self._high, preamble=self._preamble)

    def __repr__(self) -> str:
        return f"ToolCalls({[tool.name for tool in self.tools]!r}, {self.format.name!r}, choice={self.choice!r})"


def _format(format: str | ToolFormat) -> ToolFormat:
    if isinstance(format, ToolFormat):
        return format
    found = FORMATS.get(ALIASES.get(format, format))
    if found is None:
        raise ConstraintSyntaxError(
            f"there is no format of tool calls named {format!r}",
            hint=f"one of {', '.join(FORMATS)}, or a ToolFormat of your own",
        )
    return found
