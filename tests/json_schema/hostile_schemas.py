"""Schemas made to hurt, as data: each is to be answered within the limits of time and memory.

A row makes its schema when it is asked to, in the process that compiles it. Rows of a few bytes (``multipleOf``,
counts) attack what is built from them; rows of megabytes attack what reads them.
"""

from __future__ import annotations

import functools
import json
import random
import string
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from grammask.constraints.json_schema import JsonSchema

COMPILED = frozenset({"compiled"})
TOO_LARGE = frozenset({"ConstraintTooLarge"})
EITHER = COMPILED | TOO_LARGE
"""Whether it is too large depends on the machine and on the limits."""
UNSUPPORTED = frozenset({"UnsupportedConstraint"})
EMPTY = frozenset({"UnsatisfiableConstraint"})
SYNTAX = frozenset({"ConstraintSyntaxError"})


class Row(NamedTuple):
    """A schema, and how it may be answered.

    Attributes:
        make: gives the schema, as Python objects or as text.
        answers: "compiled", or names of error classes.
        place: what the JSON pointer of an error begins with.
        options: of JsonSchema.
        json: outputs are JSON.
    """

    make: Callable[[], Any]
    answers: frozenset[str]
    place: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    json: bool = True

    def constraint(self, made: Any) -> JsonSchema:
        """The constraint of what ``make`` gave."""
        return JsonSchema(made, **self.options)


def nested(depth: int, wrap: Callable[[Any], Any], inner: Any = None) -> Any:
    value: Any = {"type": "integer"} if inner is None else inner
    for _ in range(depth):
        value = wrap(value)
    return value


def text_of(before: str, depth: int, inner: str, after: str) -> str:
    return before * depth + inner + after * depth


def has(name: str, value: Any = True) -> dict[str, Any]:
    return {"properties": {name: value}, "required": [name]}


def choices(count: int, start: int = 0) -> dict[str, Any]:
    """Branches of which none excludes another."""
    return {"anyOf": [has(f"p{start}_{i}", {"type": "integer"}) for i in range(count)]}


def chain(count: int, step: Callable[[Any], Any], end: Any) -> dict[str, Any]:
    """Definitions of which each speaks of the next."""
    definitions = {f"d{i}": step({"$ref": f"#/$defs/d{i + 1}"}) for i in range(count)}
    return {"$defs": {**definitions, f"d{count}": end}, "$ref": "#/$defs/d0"}


def word(i: int) -> str:
    """Different texts of many lengths without common beginnings."""
    return f"{i * 2654435761 % 2**32:x}" * (1 + i % 5)


def records(count: int) -> list[dict[str, Any]]:
    return [{"name": word(i), "number": i, "tags": [word(i), None, i % 2 == 0]} for i in range(count)]


def random_schema(seed: int, depth: int) -> Any:
    """In-place applicators of every kind over a few properties."""
    draw = random.Random(seed)

    def make(level: int) -> Any:
        if level == 0:
            name = draw.choice("abcd")
            return draw.choice(
                [
                    has(name, {"enum": draw.sample(range(6), 3)}),
                    {"properties": {name: {"type": draw.choice(["integer", "string", "object"])}}},
                    {"minProperties": draw.randrange(3)},
                    {"patternProperties": {f"^{name}": {"minimum": draw.randrange(5)}}},
                    {"items": {"type": "integer"}, "contains": {"const": draw.randrange(5)}},
                ]
            )
        kind = draw.choice(["allOf", "anyOf", "oneOf", "not", "if", "properties"])
        parts = [make(level - 1) for _ in range(3)]
        if kind == "not":
            return {"not": parts[0], "anyOf": parts[1:]}
        if kind == "if":
            return dict(zip(("if", "then", "else"), parts, strict=True))
        if kind == "properties":
            return {"properties": dict(zip("abc", parts, strict=True)), "unevaluatedProperties": False}
        return {kind: parts}

    return make(depth)


def cyclic() -> Any:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


def cyclic_constant() -> Any:
    value: list[Any] = []
    value.append(value)
    return {"const": value}


def discriminated(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{**has("kind", {"const": f"k{i}"}), **more} for i in range(count)]


