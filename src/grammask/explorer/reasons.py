"""Why a token cannot come next, in words.

The facts are the matcher's: how far a token fits, and which bytes could stand where it stops fitting. For JSON, the
place in the text and the schema there turn these into "an integer is expected here (/age)".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from grammask.cli.check import expected_next
from grammask.cli.places import describe_bytes, quote
from grammask.explorer.json_place import JsonPlace, place_in, schemas_at

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.constraints.grammar.open_rules import RulePath
    from grammask.engine.vocabulary import Vocabulary
    from grammask.explorer.constraints import ConstraintSpec

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "an array",
}

_NEVER_FIRST = frozenset((*range(0x80, 0xC2), *range(0xF5, 0x100)))
"""Bytes with which no character begins in UTF-8 (RFC 3629)."""

_FEW = 6
"""So many alternatives are listed; more are only counted."""


class Reasons:
    """Explains one position of one output.

    Args:
        spec: the constraint.
        matcher: at the position; it is not changed.
        text: the output so far.
        vocabulary: what token ids mean.
    """

    def __init__(self, spec: ConstraintSpec, matcher: Matcher, text: bytes, vocabulary: Vocabulary) -> None:
        self._spec = spec
        self._matcher = matcher
        self._text = text
        self._vocabulary = vocabulary
        self._schema = spec.schema()
        self._names = {token_id: name for name, token_id in vocabulary.special_tokens.items()}
        self.place: JsonPlace | None = place_in(text.decode("utf-8", "ignore")) if spec.is_json else None
        """Where in the JSON text the position is; None for other texts."""

    @cached_property
    def rules(self) -> list[RulePath]:
        """Where in a grammar's rules the position is; empty for other constraints, and where it is too hard to tell."""
        import grammask

        constraint = self._spec.build() if self._spec.kind in ("gbnf", "lark") else None
        try:
            return constraint.open_rules(self._text) if isinstance(constraint, grammask.Grammar) else []
        except grammask.ConstraintTooLarge:
            return []

    def expected(self) -> str:
        """What is expected at the position."""
        words = self._expected(self._matcher, self._text)
        return f"{words} ({self.rules[0]})" if self.rules else words

    def why_not(self, token_id: int) -> str:
        """Why a token that the mask excludes is out."""
        data = self._vocabulary.token_bytes(token_id)
        if data is None:
            return self._why_not_special(token_id)
        fits = self._matcher.matched_prefix(data)
        inside_character = any(0x80 <= byte < 0xC0 for byte in self._matcher.next_bytes())
        if fits == 0 and data[0] in _NEVER_FIRST and not inside_character:
            return "no character begins with this byte"
        if fits == 0:
            return f"{self.expected()} is expected here"
        after = self._matcher.copy()
        after.accept_bytes(data[:fits])
        if fits == len(data):
            return "half a character that no character allowed here goes on with"
        expected = self._expected(after, self._text + data[:fits])
        return f"{quote(data[:fits])} fits, but then {expected} is expected, not {quote(data[fits:])}"

    def _why_not_special(self, token_id: int) -> str:
        if token_id in self._vocabulary.eos_token_ids:
            return f"the output may not end yet: {self.expected()} must come first"
        if token_id not in self._names:
            return "no token: a row of the logits that stands for nothing"
        if self._spec.kind == "tools" and "<" in self._names[token_id]:
            return f"this tag may not start yet: {self.expected()} is expected here"
        return "a special token: it comes only where the constraint names it"

    # -- what is expected, in words

    def _expected(self, matcher: Matcher, text: bytes) -> str:
        following = matcher.next_bytes()
        if not following:
            return "the end of the text"
        words = self._json_words(matcher, text) if self._spec.is_json else _text_words(matcher, following)
        return words or expected_next(matcher)

    def _json_words(self, matcher: Matcher, text: bytes) -> str | None:
        place = place_in(text.decode("utf-8", "ignore"))
        schemas = [schema for _, schema in schemas_at(self._schema, place.path)]
        at = f" ({place.pointer})" if place.pointer else ""
        if place.where == "value":
            return self._value_words(matcher, schemas, at)
        if place.where in ("key", "in key"):
            return self._key_words(matcher, place, schemas)
        if place.where == "in string":
            return self._string_words(matcher, schemas, at)
        if place.where == "in number":
            return self._number_words(matcher, schemas, at)
        if place.where == "after value":
            return self._after_words(matcher, place)
        return None

    def _value_words(self, matcher: Matcher, schemas: list[dict[str, Any]], at: str) -> str | None:
        listed = [_short(value) for schema in schemas for value in _constants(schema)]
        following = matcher.next_bytes()
        if listed:
            few = _or(listed[:_FEW]) if len(listed) <= _FEW else f"one of {len(listed)} listed values"
            return f"{few}{at}"
        kinds = [
            words
            for words, starts in (
                (_number_kind(schemas), b"-0123456789"),
                ("a string", b'"'),
                ("true or false", b"tf"),
                ("null", b"n"),
                ("an object", b"{"),
                ("an array", b"["),
            )
            if any(byte in following for byte in starts)
        ]
        if kinds == ["a string"]:
            formats = {schema["format"] for schema in schemas if isinstance(schema.get("format"), str)}
            kinds = [f"a string that is {_article(name)}" for name in sorted(formats)] or kinds
        closing = " or the end of the array" if b"]"[0] in following else ""
        return f"{_or(kinds)}{at}{closing}" if kinds else None

    def _key_words(self, matcher: Matcher, place: JsonPlace, schemas: list[dict[str, Any]]) -> str | None:
        names = _property_names(schemas)
        possible = [name for name in names if name not in place.keys and self._fits_key(matcher, name, place.partial)]
        closing = " or '}'" if b"}"[0] in matcher.next_bytes() else ""
        required = [
            name
            for schema in schemas
            for name in schema.get("required", ())
            if isinstance(name, str) and name not in place.keys
        ]
        if not possible:
            return None if not closing else "a further key or '}'"
        listed = _or([f'"{name}"' for name in possible[:_FEW]])
        more = f" or {len(possible) - _FEW} more" if len(possible) > _FEW else ""
        must = " (required)" if len(possible) == 1 and possible[0] in required else ""
        return f"the key {listed}{more}{must}{closing}"

    def _fits_key(self, matcher: Matcher, name: str, partial: str) -> bool:
        spelled = json.dumps(name, ensure_ascii=False)
        if not spelled.startswith(partial):
            return False
        rest = spelled[len(partial) :].encode("utf-8", "surrogatepass")
        return matcher.matched_prefix(rest) == len(rest)

    def _string_words(self, matcher: Matcher, schemas: list[dict[str, Any]], at: str) -> str | None:
        following = matcher.next_bytes()
        longest = [schema["maxLength"] for schema in schemas if isinstance(schema.get("maxLength"), int)]
        if following == b'"' and longest:
            return f"the closing quote{at}, since the string may have {min(longest)} characters"
        if len(following) == 1:
            return None
        constants = [_short(value) for schema in schemas for value in _constants(schema)]
        if constants and len(constants) <= _FEW:
            return f"the rest of {_or(constants)}{at}"
        for keyword, words in (("format", "the rest of {}"), ("pattern", "what the pattern {} wants")):
            found = [schema[keyword] for schema in schemas if isinstance(schema.get(keyword), str)]
            if found:
                name = _article(found[0]) if keyword == "format" else found[0]
                return words.format(name) + f"{at}: {describe_bytes(following)}"
        if len(following) > 90:
            quotes = "" if b'"'[0] in following else ", not yet the closing quote"
            return f"text of a JSON string{quotes}{at}"
        return None

    def _number_words(self, matcher: Matcher, schemas: list[dict[str, Any]], at: str) -> str:
        following = matcher.next_bytes()
        bounds = [
            f"{words} {schema[keyword]}"
            for keyword, words in (
                ("minimum", "at least"),
                ("exclusiveMinimum", "above"),
                ("maximum", "at most"),
                ("exclusiveMaximum", "below"),
                ("multipleOf", "a multiple of"),
            )
            for schema in schemas
            if isinstance(schema.get(keyword), (int, float)) and not isinstance(schema.get(keyword), bool)
        ]
        ends = any(byte in following for byte in b",]} \n\t\r") or matcher.is_complete
        kind = _number_kind(schemas)
        which = f", {_and(bounds)}" if bounds else ""
        digits = describe_bytes(bytes(byte for byte in following if byte in b"0123456789.eE+-"))
        if not digits:
            return f"the end of {kind}{which}{at}"
        return f"more of {kind}{which}{at}: {digits}{' or its end' if ends else ''}"

    def _after_words(self, matcher: Matcher, place: JsonPlace) -> str:
        following = matcher.next_bytes()
        marks = [f"'{mark}'" for mark in ",]}" if ord(mark) in following]
        if "'}'" not in marks and place.keys and self._spec.kind == "json_schema":
            outer = schemas_at(self._schema, place.path[:-1])
            missing = [
                name
                for _, schema in outer
                for name in schema.get("required", ())
                if isinstance(name, str) and name not in place.keys
            ]
            if missing and marks:
                return f"{_or(marks)} (the object still needs {_and([json.dumps(n) for n in missing[:_FEW]])})"
        return _or(marks) if marks else expected_next(matcher)


