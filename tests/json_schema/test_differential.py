"""Random schemas and instances: what the constraint accepts against what the jsonschema validator accepts.

The schemas are drawn over the whole keyword set with small alphabets, so that keywords meet. A schema may be refused
with an error; what compiles must agree on every random value, and whatever the constraint generates must be valid.
"""

from __future__ import annotations

import json
import os
import random
import re
from typing import Any

import pytest

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import ConstraintError, ConstraintSyntaxError, UnsatisfiableConstraint

LONG_NUMBER = re.compile(rb"[0-9][eE]|[0-9]{8}")
"""Numbers that the validator, which computes with floats, may judge wrongly."""
ROUNDS = int(os.environ.get("GRAMMASK_FUZZ_ROUNDS", "100"))
KEYS = ["a", "b", "ab", "c"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 1.5, -3, "", "a", "ab", "b1"]
PATTERNS = ["a", "^a", "b$", "^[ab]+$", "[0-9]"]


def draw_value(random_: random.Random, depth: int = 2) -> Any:
    kind = random_.random()
    if depth == 0 or kind < 0.55:
        return random_.choice(SCALARS)
    if kind < 0.75:
        return [draw_value(random_, depth - 1) for _ in range(random_.randrange(4))]
    return {key: draw_value(random_, depth - 1) for key in random_.sample(KEYS, random_.randrange(4))}


def draw_schema(random_: random.Random, depth: int = 3) -> Any:
    if depth == 0 or random_.random() < 0.1:
        return random_.choice([True, False, {"type": "string"}, {"type": "integer"}, {"const": 1}, {}])
    schema: dict[str, Any] = {}
    for _ in range(random_.randrange(1, 4)):
        schema.update(draw_keyword(random_, depth - 1))
    return schema


def draw_keyword(random_: random.Random, depth: int) -> dict[str, Any]:
    def sub() -> Any:
        return draw_schema(random_, depth)

    def names(count: int) -> list[str]:
        return random_.sample(KEYS, random_.randrange(1, count + 1))

    def few(low: int = 1, high: int = 3) -> list[Any]:
        return [sub() for _ in range(random_.randrange(low, high + 1))]

    types = ["null", "boolean", "integer", "number", "string", "array", "object"]
    options: list[Any] = [
        lambda: {"type": random_.choice(types)},
        lambda: {"type": random_.sample(types, 2)},
        lambda: {"type": "object", "properties": {name: sub() for name in names(3)}},
        lambda: {"properties": {name: sub() for name in names(3)}, "required": names(2)},
        lambda: {"patternProperties": {random_.choice(PATTERNS): sub()}},
        lambda: {"additionalProperties": sub()},
        lambda: {"propertyNames": random_.choice([{"pattern": "a"}, {"maxLength": 1}, {"enum": ["a", "b"]}])},
        lambda: {"minProperties": random_.randrange(3)},
        lambda: {"maxProperties": random_.randrange(3)},
        lambda: {"dependentRequired": {random_.choice(KEYS): names(2)}},
        lambda: {"dependentSchemas": {random_.choice(KEYS): sub()}},
        lambda: {"type": "array", "items": sub()},
        lambda: {"prefixItems": few()},
        lambda: {"items": sub()},
        lambda: {"contains": sub(), "minContains": random_.randrange(3)},
        lambda: {"contains": sub(), "maxContains": random_.randrange(1, 3)},
        lambda: {"minItems": random_.randrange(3)},
        lambda: {"maxItems": random_.randrange(3)},
        lambda: {"minimum": random_.choice([0, 1, 1.5])},
        lambda: {"exclusiveMaximum": random_.choice([1, 2])},
        lambda: {"multipleOf": random_.choice([1, 2, 0.5])},
        lambda: {"minLength": random_.randrange(3)},
        lambda: {"maxLength": random_.randrange(3)},
        lambda: {"pattern": random_.choice(PATTERNS)},
        lambda: {"enum": [draw_value(random_) for _ in range(3)]},
        lambda: {"const": draw_value(random_)},
        lambda: {"allOf": few(1, 2)},
        lambda: {"anyOf": few(1, 2)},
        lambda: {"oneOf": few(2, 3)},
        lambda: {"not": sub()},
        lambda: {"if": sub(), "then": sub(), "else": sub()},
        lambda: {"unevaluatedProperties": sub()},
        lambda: {"unevaluatedItems": sub()},
        lambda: {"$ref": "#/$defs/shared"},
    ]
    drawn: dict[str, Any] = random_.choice(options)()
    return drawn


def words(compiled: _core.Compiled, random_: random.Random, count: int) -> list[bytes]:
    """Words of the constraint: random walks that prefer to close."""
    found = []
    for _ in range(count):
        matcher = compiled.matcher()
        text = bytearray()
        while not (matcher.is_complete and (len(text) > 40 or random_.random() < 0.5)):
            allowed = matcher.next_bytes()
            assert allowed or matcher.is_complete, f"dead end after {bytes(text)!r}"
            if not allowed:
                break
            closing = [byte for byte in allowed if byte in b'"]}']
            printable = [byte for byte in allowed if 0x21 <= byte < 0x7F and byte != 0x5C]
            byte = random_.choice(closing if closing and random_.random() < 0.4 else printable or list(allowed))
            assert matcher.accept_bytes(bytes([byte]))
            text.append(byte)
            if len(text) > 2_000:
                break
        else:
            if not LONG_NUMBER.search(text):
                found.append(bytes(text))
    return found


@pytest.mark.parametrize("part", range(4))
def test_random_schemas_agree_with_a_validator(byte_vocabulary: _core.Vocabulary, part: int) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    compiled_count = 0
    for seed in range(part * ROUNDS, (part + 1) * ROUNDS):
        random_ = random.Random(seed)
        schema = draw_schema(random_)
        if isinstance(schema, dict):
            schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
            schema["$defs"] = {"shared": random_.choice([{"type": "string"}, {"minimum": 1}, {"required": ["a"]}])}
        validator = jsonschema.Draft202012Validator(schema)
        instances = [draw_value(random_) for _ in range(25)]
        builder = _core.Builder(byte_vocabulary)
        try:
            compiled = builder.compile(JsonSchema(schema, property_order="any").lower(builder))
        except UnsatisfiableConstraint:
            assert not any(validator.is_valid(instance) for instance in instances), f"seed {seed}: {schema}"
            continue
        except ConstraintSyntaxError:
            raise
        except (ConstraintError, _core.ConstraintTooLargeError):
            continue
        except ValueError:  # the language is empty
            assert not any(validator.is_valid(instance) for instance in instances), f"seed {seed}: {schema}"
            continue
        compiled_count += 1
        for instance in instances:
            matcher = compiled.matcher()
            accepted = matcher.accept_bytes(json.dumps(instance).encode()) and matcher.is_complete
            assert accepted == validator.is_valid(instance), f"seed {seed}: {instance!r} under {schema}"
        for word in words(compiled, random_, 3):
            assert validator.is_valid(json.loads(word)), f"seed {seed}: generated {word!r} under {schema}"
    assert compiled_count > ROUNDS // 2