COMBINATIONS = {
    **{
        f"{keyword} of {keyword}, two branches each, 40 deep": Row(
            functools.partial(nested, 40, lambda inner, k=keyword: {k: [has("a", inner), has("b", inner)]}), EITHER
        )
        for keyword in ("anyOf", "allOf", "oneOf")
    },
    "oneOf of oneOf, ten deep, written out": Row(
        lambda: json.dumps(
            nested(10, lambda inner: {"oneOf": [has("a", inner), {"minProperties": 1, **has("b", inner)}]})
        ),
        EITHER,
    ),
    "oneOf of oneOf, a hundred deep, of strings that share their parts": Row(
        lambda: nested(
            100,
            lambda inner: {"oneOf": [inner, {"minLength": 3}, {"maxLength": 9}, {"type": "integer"}]},
            {"type": "string"},
        ),
        EITHER,
    ),
    "not of allOf of not, 40 deep": Row(
        lambda: nested(40, lambda inner: {"not": {"allOf": [has("a", inner), {"not": has("b", inner)}]}}), EITHER
    ),
    "allOf of anyOfs that share nothing": Row(
        lambda: {"type": "object", "allOf": [choices(4, 100 * i) for i in range(12)]}, EITHER
    ),
    "allOf of a hundred anyOfs of two": Row(lambda: {"allOf": [choices(2, 100 * i) for i in range(100)]}, EITHER),
    "anyOf of allOfs under not": Row(
        lambda: {"not": {"anyOf": [{"allOf": [has(f"a{i}"), has(f"b{i}", {"type": "null"})]} for i in range(40)]}},
        EITHER,
    ),
    "oneOf of 300 overlapping objects": Row(
        lambda: {"oneOf": [has(f"p{i}", {"type": "integer"}) for i in range(300)]}, EITHER
    ),
    "oneOf of 20,000 told apart": Row(lambda: {"oneOf": discriminated(20_000, type="object")}, EITHER),
    "oneOf of 60 overlapping patterns": Row(
        lambda: {"oneOf": [{"type": "string", "pattern": f"a.{{{i}}}b"} for i in range(60)]}, EITHER
    ),
    "oneOf of 60 overlapping intervals": Row(
        lambda: {"oneOf": [{"minimum": i, "maximum": 100 + i} for i in range(60)]}, EITHER
    ),
    "allOf of 60 negated multiples": Row(
        lambda: {"type": "integer", "allOf": [{"not": {"multipleOf": 10**9 + i}} for i in range(60)]}, EITHER
    ),
    "allOf of 300 negated objects": Row(
        lambda: {"type": "object", "allOf": [{"not": has(f"p{i}", {"const": i})} for i in range(300)]}, EITHER
    ),
    "if then else, 60 in a row": Row(
        lambda: {"allOf": [{"if": has(f"a{i}"), "then": has(f"b{i}"), "else": has(f"c{i}")} for i in range(60)]},
        EITHER,
    ),
    "if then else, 40 deep": Row(
        lambda: nested(40, lambda inner: {"if": has("a", inner), "then": has("b", inner), "else": inner}), EITHER
    ),
    "if in if in if": Row(lambda: nested(60, lambda inner: {"if": inner, "then": has("a"), "else": has("b")}), EITHER),
    "dependentSchemas web of 30": Row(
        lambda: {
            "dependentSchemas": {
                f"p{i}": {
                    "required": [f"p{(i * 7 + 1) % 30}"],
                    "properties": {f"p{(i * 3 + 2) % 30}": {"type": "null"}},
                }
                for i in range(30)
            }
        },
        EITHER,
    ),
    "dependentSchemas of 12 with alternatives": Row(
        lambda: {"dependentSchemas": {f"p{i}": choices(4, 100 * i) for i in range(12)}}, EITHER
    ),
    "dependentRequired of 500, each two others": Row(
        lambda: {
            "type": "object",
            "dependentRequired": {f"p{i}": [f"p{(i * 7 + 1) % 500}", f"p{(i * 5 + 2) % 500}"] for i in range(500)},
        },
        EITHER,
    ),
    "unevaluatedProperties under 12 anyOf branches": Row(
        lambda: {"anyOf": [{"properties": {f"p{i}": True}} for i in range(12)], "unevaluatedProperties": False}, EITHER
    ),
    "unevaluatedProperties under 40 anyOf branches": Row(
        lambda: {"anyOf": [{"properties": {f"p{i}": True}} for i in range(40)], "unevaluatedProperties": False}, EITHER
    ),
    "unevaluatedItems under 30 anyOf branches": Row(
        lambda: {
            "anyOf": [{"prefixItems": [{"const": j} for j in range(i)]} for i in range(1, 30)],
            "unevaluatedItems": False,
        },
        EITHER,
    ),
    "unevaluatedItems under 20 contains": Row(
        lambda: {"allOf": [{"contains": {"const": i}} for i in range(20)], "unevaluatedItems": False}, EITHER
    ),
    "contains twelve times with counts": Row(
        lambda: {"allOf": [{"contains": {"minimum": i}, "minContains": 3, "maxContains": 50} for i in range(12)]},
        EITHER,
    ),
    "four contains with counts of a thousand": Row(
        lambda: {
            "allOf": [{"contains": {"const": i}, "minContains": 1000, "maxContains": 2000} for i in range(4)],
        },
        EITHER,
    ),
    "40 properties that some must satisfy": Row(
        lambda: {"not": {"properties": {f"p{i}": {"type": "string"} for i in range(40)}}, "minProperties": 20}, EITHER
    ),
    "30 negated patternProperties": Row(
        lambda: {"allOf": [{"not": {"patternProperties": {f"[a-{c}]": {"type": "null"}}}} for c in "bcdefghijklmn"]},
        EITHER,
    ),
    "20 overlapping patternProperties": Row(
        lambda: {"patternProperties": {f"{c}.*{d}": {"minimum": i} for i, (c, d) in enumerate(PAIRS[:20])}}, EITHER
    ),
    "20 overlapping patternProperties, closed": Row(
        lambda: {
            "patternProperties": {f"^.{{{i}}}[a-m]": {"minimum": i} for i in range(20)},
            "additionalProperties": False,
        },
        EITHER,
    ),
    **{
        f"random combinations {seed}": Row(functools.partial(random_schema, seed, 4), EITHER | EMPTY | UNSUPPORTED)
        for seed in range(8)
    },
}

