"""Structural tags: free text in which tags are constrained, as vLLM and xgrammar describe them, as ``Triggered``.

Two forms are understood: ``structures`` with ``triggers``; and ``format``, of which the kinds in ``FORMATS`` are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grammask.constraints.algebra import Text, sequence, union
from grammask.constraints.base import Constraint
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.regex import Regex
from grammask.constraints.triggered import Tag, Triggered
from grammask.server.errors import invalid
from grammask.server.grammars import grammar_from_text

Options = Mapping[str, Any]


def from_structures(
    structures: list[tuple[str, Any, str]], triggers: list[str], options: Options, param: str
) -> Constraint:
    """The first form.

    Args:
        structures: begin, schema and end of each tag.
        triggers: texts that commit to a tag.
        options: for JsonSchema.
        param: the place in the request.
    """
    tags = []
    for begin, schema, end in structures:
        trigger = next((text for text in triggers if text and begin.startswith(text)), None)
        if trigger is None:
            raise invalid(f"no trigger is the first part of the tag {begin!r}", f"{param}.triggers")
        tags.append(Tag(begin, JsonSchema(schema, **options), end, trigger))
    return Triggered(tags)


def from_format(format: Any, options: Options, param: str) -> Constraint:
    """The second form."""
    kind = format.get("type") if isinstance(format, Mapping) else None
    build = FORMATS.get(kind) if isinstance(kind, str) else None
    if build is None:
        raise invalid(f"a format has a type, one of {', '.join(FORMATS)}; not {kind!r}", f"{param}.type")
    try:
        return build(format, options, param)
    except (KeyError, TypeError) as error:
        raise invalid(f"a format of type {kind} is malformed: {error}", param) from None


def _const(format: Any, options: Options, param: str) -> Constraint:
    return sequence(_text(format["value"]))


def _json(format: Any, options: Options, param: str) -> Constraint:
    return JsonSchema(format["json_schema"], **options)


def _any_text(format: Any, options: Options, param: str) -> Constraint:
    return Text()


def _grammar(format: Any, options: Options, param: str) -> Constraint:
    return grammar_from_text(_text(format["grammar"]))


def _regex(format: Any, options: Options, param: str) -> Constraint:
    return Regex(_text(format["pattern"]))


def _sequence(format: Any, options: Options, param: str) -> Constraint:
    return sequence(*_elements(format, options, param))


def _or(format: Any, options: Options, param: str) -> Constraint:
    return union(*_elements(format, options, param))


def _tag(format: Any, options: Options, param: str) -> Constraint:
    tag = _as_tag(format, options, param)
    # A single tag is a text that begins with it: free text in front of it would be another format.
    return sequence(str(tag.begin), tag.body, str(tag.end)) if tag.end else sequence(str(tag.begin), tag.body)


def _triggered_tags(format: Any, options: Options, param: str) -> Constraint:
    triggers = [_text(text) for text in format["triggers"]]
    tags = []
    for i, entry in enumerate(format["tags"]):
        tag = _as_tag(entry, options, f"{param}.tags[{i}]")
        trigger = next((text for text in triggers if text and str(tag.begin).startswith(text)), None)
        if trigger is None:
            raise invalid(f"no trigger is the first part of the tag {tag.begin!r}", f"{param}.triggers")
        tags.append(Tag(tag.begin, tag.body, tag.end, trigger))
    return Triggered(
        tags,
        at_least=int(bool(format.get("at_least_one", False))),
        at_most=1 if format.get("stop_after_first", False) else None,
        stop_after_last=bool(format.get("stop_after_first", False)),
    )


def _as_tag(format: Any, options: Options, param: str) -> Tag:
    end = format["end"]
    if isinstance(end, list):
        if len(end) != 1:
            raise invalid("a tag has one end here: use an or of several tags", f"{param}.end")
        end = end[0]
    return Tag(_text(format["begin"]), from_format(format["content"], options, f"{param}.content"), _text(end))


def _elements(format: Any, options: Options, param: str) -> list[Constraint]:
    return [from_format(part, options, f"{param}.elements[{i}]") for i, part in enumerate(format["elements"])]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value


FORMATS: dict[str, Callable[[Any, Options, str], Constraint]] = {
    "const_string": _const,
    "json_schema": _json,
    "any_text": _any_text,
    "grammar": _grammar,
    "regex": _regex,
    "sequence": _sequence,
    "or": _or,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
}
