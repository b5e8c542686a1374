"""The constraint that a page describes, and the errors of its text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grammask.explorer.json_place import offset_of
from grammask.explorer.problems import Problem

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.engine.compile import CompiledConstraint
    from grammask.engine.vocabulary import Vocabulary

Kind = Literal["none", "json_schema", "regex", "choice", "gbnf", "lark", "json", "tools"]

KINDS: dict[Kind, str] = {
    "none": "Free text",
    "json_schema": "JSON Schema",
    "regex": "Regular expression",
    "choice": "Choice (one text a line)",
    "gbnf": "Grammar (GBNF)",
    "lark": "Grammar (Lark)",
    "json": "Any JSON",
    "tools": "Tool calls",
}
"""The kinds of constraint, with the words for them."""

MAX_TEXT = 1_000_000
"""Characters of a constraint's text; more is refused, since the page is no place for it."""

SECONDS = 15.0
"""Wall time that compiling may take while a person waits."""


@dataclass(frozen=True)
class ConstraintSpec:
    """A constraint as the page sends it.

    Attributes:
        kind: how ``text`` is to be read.
        text: schema, pattern, choices (one a line), grammar, or a JSON list of tools; unused by the other kinds.
        property_order, whitespace: as for ``JsonSchema``.
        tool_format: a name of ``grammask.constraints.tools.FORMATS``.
    """

    kind: Kind = "none"
    text: str = ""
    property_order: str = "schema"
    whitespace: str = "flexible"
    tool_format: str = "hermes"

    @classmethod
    def of(cls, value: Any) -> ConstraintSpec:
        """From a JSON object; None is free text.

        Raises:
            Problem: it is not such an object.
        """
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise Problem("request", "malformed request", "the constraint is not an object")
        names = ("kind", "text", "property_order", "whitespace", "tool_format")
        given = {name: value[name] for name in names if value.get(name) is not None}
        if any(not isinstance(part, str) for part in given.values()):
            raise Problem("request", "malformed request", "the parts of a constraint are texts")
        spec = cls(**given)
        if spec.kind not in KINDS:
            raise Problem("request", "malformed request", f"there is no kind of constraint {spec.kind!r}")
        if len(spec.text) > MAX_TEXT:
            raise Problem("constraint", "too large", f"the text has more than {MAX_TEXT:,} characters")
        return spec

    @property
    def is_json(self) -> bool:
        """Whether the outputs are JSON texts."""
        return self.kind in ("json_schema", "json")

    def schema(self) -> Any:
        """The parsed schema of a JSON Schema constraint; True (anything) for other kinds.

        Raises:
            Problem: it is not JSON.
        """
        return parse_json(self.text, "constraint") if self.kind == "json_schema" else True

    def build(self) -> Constraint:
        """The constraint.

        Raises:
            Problem: the text is malformed.
        """
        import grammask
        from grammask.decoding.output import FREE_TEXT

        options: Any = {"property_order": self.property_order, "whitespace": self.whitespace}
        try:
            if self.kind == "none":
                return grammask.Regex(FREE_TEXT)
            if self.kind == "json_schema":
                self.schema()
                return grammask.JsonSchema(self.text, **options)
            if self.kind == "regex":
                return grammask.Regex(self.text)
            if self.kind == "choice":
                return grammask.Choice([line for line in self.text.splitlines() if line])
            if self.kind == "gbnf":
                return grammask.Grammar.gbnf(self.text)
            if self.kind == "lark":
                return grammask.Grammar.lark(self.text)
            if self.kind == "tools":
                return grammask.ToolCalls(_tools(self.text), format=self.tool_format, **options)
            return grammask.JsonValue(whitespace=options["whitespace"])
        except Problem:
            raise
        except (ValueError, TypeError) as error:
            raise Problem.of_error(error, "constraint") from error

    def compile(self, vocabulary: Vocabulary) -> CompiledConstraint:
        """The constraint over a vocabulary.

        Raises:
            Problem: the constraint is malformed, cannot be enforced exactly, or has no output.
        """
        import grammask

        constraint = self.build()
        try:
            return grammask.compile(constraint, vocabulary, grammask.Limits(seconds=SECONDS))
        except (ValueError, TypeError) as error:
            problem = Problem.of_error(error, "constraint")
            if self.kind == "json_schema" and problem.pointer is not None:
                problem.line, problem.column = _place_of(self.text, problem.pointer)
            raise problem from error


def byte_vocabulary() -> Vocabulary:
    """The 256 single bytes and an end of text (256): for questions in which no tokenizer plays a part."""
    import grammask

    single: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    return grammask.Vocabulary.from_tokens([*single, None], eos_token_ids=[256])


def parse_json(text: str, field: str) -> Any:
    """A JSON value.

    Raises:
        Problem: the text is not JSON; line and column say where.
    """
    if not text.strip():
        raise Problem(field, "not JSON", "there is no text yet", line=1, column=1)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Problem(field, "not JSON", error.msg, line=error.lineno, column=error.colno) from error
    except (RecursionError, ValueError) as error:
        raise Problem(field, "not JSON", "it is nested too deeply, or holds a number that is too long") from error


def _place_of(text: str, pointer: str) -> tuple[int | None, int | None]:
    """Line and column, from 1, of what a JSON pointer names; None where it is not in the text."""
    offset = offset_of(text, pointer)
    if offset is None:
        return None, None
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _tools(text: str) -> list[Any]:
    tools = parse_json(text, "constraint")
    return tools if isinstance(tools, list) else [tools]
