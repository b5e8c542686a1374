"""Arrays whose items are compared with each other and counted: uniqueItems beside contains, negated, in alternatives.

Random schemas are judged by jsonschema on every array of at most three items over a few texts, of which some are other
spellings of the same value; and random texts that the constraint generates must end, and be valid.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from grammask import _core
from support.random_text import random_text
from support.schema_fuzz import LONG_NUMBER, compiled

TEXTS = ["0", "1", "1.0", '"a"', "null", "[1]", '{"x":1,"y":2}', '{"y":2,"x":1}']
VALUES = [json.loads(text) for text in TEXTS]
SEEDS = range(60 * int(os.environ.get("GRAMMASK_EXAMPLES", "1")))
WALKS = 4
LONG = 60


class Schemas:
    """Random schemas of arrays."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def item(self) -> Any:
        random_ = self._random
        return random_.choice(
            [
                lambda: {"enum": random_.sample(VALUES, random_.randint(1, 3))},
                lambda: {"type": random_.sample(["integer", "string", "null", "object", "array"], 2)},
                lambda: {"not": {"enum": random_.sample(VALUES, 2)}},
                lambda: True,
            ]
        )()

    def array(self) -> dict[str, Any]:
        random_ = self._random
        found: dict[str, Any] = {"type": "array"}
        options = [
            lambda: {"items": self.item()},
            lambda: {"items": {"enum": random_.sample(VALUES, 4)}},
            lambda: {"prefixItems": [self.item() for _ in range(random_.randint(1, 2))]},
            lambda: {"contains": self.item(), "minContains": random_.randint(0, 2)},
            lambda: {"contains": self.item(), "maxContains": random_.randint(1, 2)},
            lambda: {"maxItems": random_.randint(1, 3)},
            lambda: {"minItems": random_.randint(1, 3)},
            lambda: {"uniqueItems": True},
        ]
        for option in random_.sample(options, random_.randint(2, 4)):
            found.update(option())
        return found

    def schema(self) -> dict[str, Any]:
        random_, array = self._random, self.array
        schema = array()
        kind = random_.choice(["plain", "not", "oneOf", "anyOf"])
        if kind == "plain":
            return {**schema, "uniqueItems": True, "contains": self.item()}
        if kind == "not":
            return {**schema, "not": {**array(), "uniqueItems": True}}
        return {kind: [schema, {**array(), "uniqueItems": True}]}


def instances() -> Iterator[tuple[str, Any, bool]]:
    """Texts of arrays, their values, and whether equal items are spelled alike."""
    for length in range(4):
        for chosen in itertools.product(range(len(TEXTS)), repeat=length):
            texts = {TEXTS[i] for i in chosen}
            alike = not ({"1", "1.0"} <= texts or {'{"x":1,"y":2}', '{"y":2,"x":1}'} <= texts)
            yield "[" + ",".join([TEXTS[i] for i in chosen]) + "]", [VALUES[i] for i in chosen], alike


INSTANCES = list(instances())


@pytest.mark.parametrize("seed", SEEDS)
def test_small_arrays_are_judged_as_by_jsonschema(byte_vocabulary: _core.Vocabulary, seed: int) -> None:
    schema = Schemas(seed).schema()
    validator = jsonschema.Draft202012Validator(schema)
    constraint = compiled(schema, "any", byte_vocabulary)
    for text, value, alike in INSTANCES:
        accepted = False
        if constraint is not None:
            matcher = constraint.matcher()
            accepted = matcher.accept_bytes(text.encode()) and matcher.is_complete
        if validator.is_valid(value):
            # Where an item must be one of the earlier ones again, objects may have to be spelled as they were.
            assert accepted or not alike, (schema, text)
        else:
            assert not accepted, (schema, text)
    random_ = random.Random(seed)
    for _ in range(WALKS if constraint is not None else 0):
        # There is a completion once there is one that repeats no object.
        written = random_text(constraint.matcher(), random_, long=LONG, longest=10 * LONG)
        if not LONG_NUMBER.search(written):
            assert validator.is_valid(json.loads(written)), (schema, written)