PAIRS = [(c, d) for c in "abcde" for d in "vwxyz"]

DOCUMENTS = {
    "5 MB of properties": Row(
        lambda: {"properties": {f"property number {i}": {"type": "integer"} for i in range(100_000)}}, EITHER
    ),
    "5 MB of properties in any order": Row(
        lambda: {"properties": {f"property number {i}": {"type": "integer"} for i in range(100_000)}},
        EITHER,
        options={"property_order": "any"},
    ),
    "20,000 required properties": Row(
        lambda: {
            "properties": {f"p{i}": {"const": i} for i in range(20_000)},
            "required": [f"p{i}" for i in range(20_000)],
        },
        EITHER,
    ),
    "5 MB of different objects": Row(
        lambda: {
            "properties": {f"p{i}": {"properties": {word(i): {"const": word(i)}}} for i in range(50_000)},
        },
        EITHER,
    ),
    "5 MB of definitions": Row(
        lambda: json.dumps(
            {"$defs": {f"d{i}": has(word(i), {"const": word(i)}) for i in range(40_000)}, "$ref": "#/$defs/d39999"}
        ),
        COMPILED,
    ),
    "5 MB of definitions, all used": Row(
        lambda: json.dumps(
            {
                "$defs": {f"d{i}": has(word(i), {"const": word(i)}) for i in range(40_000)},
                "anyOf": [{"$ref": f"#/$defs/d{i}"} for i in range(40_000)],
            }
        ),
        EITHER,
    ),
    "5 MB of anchors": Row(
        lambda: {"$defs": {f"d{i}": {"$anchor": f"anchor{i}", "const": i} for i in range(80_000)}, "$ref": "#anchor7"},
        COMPILED,
    ),
    "5 MB of identifiers": Row(
        lambda: {
            "$defs": {f"d{i}": {"$id": f"http://example.com/{i}", "const": i} for i in range(50_000)},
            "$ref": "http://example.com/49999",
        },
        COMPILED,
    ),
    "5 MB in one string": Row(lambda: {"const": "text " * 1_000_000}, EITHER),
    "5 MB in one property": Row(
        lambda: {"properties": {"a": {"const": "text " * 1_000_000}}}, TOO_LARGE, "/properties/a"
    ),
    "5 MB in one string, every spelling": Row(
        lambda: {"const": "text " * 1_000_000}, EITHER, options={"escapes": "all"}
    ),
    "5 MB in one key": Row(lambda: has("key " * 1_250_000), EITHER),
    "5 MB in one pattern": Row(lambda: {"type": "string", "pattern": "abcde" * 1_000_000}, EITHER),
    "5 MB in one pattern of classes": Row(
        lambda: {"type": "string", "pattern": "[a-z]\\d" * 800_000}, EITHER, "/pattern"
    ),
    "5 MB in one pattern of alternatives": Row(
        lambda: {"type": "string", "pattern": "|".join(word(i) for i in range(300_000))}, EITHER, "/pattern"
    ),
    "5 MB of patterns": Row(
        lambda: {"anyOf": [{"type": "string", "pattern": f"^{word(i)}[a-z]{{3,9}}$"} for i in range(60_000)]}, EITHER
    ),
    "5 MB of type names": Row(lambda: {"type": ["string", "integer"] * 250_000}, COMPILED),
    "5 MB of required names": Row(lambda: {"required": [word(i) for i in range(250_000)]}, EITHER),
    "5 MB of descriptions": Row(lambda: {"description": "text " * 1_000_000, "$comment": "x" * 10**6}, COMPILED),
    "5 MB of blanks": Row(lambda: " " * 5_000_000 + "{}" + " " * 5_000_000, COMPILED),
    "5 MB of digits": Row(lambda: '{"minimum": ' + "9" * 5_000_000 + "}", TOO_LARGE),
    "5 MB of digits after a point": Row(lambda: '{"minimum": 0.' + "9" * 5_000_000 + "}", TOO_LARGE, "/minimum"),
    "5 MB of prefix items": Row(lambda: {"prefixItems": [{"const": i} for i in range(300_000)]}, EITHER),
    "a list of a million branches": Row(lambda: {"anyOf": [{"type": "string"}] * 1_000_000}, EITHER),
    "a list of a million branches that are true": Row(lambda: {"allOf": [True] * 1_000_000}, COMPILED),
    "text nested 100,000 deep": Row(lambda: text_of('{"not":', 100_000, "{}", "}"), TOO_LARGE),
    "lists nested 100,000 deep": Row(lambda: text_of("[", 100_000, "", "]"), TOO_LARGE | SYNTAX),
    "a constant nested 100,000 deep": Row(
        lambda: {"const": nested(100_000, lambda inner: [inner], 1)}, TOO_LARGE, "/const"
    ),
    "a constant nested 150 deep": Row(lambda: {"const": nested(150, lambda inner: {"a": [inner]}, 1)}, EITHER),
    **{
        f"{name}, {depth:,} deep": Row(functools.partial(nested, depth, wrap), EITHER)
        for depth in (900, 100_000)
        for name, wrap in {
            "items": lambda inner: {"type": "array", "items": inner},
            "prefixItems": lambda inner: {"prefixItems": [inner, inner]},
            "properties": lambda inner: has("a", inner),
            "two properties": lambda inner: {"properties": {"a": inner, "b": inner}},
            "patternProperties": lambda inner: {"patternProperties": {"^a": inner}},
            "additionalProperties": lambda inner: {"additionalProperties": inner},
            "propertyNames": lambda inner: {"propertyNames": inner},
            "contains": lambda inner: {"contains": inner},
            "allOf": lambda inner: {"allOf": [inner]},
            "not": lambda inner: {"not": inner},
            "oneOf": lambda inner: {"oneOf": [inner, {"type": "string"}]},
            "if": lambda inner: {"if": inner, "then": {"type": "string"}},
            "unevaluatedItems": lambda inner: {"unevaluatedItems": inner},
        }.items()
    },
}