def _text_words(matcher: Matcher, following: bytes) -> str | None:
    """Nearly every character may come: that, in place of a long list of ranges."""
    missing = [byte for byte in range(0x20, 0x7F) if byte not in following]
    if len(missing) > _FEW:
        return None
    but = f" but {describe_bytes(bytes(missing))}" if missing else ""
    return f"any text{but}{' or the end of the text' if matcher.is_complete else ''}"


def _constants(schema: dict[str, Any]) -> list[Any]:
    listed = schema.get("enum")
    return ([schema["const"]] if "const" in schema else []) + (listed if isinstance(listed, list) else [])


def _property_names(schemas: Iterable[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for schema in schemas:
        properties = schema.get("properties")
        names.update(dict.fromkeys(properties if isinstance(properties, dict) else ()))
        required = schema.get("required")
        names.update(dict.fromkeys(name for name in (required if isinstance(required, list) else ()) if name))
    return list(names)


def _number_kind(schemas: list[dict[str, Any]]) -> str:
    types = {name for schema in schemas for name in _as_list(schema.get("type"))}
    return _TYPES["integer"] if "integer" in types and "number" not in types else _TYPES["number"]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 30 else text[:29] + "…"


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeioAEIO' else 'a'} {name}"


def _or(parts: list[str]) -> str:
    return " or ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _and(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
