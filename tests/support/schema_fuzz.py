"""Random schemas and instances, judged by the constraint and by two validators; disagreements made small.

Schemas are drawn over the whole keyword set with small alphabets, so that keywords meet. Instances are drawn freely,
generated from the constraint itself, and mutated from those.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jsonschema
import jsonschema_rs

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import ConstraintError, ConstraintSyntaxError, UnsatisfiableConstraint
from support.property_order import Order
from support.random_text import random_byte

DRAFTS: dict[str, tuple[Any, Any]] = {
    "https://json-schema.org/draft/2020-12/schema": (
        jsonschema.Draft202012Validator,
        jsonschema_rs.Draft202012Validator,
    ),
    "https://json-schema.org/draft/2019-09/schema": (
        jsonschema.Draft201909Validator,
        jsonschema_rs.Draft201909Validator,
    ),
    "http://json-schema.org/draft-07/schema#": (jsonschema.Draft7Validator, jsonschema_rs.Draft7Validator),
    "http://json-schema.org/draft-04/schema#": (jsonschema.Draft4Validator, jsonschema_rs.Draft4Validator),
}
CURRENT, DRAFT2019, DRAFT7, DRAFT4 = DRAFTS
LONG_NUMBER = re.compile(rb"[0-9][eE]|[0-9]{8}")
"""Numbers that validators, which compute with floats, may judge wrongly."""
KEYS = ["a", "b", "ab", "c"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 1.5, 0.3, -3, 10, "", "a", "ab", "b1", "ba", "2024-02-29", "1.2.3.4"]
PATTERNS = ["a", "^a", "b$", "^[ab]+$", "[0-9]", "^(?!a)", "^(a|b)?$", "\\d{2}", "^\\w{1,2}$"]
FORMATS = {DRAFT4: ["ipv4"], DRAFT7: ["ipv4", "date"]}
LATER_FORMATS = ["ipv4", "date", "uuid", "no-such-format"]
"""By draft: validators assert those that the draft defines."""


class Disagreement(NamedTuple):
    """One instance on which the constraint and both validators differ."""

    seed: int
    schema: Any
    order: str
    text: str
    accepted: bool

    def __str__(self) -> str:
        verdict = "accepted" if self.accepted else "refused"
        return f"seed {self.seed}, order {self.order}: {verdict} {self.text} under {json.dumps(self.schema)}"


def draw_value(random_: random.Random, depth: int = 2) -> Any:
    kind = random_.random()
    if depth == 0 or kind < 0.55:
        return random_.choice(SCALARS)
    if kind < 0.75:
        return [draw_value(random_, depth - 1) for _ in range(random_.randrange(4))]
    return {key: draw_value(random_, depth - 1) for key in random_.sample(KEYS, random_.randrange(4))}


def mutated(random_: random.Random, value: Any) -> Any:
    """The value with one part changed, removed or added."""
    value = copy.deepcopy(value)
    if isinstance(value, list) and value and random_.random() < 0.8:
        at = random_.randrange(len(value))
        action = random_.random()
        if action < 0.4:
            value[at] = mutated(random_, value[at])
        elif action < 0.7:
            value.insert(at, random_.choice([value[at], draw_value(random_, 1)]))
        else:
            del value[at]
        return value
    if isinstance(value, dict) and random_.random() < 0.8:
        if value and random_.random() < 0.6:
            key = random_.choice(list(value))
            if random_.random() < 0.5:
                value[key] = mutated(random_, value[key])
            else:
                del value[key]
        else:
            value[random_.choice(KEYS)] = draw_value(random_, 1)
        return value
    return draw_value(random_, 1)


class Drawer:
    """Draws schemas of one draft."""

    def __init__(self, random_: random.Random, draft: str) -> None:
        self._random = random_
        self._draft = draft

    def root(self) -> Any:
        """A whole schema, with something to refer to."""
        schema = self.schema(3)
        if not isinstance(schema, dict):
            return {"$schema": self._draft, "allOf": [self._yes_or_no(schema)]}
        shared = self._random.choice(
            [
                {"type": "string"},
                {"minimum": 1},
                {"required": ["a"]},
                {"items": {"$ref": "#"}},
                {"properties": {"a": {"$ref": "#/definitions/shared"}}, "maxProperties": 2},
            ]
        )
        return {"$schema": self._draft, **schema, "definitions": {"shared": shared}}

    def _yes_or_no(self, value: Any) -> Any:
        if self._draft == DRAFT4:
            return {} if value else {"not": {}}
        return value

    def schema(self, depth: int) -> Any:
        random_ = self._random
        if depth == 0 or random_.random() < 0.1:
            leaf = random_.choice([True, False, {"type": "string"}, {"type": "integer"}, {"enum": [1]}, {}])
            return self._yes_or_no(leaf) if isinstance(leaf, bool) else leaf
        schema: dict[str, Any] = {}
        for _ in range(random_.randrange(1, 4)):
            schema.update(random_.choice(self._options(depth - 1))())
        return schema

    def _options(self, depth: int) -> list[Callable[[], dict[str, Any]]]:
        random_ = self._random

        def sub() -> Any:
            return self.schema(depth)

        def names(count: int) -> list[str]:
            return random_.sample(KEYS, random_.randrange(1, count + 1))

        def few(low: int = 1, high: int = 3) -> list[Any]:
            return [sub() for _ in range(random_.randrange(low, high + 1))]

        types = ["null", "boolean", "integer", "number", "string", "array", "object"]
        options: list[Callable[[], dict[str, Any]]] = [
            lambda: {"type": random_.choice(types)},
            lambda: {"type": random_.sample(types, 2)},
            lambda: {"type": "object", "properties": {name: sub() for name in names(3)}},
            lambda: {"properties": {name: sub() for name in names(3)}, "required": names(2)},
            lambda: {"patternProperties": {random_.choice(PATTERNS): sub()}},
            lambda: {"additionalProperties": sub()},
            lambda: {"minProperties": random_.randrange(3)},
            lambda: {"maxProperties": random_.randrange(3)},
            lambda: {"type": "array", "items": sub()},
            lambda: {"items": sub()},
            lambda: {"minItems": random_.randrange(3)},
            lambda: {"maxItems": random_.randrange(3)},
            lambda: {"uniqueItems": True},
            lambda: {"minimum": random_.choice([0, 1, 1.5])},
            lambda: {"maximum": random_.choice([1, 2, 10])},
            lambda: {"multipleOf": random_.choice([1, 2, 0.5])},
            lambda: {"minLength": random_.randrange(3)},
            lambda: {"maxLength": random_.randrange(3)},
            lambda: {"pattern": random_.choice(PATTERNS)},
            lambda: {"format": random_.choice(FORMATS.get(self._draft, LATER_FORMATS))},
            lambda: {"enum": [draw_value(random_) for _ in range(3)]},
            lambda: {"allOf": few(1, 2)},
            lambda: {"anyOf": few(1, 2)},
            lambda: {"oneOf": few(2, 3)},
            lambda: {"not": sub()},
            lambda: {"$ref": random_.choice(["#/definitions/shared", "#/definitions/shared", "#"])},
        ]
        if self._draft == DRAFT4:
            options += [lambda: {"minimum": 1, "exclusiveMinimum": random_.random() < 0.5}]
        else:
            options += [
                lambda: {"propertyNames": random_.choice([{"pattern": "a"}, {"maxLength": 1}, {"enum": ["a", "b"]}])},
                lambda: {"contains": sub()},
                lambda: {"exclusiveMaximum": random_.choice([1, 2])},
                lambda: {"const": draw_value(random_)},
                lambda: {"if": sub(), "then": sub(), "else": sub()},
            ]
        if self._draft in (DRAFT4, DRAFT7):
            options += [
                lambda: {"dependencies": {random_.choice(KEYS): random_.choice([sub(), names(2)])}},
                lambda: {"items": few(), "additionalItems": sub()},
            ]
        else:
            options += [
                lambda: {"dependentRequired": {random_.choice(KEYS): names(2)}},
                lambda: {"dependentSchemas": {random_.choice(KEYS): sub()}},
                lambda: {"contains": sub(), "minContains": random_.randrange(3)},
                lambda: {"contains": sub(), "maxContains": random_.randrange(1, 3)},
                lambda: {"unevaluatedProperties": sub()},
            ]
        if self._draft == CURRENT:
            # In 2019-09 both validators take what contains matches for evaluated, which that draft does not say.
            options += [lambda: {"prefixItems": few()}, lambda: {"unevaluatedItems": sub()}]
        if self._draft == DRAFT2019:
            options.append(lambda: {"items": few(), "additionalItems": sub()})
        return options


class Judges:
    """Both validators of a schema; a verdict only where they agree."""

    def __init__(self, schema: Any) -> None:
        python, rust = DRAFTS[schema["$schema"]]
        self._python = python(schema, format_checker=python.FORMAT_CHECKER)
        self._rust = rust(schema, validate_formats=True)

    def valid(self, instance: Any) -> bool | None:
        try:
            verdicts = {bool(self._python.is_valid(instance)), bool(self._rust.is_valid(instance))}
        except (RecursionError, TypeError, ValueError):  # jsonschema fails on "items": false beside additionalItems
            return None
        return verdicts.pop() if len(verdicts) == 1 else None


def compiled(schema: Any, order: Any, vocabulary: _core.Vocabulary) -> _core.Compiled | None:
    """The constraint, None if nothing satisfies it; other refusals raise ConstraintError."""
    builder = _core.Builder(vocabulary)
    try:
        return builder.compile(JsonSchema(schema, property_order=order).lower(builder))
    except UnsatisfiableConstraint:
        return None
    except ConstraintError:
        raise
    except _core.ConstraintTooLargeError as error:
        raise ConstraintError(str(error)) from error
    except ValueError:  # the language is empty
        return None


def accepts(constraint: _core.Compiled | None, text: str) -> bool:
    if constraint is None:
        return False
    matcher = constraint.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_complete


def words(constraint: _core.Compiled, random_: random.Random, count: int) -> Iterator[bytes]:
    """Words of a constraint: random walks that prefer to close. Fails at a dead end."""
    for _ in range(count):
        matcher = constraint.matcher()
        text = bytearray()
        while not (matcher.is_complete and (len(text) > 40 or random_.random() < 0.5)):
            allowed = matcher.next_bytes()
            if not allowed:
                assert matcher.is_complete, f"dead end after {bytes(text)!r}"
                break
            byte = random_byte(allowed, random_, closing=0.4)
            assert matcher.accept_bytes(bytes([byte]))
            text.append(byte)
            if len(text) > 2_000:
                break
        else:
            if not LONG_NUMBER.search(text):
                yield bytes(text)


def judge(seed: int, vocabulary: _core.Vocabulary) -> tuple[bool, list[Disagreement]]:
    """(whether the schema of a seed compiled, what the constraint and the validators disagree on).

    Raises:
        AssertionError: a dead end.
        ConstraintSyntaxError: the compiler cannot read a schema that is well-formed.
    """
    random_ = random.Random(seed)
    drawer = Drawer(random_, random_.choices(list(DRAFTS), [5, 1, 2, 1])[0])
    schema = drawer.root()
    found: list[Disagreement] = []
    free = [draw_value(random_) for _ in range(20)]
    made = False
    for order in ("any", "schema"):
        try:
            constraint = compiled(schema, order, vocabulary)
        except ConstraintSyntaxError:
            raise
        except ConstraintError:
            continue
        made = True
        judges = Judges(schema)
        own = [json.loads(word) for word in words(constraint, random_, 4)] if constraint is not None else []
        for instance in [*free, *own, *[mutated(random_, value) for value in own for _ in range(3)]]:
            valid = judges.valid(instance)
            if valid is None:
                continue
            if order == "any" or not valid:
                texts = [json.dumps(instance)]
            else:
                texts = [json.dumps(value) for value in documented(schema, instance)]
            if valid != any(accepts(constraint, text) for text in texts):
                found.append(Disagreement(seed, schema, order, texts[0], not valid))
    return made, found


def documented(schema: Any, instance: Any) -> list[Any]:
    """A valid instance in the orders that the documentation allows it; the constraint must accept one."""
    readings = [(together, inside) for together in (False, True) for inside in (True, False)]
    return [Order(schema, together=together, inside=inside).of(instance) for together, inside in readings]


def disagrees(schema: Any, order: str, instance: Any, accepted: bool, vocabulary: _core.Vocabulary) -> bool:
    """Whether the constraint still judges an instance so, and the validators otherwise."""
    try:
        valid = Judges(schema).valid(instance)
        constraint = compiled(schema, order, vocabulary)
        if valid is None or valid == accepted:
            return False
        instances = [instance]
        if order == "schema" and valid:
            instances = documented(schema, instance)
        return any(accepts(constraint, json.dumps(value)) for value in instances) == accepted
    except Exception:  # a step that leaves the schema malformed is no step
        return False


def shrunk(found: Disagreement, vocabulary: _core.Vocabulary) -> Disagreement:
    """The disagreement with everything removed that it does not need."""
    schema, instance = found.schema, json.loads(found.text)
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(schema):
            if disagrees(candidate, found.order, instance, found.accepted, vocabulary):
                schema, smaller = candidate, True
                break
        for value in _smaller(instance):
            if disagrees(schema, found.order, value, found.accepted, vocabulary):
                instance, smaller = value, True
                break
    return found._replace(schema=schema, text=json.dumps(instance))


def _smaller(value: Any) -> Iterator[Any]:
    """Values with one part removed, or replaced by one of its own parts."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$schema":
                continue
            rest = {other: part for other, part in value.items() if other != key}
            yield rest
            for part in _smaller(item):
                yield {**value, key: part}
            if isinstance(item, dict) and item:
                yield {**value, key: {}}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield value[:at] + value[at + 1 :]
            for part in _smaller(item):
                yield [*value[:at], part, *value[at + 1 :]]
