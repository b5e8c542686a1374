"""What is no schema, or no JSON."""

from __future__ import annotations

import random
import string
from typing import Any

from json_schema.hostile_schemas.row import COMPILED, EMPTY, SYNTAX, TOO_LARGE, UNSUPPORTED, Row, has


def cyclic() -> Any:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


def cyclic_constant() -> Any:
    value: list[Any] = []
    value.append(value)
    return {"const": value}


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
