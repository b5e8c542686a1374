"""What a schema allows that its author may not have meant: each finding with its place and a way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from grammask.constraints.json_schema import dialects
from grammask.constraints.json_schema.documents import escape

Level = Literal["warning", "note"]

_REASONING = ("reason", "thought", "think", "rationale", "explan", "justif", "analysis", "chain_of", "steps", "scratch")
_ANSWER = ("answer", "result", "verdict", "label", "category", "decision", "conclusion", "score", "final", "class")

HUGE_ENUM = 500
"""Values beyond which a list is worth a second thought."""

MANY_OPTIONAL = 8


@dataclass(frozen=True)
class Finding:
    """Something to know about a schema.

    Attributes:
        level: "warning" where outputs are likely to be worse than meant, "note" otherwise.
        pointer: JSON pointer of the place.
        message: what is so. advice: what to do about it.
    """

    level: Level
    pointer: str
    message: str
    advice: str

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        return asdict(self)


def findings(schema: Any) -> list[Finding]:
    """All findings about a schema, warnings first, in the order in which the schema is written."""
    found = [finding for pointer, here in _subschemas(schema) for finding in _about(pointer, here)]
    return sorted(found, key=lambda finding: finding.level != "warning")


def _subschemas(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every subschema that is an object, with its pointer, outermost first."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        pointer, here = waiting.pop()
        if not isinstance(here, dict):
            continue
        yield pointer, here
        children: list[tuple[str, Any]] = []
        for keyword, value in here.items():
            base = f"{pointer}/{escape(keyword)}"
            if keyword in dialects.SCHEMA_MAPS and isinstance(value, dict):
                children += [(f"{base}/{escape(name)}", child) for name, child in value.items()]
            elif keyword in dialects.SCHEMA_LISTS and isinstance(value, list):
                children += [(f"{base}/{index}", child) for index, child in enumerate(value)]
            elif keyword in dialects.SCHEMA_POSITIONS:
                children.append((base, value))
        waiting.extend(reversed(children))


def _about(pointer: str, here: dict[str, Any]) -> Iterator[Finding]:
    yield from _about_object(pointer, here)
    yield from _about_lengths(pointer, here)
    yield from _about_keywords(pointer, here)
    values = here.get("enum")
    if isinstance(values, list) and len(values) > HUGE_ENUM:
        yield Finding(
            "warning",
            f"{pointer}/enum",
            f"{len(values):,} listed values",
            "a model chooses among values that it cannot see: put them into the prompt, or choose in two steps",
        )


def _about_object(pointer: str, here: dict[str, Any]) -> Iterator[Finding]:
    properties = here.get("properties")
    if not isinstance(properties, dict) or not properties:
        return
    names = list(properties)
    reasoning = next((name for name in reversed(names) if _sounds_like(name, _REASONING)), None)
    answer = next((name for name in names if _sounds_like(name, _ANSWER)), None)
    if reasoning is not None and answer is not None and names.index(reasoning) > names.index(answer):
        yield Finding(
            "warning",
            f"{pointer}/properties/{escape(reasoning)}",
            f'"{reasoning}" comes after "{answer}"',
            "a model writes from left to right: what it writes after the answer cannot help the answer; put it before",
        )
    closed = "additionalProperties" in here or "unevaluatedProperties" in here
    if not closed and not any(keyword in here for keyword in ("allOf", "anyOf", "oneOf", "$ref", "patternProperties")):
        yield Finding(
            "warning",
            pointer,
            "additionalProperties is missing, so members of any name may follow",
            'add "additionalProperties": false unless further members are wanted',
        )
    required = here.get("required")
    listed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    unknown = [name for name in listed if name not in properties]
    if unknown:
        yield Finding(
            "warning",
            f"{pointer}/required",
            f"{_listed(unknown)} must be there, and properties says nothing about it",
            "describe each required property",
        )
    optional = [name for name in names if name not in listed]
    if optional and "$ref" not in here:
        yield Finding(
            "warning" if len(optional) >= MANY_OPTIONAL else "note",
            f"{pointer}/required",
            f"{_listed(optional)} may be left out",
            "small models tend to leave out what they may: require it, and allow null where there is no value",
        )


def _about_lengths(pointer: str, here: dict[str, Any]) -> Iterator[Finding]:
    kinds = here.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    settled = any(keyword in here for keyword in ("enum", "const", "$ref"))
    if "array" in kinds and "maxItems" not in here and not settled:
        yield Finding(
            "note",
            pointer,
            "an array of any length",
            "maxItems keeps a model that repeats itself from filling the budget",
        )
    bounded = any(keyword in here for keyword in ("maxLength", "pattern", "format"))
    if "string" in kinds and not bounded and not settled:
        yield Finding(
            "note", pointer, "a string of any length", "maxLength, a pattern or a format says where it should end"
        )


def _about_keywords(pointer: str, here: dict[str, Any]) -> Iterator[Finding]:
    known = {*dialects.DEFAULT.keywords, *dialects.DRAFT2019.keywords}
    harmless = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "definitions"}
    for keyword in here:
        if keyword in known or keyword in harmless or keyword.startswith(("$", "x-")):
            continue
        near = difflib.get_close_matches(keyword, known, n=1, cutoff=0.8)
        if near:
            yield Finding(
                "warning",
                f"{pointer}/{escape(keyword)}",
                f'"{keyword}" is no keyword, so nothing enforces it',
                f'did you mean "{near[0]}"?',
            )


def _sounds_like(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)


def _listed(names: list[str]) -> str:
    shown = [f'"{name}"' for name in names[:4]]
    rest = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(shown) + rest
