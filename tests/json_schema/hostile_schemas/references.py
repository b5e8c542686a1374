"""References that lead nowhere, around, or to exponentially many places."""

from __future__ import annotations

from json_schema.hostile_schemas.row import (
    COMPILED,
    EITHER,
    EMPTY,
    SYNTAX,
    TOO_LARGE,
    UNSUPPORTED,
    Row,
    chain,
    has,
    nested,
)

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
