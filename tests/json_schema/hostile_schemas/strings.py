"""Patterns that explode, many patterns at once, formats at once."""

from __future__ import annotations

import functools

from json_schema.hostile_schemas.row import EITHER, EMPTY, PAIRS, UNSUPPORTED, Row

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
