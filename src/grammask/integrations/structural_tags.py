"""Structural tags: the JSON in which vLLM, SGLang and xgrammar describe outputs made of free and constrained parts.

The first form is ``{"structures": [{"begin", "schema", "end"}], "triggers": [...]}``: free text in which a tag, once
begun, holds a JSON value. The second is ``{"type": "structural_tag", "format": {...}}``, where a format is an object
with a ``type`` and may hold others. Formats that count or exclude tokens, or are in a notation of one model, are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grammask.constraints.algebra import Exactly, Text, sequence, union
from grammask.constraints.grammar import Grammar
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.regex import Regex
from grammask.constraints.special_token import SpecialToken
from grammask.constraints.triggered import Tag, Triggered
from grammask.engine.errors import ConstraintError, ConstraintSyntaxError, UnsupportedConstraint

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.constraints.json_schema.constraint import PropertyOrder
    from grammask.constraints.json_schema.whitespace import Whitespace


def structural_tag(text: str, whitespace: Whitespace = "flexible") -> Constraint:
    """The constraint of a structural tag.

    Args:
        text: its JSON.
        whitespace: blanks in JSON values.

    Raises:
        ConstraintError: it cannot be read, or a part of it cannot be enforced.
    """
    try:
        described = json.loads(text)
        if "format" in described:
            return _Reader(whitespace).format(described["format"])
        return _Reader(whitespace).triggered(_first_form(described))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ConstraintError):
            raise
        raise ConstraintSyntaxError(
            f"the structural tag cannot be read: {error!r}",
            hint='{"structures": [{"begin": ..., "schema": ..., "end": ...}], "triggers": [...]}, or {"type": '
            '"structural_tag", "format": {...}}',
        ) from error


def _first_form(described: Mapping[str, Any]) -> dict[str, Any]:
    """The first form as a format of the second."""
    tags = [
        {
            "begin": each["begin"],
            "content": {"type": "json_schema", "json_schema": each["schema"]},
            "end": each["end"],
        }
        for each in described["structures"]
    ]
    return {"triggers": described["triggers"], "tags": tags}


class _Reader:
    def __init__(self, whitespace: Whitespace) -> None:
        self._whitespace: Whitespace = whitespace
        self._readers: dict[str, Callable[[Mapping[str, Any]], Constraint]] = {
            "const_string": lambda each: Exactly(each["value"]),
            "json_schema": self._json_schema,
            "regex": lambda each: Regex(each["pattern"]),
            "grammar": lambda each: Grammar.gbnf(each["grammar"]),
            "any_text": lambda each: _text_without(each.get("excludes", ())),
            "token": lambda each: _token(each["token"]),
            "sequence": lambda each: sequence(*map(self.format, each["elements"])),
            "or": lambda each: union(*map(self.format, each["elements"])),
            "tag": self._tag,
            "triggered_tags": self.triggered,
            "tags_with_separator": self._separated,
            "optional": lambda each: self.format(each["content"]).optional(),
            "plus": lambda each: self.format(each["content"]).repeat(1, None),
            "star": lambda each: self.format(each["content"]).repeat(0, None),
            "repeat": lambda each: self.format(each["content"]).repeat(
                each["min"], None if each["max"] == -1 else each["max"]
            ),
        }

    def format(self, described: Mapping[str, Any]) -> Constraint:
        """The constraint of a format."""
        kind = described["type"]
        limits = [name for name in ("max_tokens", "max_chars", "max_whitespace_cnt") if described.get(name) is not None]
        if kind not in self._readers or limits:
            raise UnsupportedConstraint(
                f"structural tags with {' and '.join(limits) or kind} are not supported",
                hint=f"formats are {', '.join(self._readers)}, without limits",
            )
        return self._readers[kind](described)

    def _json_schema(self, described: Mapping[str, Any]) -> Constraint:
        style = described.get("style", "json")
        if style != "json" or described.get("excludes"):
            raise UnsupportedConstraint(
                f"structural tags with JSON in the style {style!r} or with excluded texts are not supported",
                hint="grammask.ToolCalls knows the formats of tool calls",
            )
        order: PropertyOrder = "any" if described.get("any_order") else "schema"
        return JsonSchema(described["json_schema"], whitespace=self._whitespace, property_order=order)

    def _tag(self, described: Mapping[str, Any]) -> Constraint:
        ends = described["end"] if isinstance(described["end"], list) else [described["end"]]
        content = described["content"]
        if content["type"] == "any_text":
            # The first end ends it.
            texts = [end for end in ends if isinstance(end, str) and end]
            content = {**content, "excludes": [*content.get("excludes", ()), *texts]}
        return sequence(_marker(described["begin"]), self.format(content), union(*map(_marker, ends)))

    def triggered(self, described: Mapping[str, Any]) -> Constraint:
        """Free text with tags."""
        if described.get("excludes"):
            raise UnsupportedConstraint("triggered tags with excluded texts are not supported")
        triggers = list(described["triggers"])
        tags = []
        for each in described["tags"]:
            begin, end = each["begin"], each["end"]
            if not isinstance(begin, str) or isinstance(end, list):
                raise UnsupportedConstraint("triggered tags begin with a text and have one end")
            trigger = next((text for text in triggers if begin.startswith(text)), None)
            if trigger is None:
                raise ConstraintSyntaxError(f"no trigger is the beginning of {begin!r}")
            tags.append(Tag(begin, self.format(each["content"]), _end(end), trigger))
        once = bool(described.get("stop_after_first"))
        return Triggered(
            tags,
            at_least=int(bool(described.get("at_least_one"))),
            at_most=1 if once else None,
            stop_after_last=once,
        )

    def _separated(self, described: Mapping[str, Any]) -> Constraint:
        tag = union(*map(self._tag, described["tags"]))
        tags = tag
        if not described.get("stop_after_first"):
            tags = tag + sequence(Exactly(described["separator"]), tag).repeat(0, None)
        return tags if described.get("at_least_one") else tags.optional()


def _marker(described: Any) -> Constraint:
    return Exactly(described) if isinstance(described, str) else _token(described["token"])


def _end(described: Any) -> str | SpecialToken:
    return described if isinstance(described, str) else _token(described["token"])


def _token(token: Any) -> SpecialToken:
    return SpecialToken(token)


def _text_without(excluded: Sequence[str]) -> Constraint:
    """Free text that holds none of these texts."""
    text: Constraint = Text()
    for each in excluded:
        text = text & ~(Text() + each + Text())
    return text
