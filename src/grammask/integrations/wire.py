"""Constraints as JSON, for engines that pass requests between processes.

A description is an object with exactly one of these members:

=================  ===============================================================================================
``json_schema``    a JSON Schema; beside it ``property_order`` and ``whitespace`` as for ``JsonSchema``
``json``           true: any JSON value
``regex``          a pattern that the whole output matches
``choice``         a list of texts
``gbnf``           a grammar in llama.cpp's notation
``lark``           a grammar in Lark's notation
``tool_calls``     an object with ``tools`` and ``format``, and optionally ``choice``, ``parallel``, ``preamble``,
                   ``special_tokens``, ``whitespace`` and ``property_order``, as for ``ToolCalls``
=================  ===============================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from grammask.engine.errors import ConstraintError, ConstraintSyntaxError

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint

_OPTIONS = {"json_schema": {"property_order", "whitespace"}}
_TOOL_MEMBERS = {"tools", "format", "choice", "parallel", "preamble", "special_tokens", "whitespace", "property_order"}


def constraint_from_wire(description: Mapping[str, Any] | str) -> Constraint:
    """The constraint of a description.

    Args:
        description: an object as above, or its JSON text.

    Raises:
        ConstraintError: not a description, or one of a malformed constraint.
    """
    if isinstance(description, str):
        try:
            description = json.loads(description)
        except ValueError as error:
            raise ConstraintSyntaxError(f"the description of the constraint is no JSON: {error}") from error
    if not isinstance(description, Mapping):
        raise ConstraintSyntaxError(
            f"the description of a constraint is an object, not {type(description).__name__}",
            hint='for example {"json_schema": {"type": "object"}}',
        )
    kinds = [name for name in _READERS if name in description]
    if len(kinds) != 1:
        raise ConstraintSyntaxError(
            f"a constraint has exactly one kind, not {', '.join(kinds) or 'none'}",
            hint=f"one of {', '.join(_READERS)}",
        )
    kind = kinds[0]
    unknown = sorted(set(description) - {kind} - _OPTIONS.get(kind, set()))
    if unknown:
        raise ConstraintSyntaxError(
            f"{kind} takes no {', '.join(map(repr, unknown))}",
            hint=f"beside {kind}: {', '.join(sorted(_OPTIONS.get(kind, set()))) or 'nothing'}",
        )
    options = {name: value for name, value in description.items() if name != kind}
    try:
        return _READERS[kind](description[kind], options)
    except ConstraintError:
        raise
    except (TypeError, ValueError) as error:
        raise ConstraintSyntaxError(f"{kind}: {error}") from error


def canonical(description: Mapping[str, Any] | str) -> str:
    """One text for equal descriptions, to look compiled constraints up by. The order of members counts: in schemas, it
    says in which order to write them."""
    return description if isinstance(description, str) else json.dumps(description, ensure_ascii=False)


def _text(kind: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConstraintSyntaxError(f"{kind} is a text, not {type(value).__name__}")
    return value


def _json_schema(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.json_schema import JsonSchema

    if not isinstance(value, (Mapping, bool, str)):
        raise ConstraintSyntaxError(f"json_schema is an object, a boolean or JSON text, not {type(value).__name__}")
    return JsonSchema(value, **options)


def _json(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.json_value import JsonValue

    if value is not True:
        raise ConstraintSyntaxError(f"json is true or absent, not {value!r}")
    return JsonValue()


def _regex(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.regex import Regex

    return Regex(_text("regex", value))


def _choice(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.choice import Choice

    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise ConstraintSyntaxError("choice is a list of texts, at least one")
    return Choice(value)


def _gbnf(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.grammar import Grammar

    return Grammar.gbnf(_text("gbnf", value))


def _lark(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.grammar import Grammar

    return Grammar.lark(_text("lark", value))


def _tool_calls(value: Any, options: dict[str, Any]) -> Constraint:
    from grammask.constraints.tools import ToolCalls

    if not isinstance(value, Mapping) or not {"tools", "format"} <= set(value) or set(value) - _TOOL_MEMBERS:
        raise ConstraintSyntaxError(f"tool_calls is an object with tools and format; others are {_TOOL_MEMBERS}")
    if not isinstance(value["tools"], list):
        raise ConstraintSyntaxError("tools is a list")
    rest = {name: item for name, item in value.items() if name not in ("tools", "format")}
    return ToolCalls(value["tools"], _text("format", value["format"]), **rest)


_READERS: dict[str, Callable[[Any, dict[str, Any]], Constraint]] = {
    "json_schema": _json_schema,
    "json": _json,
    "regex": _regex,
    "choice": _choice,
    "gbnf": _gbnf,
    "lark": _lark,
    "tool_calls": _tool_calls,
}