ENUMS = {
    "10,000 strings": Row(lambda: {"enum": [word(i) for i in range(10_000)]}, COMPILED),
    "100,000 strings": Row(lambda: {"enum": [word(i) for i in range(100_000)]}, COMPILED),
    "100,000 strings, every spelling": Row(
        lambda: {"enum": [word(i) for i in range(100_000)]}, EITHER, options={"escapes": "all"}
    ),
    "100,000 numbers": Row(lambda: {"enum": list(range(0, 300_000, 3))}, EITHER),
    "10,000 decimals": Row(lambda: {"enum": [Decimal(i) / 7 for i in range(10_000)]}, EITHER),
    "10,000 objects": Row(lambda: {"enum": records(10_000)}, EITHER),
    "100,000 objects": Row(lambda: {"enum": records(100_000)}, EITHER),
    "100,000 arrays": Row(lambda: {"enum": [[i, word(i)] for i in range(100_000)]}, EITHER),
    "negated 10,000 strings": Row(lambda: {"not": {"enum": [word(i) for i in range(10_000)]}}, EITHER),
    "negated 10,000 numbers": Row(lambda: {"type": "integer", "not": {"enum": list(range(10_000))}}, EITHER),
    "negated 1,000 objects": Row(lambda: {"type": "object", "not": {"enum": records(1_000)}}, EITHER),
    "negated 1,000 arrays": Row(lambda: {"type": "array", "not": {"enum": [[i] for i in range(1_000)]}}, EITHER),
    "10,000 strings and a pattern": Row(
        lambda: {"enum": [word(i) for i in range(10_000)], "pattern": "^(a|b).*[0-9]{3}"}, EITHER
    ),
    "100,000 strings and a length": Row(
        lambda: {"enum": [word(i) for i in range(100_000)], "minLength": 10, "maxLength": 20}, EITHER
    ),
    "unique items out of 10,000 strings": Row(
        lambda: {
            "type": "array",
            "items": {"enum": [word(i) for i in range(10_000)]},
            "uniqueItems": True,
            "minItems": 100,
        },
        EITHER,
    ),
    "unique items, all of 10,000 strings": Row(
        lambda: {
            "type": "array",
            "items": {"enum": [word(i) for i in range(10_000)]},
            "uniqueItems": True,
            "minItems": 10_000,
        },
        EITHER,
    ),
    "unique items, one too many": Row(
        lambda: {
            "type": "array",
            "items": {"enum": [word(i) for i in range(10_000)]},
            "uniqueItems": True,
            "minItems": 10_001,
        },
        EMPTY | TOO_LARGE,
    ),
    "unique objects": Row(
        lambda: {"type": "array", "items": {"enum": records(1_000)}, "uniqueItems": True, "minItems": 900}, EITHER
    ),
    "unique items nested": Row(
        lambda: nested(
            12, lambda inner: {"type": "array", "items": inner, "uniqueItems": True, "minItems": 2}, {"type": "boolean"}
        ),
        EITHER | EMPTY,
    ),
    "unique whole numbers in a wide range": Row(
        lambda: {
            "items": {"type": "integer", "minimum": 0, "maximum": 10**9},
            "type": "array",
            "uniqueItems": True,
            "minItems": 10**6,
        },
        EITHER,
    ),
    "contains each of 1,000": Row(lambda: {"allOf": [{"contains": {"const": i}} for i in range(1_000)]}, EITHER),
    "enum of keys": Row(
        lambda: {"propertyNames": {"enum": [word(i) for i in range(10_000)]}, "minProperties": 10_000}, EITHER
    ),
    "a key for each of 100,000": Row(
        lambda: {"propertyNames": {"enum": [word(i) for i in range(100_000)]}, "type": "object"}, EITHER
    ),
}

