"""Why a valid instance is not in the order of its schema, told from the schema and the instance alone.

The reason is a name that comes too early, by the lists (``properties``, constants) that apply to its object.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from support.property_order import Order, Place

INVERTED = "written the other way round"
"""Every list that has both names has them in the other order: no reading that keeps written orders accepts this."""
UNDECLARED = "undeclared before declared"
"""No list has the first name, nor is it required: additional properties come last."""
UNLISTED = "only required before declared"
"""The first name is required but in no list, the second is in one."""
BETWEEN = "between names of another subschema"
"""No list has both names, and the object has names of either list between those of the other."""
BEHIND = "behind another subschema"
"""No list has both names, and the names of one list come before those of the other, only not in the order read."""
REPEATED = "repeated in another order"
"""Lists that have both names disagree, or the one that is read first has one of them alone."""
REASONS = (INVERTED, UNDECLARED, UNLISTED, BETWEEN, BEHIND, REPEATED)


def reason(schema: Any, instance: Any) -> str | None:
    """The first of REASONS that some object of the instance gives, None if the instance is in the schema's order."""
    found = {kind for place in Order(schema).objects(instance) for kind in _reasons(place)}
    return next((kind for kind in REASONS if kind in found), None)


def _reasons(place: Place) -> set[str]:
    at = {name: position for position, name in enumerate(place.names())}
    placed = place.placed()
    lists = [{name: position for position, name in enumerate(names)} for names in place.written()]
    found = set()
    for first, second in combinations(place.keys, 2):
        if at[first] < at[second]:
            continue
        both = [names for names in lists if first in names and second in names]
        if both:
            found.add(INVERTED if all(names[first] > names[second] for names in both) else REPEATED)
        elif first not in placed:
            found.add(UNDECLARED)
        elif not any(first in names for names in lists):
            found.add(UNLISTED)
        else:
            found.add(_apart(place.keys, [n for n in lists if first in n], [n for n in lists if second in n]))
    return found


def _apart(keys: list[str], firsts: list[dict[str, int]], seconds: list[dict[str, int]]) -> str:
    """How names of lists that share none stand in an object whose keys have a name of the firsts too early."""
    for one in firsts:
        for other in seconds:
            owners = [name in one for name in keys if (name in one) != (name in other)]
            if owners == sorted(owners, reverse=True):
                return BEHIND
    return BETWEEN