MILLION = 10**6

COUNTS = {
    **{
        f"{name} of a million": Row(functools.partial(dict, part), EITHER)
        for name, part in {
            "minItems": {"type": "array", "minItems": MILLION},
            "maxItems": {"type": "array", "maxItems": MILLION},
            "exact items": {"type": "array", "items": {"const": 1}, "minItems": MILLION, "maxItems": MILLION},
            "minLength": {"type": "string", "minLength": MILLION},
            "maxLength": {"type": "string", "maxLength": MILLION},
            "exact length": {"type": "string", "minLength": MILLION, "maxLength": MILLION},
            "length and pattern": {"type": "string", "maxLength": MILLION, "pattern": "a.*b"},
            "length and format": {"type": "string", "minLength": MILLION, "format": "uri"},
            "minProperties": {"type": "object", "minProperties": MILLION},
            "maxProperties": {"type": "object", "maxProperties": MILLION, "minProperties": 1_000},
            "minContains": {"type": "array", "contains": {"const": 1}, "minContains": MILLION},
            "maxContains": {"type": "array", "contains": {"const": 1}, "maxContains": MILLION},
            "all counts": {
                "type": "array",
                "contains": {"const": 1},
                "minContains": MILLION,
                "maxContains": MILLION + 1,
                "minItems": 2 * MILLION,
                "maxItems": 3 * MILLION,
            },
            "unique items": {"type": "array", "uniqueItems": True, "minItems": MILLION},
            "property names": {"propertyNames": {"minLength": MILLION}, "minProperties": 2},
            "items of a length": {
                "type": "array",
                "minItems": MILLION,
                "items": {"type": "string", "minLength": MILLION},
            },
        }.items()
    },
    "a count of 20 digits": Row(lambda: {"type": "string", "minLength": 10**20}, EITHER),
    "a count of 300 digits": Row(lambda: {"type": "array", "minItems": 10**300, "maxItems": 10**300}, EMPTY),
    "a count of 300 digits, contains": Row(
        lambda: {"type": "array", "contains": {"const": 1}, "minContains": 10**300}, EITHER
    ),
    "a count of 300 digits, properties": Row(lambda: {"type": "object", "minProperties": 10**300}, EITHER | EMPTY),
    "a hundred lengths": Row(
        lambda: {"type": "string", "oneOf": [{"minLength": 7 * i, "maxLength": 7 * i + MILLION} for i in range(100)]},
        EITHER | EMPTY,
    ),
    "lengths of a sum": Row(
        lambda: {"type": "string", "allOf": [{"pattern": f"^(.{{{n}}})*$"} for n in (97, 89, 83, 79, 73)]}, EITHER
    ),
}

PATTERNS = {
    f"pattern {name}": Row(functools.partial(dict, type="string", pattern=source), EITHER | UNSUPPORTED)
    for name, source in {
        "a million times": "^a{1000000}$",
        "up to a million times": "^(ab?){0,1000000}$",
        "a million times and more": "a{1000000}",
        "counts in counts": "((a{1000}){1000}){1000}",
        "counts in counts of classes": "^((([a-z]{1,100} ?){1,100},){1,100};){1,100}$",
        "optional counts in counts": "^(((a?){100}b?){100}c?){100}$",
        "backtracking": "^(a+)+$",
        "backtracking twice": "^((a*)*)*b",
        "backtracking with alternatives": "^(a|a)*(a|b|ab)*c$",
        "subsets": "(a|b)*a(a|b){30}c",
        "subsets of 200": "(a|b)*a(a|b){200}c",
        "four subsets": "^(?=.*a.{20}b)(?=.*c.{21}d)(?=.*e.{22}f)(?!.*g.{23}h)",
        "look-ahead in a loop": "^((?=.*a.{9}b)(?!.*c.{8}d).)*$",
        "look-behind in a loop": "^(.(?<=a.{9}b|c.{8}d))*$",
        "boundaries": r"(\b\w+\b.?){1000}",
        "all of Unicode": r"^[\p{L}\p{N}\p{P}]{1000}[^\p{Lu}]{1000}$",
        "classes of Unicode": "^" + r"\p{L}\P{Lu}" * 300 + "$",
        "groups 20,000 deep": "(" * 20_000 + "a" + ")*" * 20_000,
        "a back reference": r"^(a+)\1$",
    }.items()
}

STRINGS = {
    "20 patterns at once": Row(
        lambda: {"type": "string", "allOf": [{"pattern": f"{c}.{{{i}}}{d}"} for i, (c, d) in enumerate(PAIRS[:20])]},
        EITHER,
    ),
    "20 patterns and none of 20 others": Row(
        lambda: {
            "type": "string",
            "allOf": [{"pattern": c + d, "not": {"pattern": d + c}} for c, d in PAIRS[:20]],
        },
        EITHER,
    ),
    "all formats at once": Row(
        lambda: {
            "type": "string",
            "anyOf": [
                {"format": a, "not": {"format": b}, "maxLength": 300}
                for a in ("idn-email", "iri", "uri-template", "idn-hostname")
                for b in ("date-time", "ipv6", "duration", "json-pointer")
            ],
        },
        EITHER,
    ),
    "all formats and": Row(
        lambda: {
            "type": "string",
            "allOf": [{"format": name} for name in ("iri", "idn-email", "regex", "uri-template")],
        },
        EITHER | EMPTY,
    ),
    "keys of 20 patterns": Row(
        lambda: {
            "propertyNames": {"allOf": [{"pattern": f"{c}.*{d}"} for c, d in PAIRS[:20]]},
            "minProperties": 3,
        },
        EITHER,
    ),
}

NUMBERS = {
    **{
        f"number with {name}": Row(functools.partial(dict, {"type": "number"}, **part), EITHER | EMPTY)
        for name, part in {
            "a bound of 300 digits": {"minimum": 10**300 + 7, "maximum": 10**301},
            "a bound of 3,000 digits": {"minimum": 10**3000},
            "bounds far apart": {"minimum": Decimal("-1e300"), "maximum": Decimal("1e-300")},
            "a multiple of 300 digits": {"multipleOf": 10**300 + 7},
            "a multiple of 18 digits": {"multipleOf": 10**17 + 3},
            "a small multiple of 300 places": {"multipleOf": Decimal("1e-300")},
            "a multiple of 40 digits": {"multipleOf": Decimal("1.2345678901234567890123456789012345678901")},
            "a multiple and bounds": {"multipleOf": 999_999_937, "minimum": 1, "maximum": 10**18},
            "a multiple that none is": {"multipleOf": 999_999_937, "minimum": 1, "maximum": 999_999_936},
            "an exponent of nine digits": {"maximum": Decimal("1e999999999")},
            "a large divisor and small steps": {"multipleOf": Decimal("0.000000007"), "exclusiveMinimum": 0},
        }.items()
    },
    "coprime multiples": Row(
        lambda: {"type": "number", "allOf": [{"multipleOf": Decimal(n) / 1000} for n in (7, 11, 13, 17, 19, 23, 29)]},
        EITHER,
    ),
    "coprime multiples beyond the limit": Row(
        lambda: {"type": "number", "allOf": [{"multipleOf": n} for n in PRIMES]}, TOO_LARGE
    ),
    "none of coprime multiples": Row(
        lambda: {"type": "integer", "allOf": [{"not": {"multipleOf": n}} for n in PRIMES]}, EITHER
    ),
    "none of coprime multiples in a range": Row(
        lambda: {
            "type": "integer",
            "minimum": 2,
            "maximum": 10**12,
            "allOf": [{"not": {"multipleOf": n}} for n in (2, *PRIMES)],
        },
        EITHER,
    ),
    "one of coprime multiples": Row(
        lambda: {"type": "integer", "oneOf": [{"multipleOf": n} for n in PRIMES[:8]]}, EITHER
    ),
    "a draft 4 integer of a large multiple": Row(
        lambda: {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "not": {"type": "integer"},
            "multipleOf": 99_991,
        },
        EITHER,
    ),
}

PRIMES = [n for n in range(3, 80) if all(n % d for d in range(2, n))]

REFERENCES = {
    "without progress": Row(lambda: {"$ref": "#"}, UNSUPPORTED),
    "without progress by three": Row(
        lambda: {
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/c"}]}, "c": {"$ref": "#/$defs/a"}},
            "$ref": "#/$defs/a",
        },
        UNSUPPORTED,
    ),
    "without progress through if": Row(
        lambda: {"$defs": {"a": {"if": {"$ref": "#/$defs/a"}, "then": {"type": "null"}}}, "$ref": "#/$defs/a"},
        UNSUPPORTED,
        "/$defs/a",
    ),
    "a chain of 100,000": Row(lambda: chain(100_000, lambda next_: next_, {"type": "integer"}), COMPILED),
    "a chain of 100,000 allOfs": Row(
        lambda: chain(100_000, lambda next_: {"allOf": [next_]}, {"type": "integer"}), TOO_LARGE, "/$defs/"
    ),
    "a chain of 100,000 properties": Row(
        lambda: chain(100_000, lambda next_: has("a", next_), {"type": "integer"}), TOO_LARGE, "/$defs/"
    ),
    "a loop of 20,000 properties": Row(
        lambda: chain(20_000, lambda next_: {"properties": {"a": next_}}, {"$ref": "#/$defs/d0"}), EITHER
    ),
    "twice the next, 40 times": Row(
        lambda: chain(40, lambda next_: {"allOf": [next_, next_]}, {"type": "integer"}), COMPILED
    ),
    "two of the next, 40 times": Row(
        lambda: chain(40, lambda next_: {"properties": {"a": next_, "b": next_}}, {"type": "integer"}), COMPILED
    ),
    "two of the next or the one after, 40 times": Row(
        lambda: chain(40, lambda next_: {"oneOf": [has("a", next_), has("b", next_)]}, {"type": "integer"}), EITHER
    ),
    "not twice the next, 40 times": Row(
        lambda: chain(40, lambda next_: {"not": {"properties": {"a": next_, "b": next_}}}, {"type": "integer"}), EITHER
    ),
    "arrays of different conditions on the same": Row(
        lambda: {
            "$defs": {"t": {"properties": {"c": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}},
            "allOf": [
                {"$ref": "#/$defs/t"},
                {
                    "$defs": {"u": {"properties": {"c": {"items": {"$ref": "#/allOf/1/$defs/u"}}}, "required": ["c"]}},
                    "$ref": "#/allOf/1/$defs/u",
                },
            ],
        },
        EITHER | EMPTY,
    ),
    "conjunctions of loops of coprime length": Row(
        lambda: {
            "$defs": {
                f"l{n}": nested(n, lambda inner: {"properties": {"a": inner}}, {"$ref": f"#/$defs/l{n}"})
                for n in (7, 11, 13, 17, 19)
            },
            "allOf": [{"$ref": f"#/$defs/l{n}"} for n in (7, 11, 13, 17, 19)],
        },
        EITHER,
    ),
    "subsets of recursive definitions": Row(
        lambda: {
            "$defs": {
                f"s{i}": {
                    "properties": {
                        "a": {"allOf": [{"$ref": f"#/$defs/s{(i + 1) % 24}"}, {"$ref": f"#/$defs/s{i * 5 % 24}"}]}
                    }
                }
                for i in range(24)
            },
            "$ref": "#/$defs/s1",
        },
        EITHER,
    ),
    "dynamicRef loop": Row(lambda: {"$dynamicAnchor": "node", "allOf": [{"$dynamicRef": "#node"}]}, UNSUPPORTED),
    "dynamicRef through 200 resources": Row(
        lambda: {
            "$id": "http://example.com/root",
            "$ref": "http://example.com/r0",
            "$defs": {
                f"r{i}": {
                    "$id": f"http://example.com/r{i}",
                    "$dynamicAnchor": f"node{i}",
                    "properties": {
                        "next": {"$ref": f"http://example.com/r{(i + 1) % 200}"},
                        "jump": {"$ref": f"http://example.com/r{i * 7 % 200}"},
                        "self": {"$dynamicRef": f"#node{i}"},
                    },
                }
                for i in range(200)
            },
        },
        EITHER,
    ),
    "recursiveRef loop": Row(
        lambda: {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "anyOf": [{"$recursiveRef": "#"}, {"type": "null"}],
        },
        UNSUPPORTED,
    ),
    "the meta-schema, unevaluated": Row(
        lambda: {"$ref": "https://json-schema.org/draft/2020-12/schema", "unevaluatedProperties": False}, EITHER
    ),
    "the meta-schema, negated": Row(
        lambda: {"not": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}, EITHER | UNSUPPORTED
    ),
    "a pointer of 100,000 steps": Row(lambda: {"$ref": "#" + "/a" * 100_000}, SYNTAX),
    "a reference of 5 MB": Row(lambda: {"$ref": "#/$defs/" + "%41" * 1_700_000}, SYNTAX),
    "a reference to nowhere": Row(lambda: {"$ref": "http://example.com/" + "a/../" * 100_000}, UNSUPPORTED),
}

MALFORMED = {
    "an invalid pattern": Row(lambda: {"items": {"pattern": "(["}}, SYNTAX, "/items/pattern"),
    "an invalid pattern of names": Row(lambda: {"patternProperties": {"*": {}}}, SYNTAX, "/patternProperties"),
    "NaN": Row(lambda: {"minimum": float("nan")}, SYNTAX, "/minimum"),
    "NaN as text": Row(lambda: '{"const": NaN}', SYNTAX),
    "infinity": Row(lambda: {"const": float("inf")}, SYNTAX, "/const"),
    "infinity in the text": Row(lambda: '{"maximum": -Infinity}', SYNTAX),
    "bytes": Row(lambda: {"const": b"a"}, SYNTAX, "/const"),
    "bytes as a schema": Row(lambda: {"items": b"{}"}, SYNTAX, "/items"),
    "bytes as a keyword": Row(lambda: {b"type": "string"}, SYNTAX | COMPILED),
    "a set": Row(lambda: {"enum": {1, 2}}, SYNTAX, "/enum"),
    "numbers as keys": Row(lambda: {"properties": {1: {"type": "string"}}}, SYNTAX, "/properties"),
    "numbers as keys of a constant": Row(lambda: {"const": {1: 2}}, SYNTAX, "/const"),
    "unhashable names": Row(lambda: {"required": [["a"]]}, SYNTAX, "/required"),
    "a cycle of objects": Row(cyclic, COMPILED | TOO_LARGE | SYNTAX),
    "a constant that holds itself": Row(cyclic_constant, TOO_LARGE, "/const"),
    "a lone surrogate": Row(lambda: {"enum": ["\ud800", "a"]}, COMPILED),
    "nothing but a lone surrogate": Row(lambda: {"const": "\ud800"}, EMPTY | UNSUPPORTED),
    "a lone surrogate as a key": Row(lambda: {"properties": {"\udfff": True}}, COMPILED),
    "a lone surrogate as a required key": Row(lambda: {"type": "object", **has("\udfff")}, EMPTY),
    "a lone surrogate in a pattern": Row(lambda: {"type": "string", "pattern": "\ud800"}, EMPTY | SYNTAX | UNSUPPORTED),
    "a lone surrogate in a pattern of names": Row(
        lambda: {"patternProperties": {"\ud800": {"type": "null"}}}, COMPILED | SYNTAX | UNSUPPORTED
    ),
    "a lone surrogate in a reference": Row(lambda: {"$ref": "#/$defs/\ud800"}, SYNTAX),
    "a lone surrogate in an identifier": Row(lambda: {"$id": "http://\ud800/", "const": 1}, COMPILED | SYNTAX),
    "an address that is none": Row(lambda: {"$id": "http://[", "$ref": "//]["}, SYNTAX),
    "an address of a port that is none": Row(lambda: {"$ref": "http://a:b:c/["}, SYNTAX | UNSUPPORTED),
    "a null byte": Row(lambda: has("\0", {"const": "\0"}), COMPILED),
    "null bytes in a pattern": Row(lambda: {"type": "string", "pattern": "\0" * 1000}, COMPILED),
    "duplicated keys": Row(
        lambda: '{"type": "string", "type": "integer", "minLength": 3, "minLength": 2}', COMPILED | SYNTAX
    ),
    "text that is no JSON": Row(lambda: "{'type': 'string'}", SYNTAX),
    "a byte order mark": Row(lambda: "\ufeff{}", SYNTAX),
    "an empty text": Row(lambda: "", SYNTAX),
    "a number": Row(lambda: "3", SYNTAX),
    "None": Row(lambda: None, SYNTAX),
    "random characters": Row(lambda: "".join(random.Random(1).choices(string.printable, k=100_000)), SYNTAX),
}

ROWS: dict[str, Row] = {
    f"{table}: {name}": row
    for table, rows in {
        "combinations": COMBINATIONS,
        "combinations in any order": {
            name: row._replace(options={"property_order": "any"})
            for name, row in COMBINATIONS.items()
            if name.startswith(("allOf", "dependent", "if", "not", "unevaluatedProperties"))
        },
        "documents": DOCUMENTS,
        "enums": ENUMS,
        "counts": COUNTS,
        "patterns": PATTERNS,
        "strings": STRINGS,
        "numbers": NUMBERS,
        "references": REFERENCES,
        "malformed": MALFORMED,
    }.items()
    for name, row in rows.items()
}
