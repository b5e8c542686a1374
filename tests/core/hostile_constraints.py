"""Patterns, grammars, lists and compositions made to hurt, as data: each is to be answered within time and memory."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import grammask
from grammask import Choice, Constraint, Grammar, Regex

COMPILED = frozenset({"compiled"})
TOO_LARGE = frozenset({"ConstraintTooLarge"})
EITHER = COMPILED | TOO_LARGE
UNSUPPORTED = frozenset({"UnsupportedConstraint"})
SYNTAX = frozenset({"ConstraintSyntaxError"})


class Row(NamedTuple):
    """A text, what makes a constraint of it, and how that may be answered."""

    make: Callable[[], Any]
    kind: Callable[[Any], Constraint]
    answers: frozenset[str] = EITHER
    place: str = ""
    json: bool = False

    def constraint(self, made: Any) -> Constraint:
        return self.kind(made)


def word(i: int) -> str:
    return f"{i * 2654435761 % 2**32:x}" * (1 + i % 5)


PATTERNS = {
    name: Row(make, Regex)
    for name, make in {
        "5 MB of letters": lambda: "abcde" * 1_000_000,
        "5 MB of classes": lambda: "[a-z]\\d" * 800_000,
        "5 MB of groups": lambda: "(a)" * 1_700_000,
        "5 MB of alternatives": lambda: "|".join(word(i) for i in range(300_000)),
        "5 MB of look-aheads": lambda: "(?=a)" * 1_000_000,
        "5 MB of open groups": lambda: "(" * 5_000_000,
        "counts in counts in counts": lambda: "(((a{1000}b?){1000}c?){1000}d?){1000}",
        "optional counts": lambda: "(((a?){1000}){1000}){1000}",
        "subsets of 2,000": lambda: "(a|b)*a(a|b){2000}c",
        "five hundred subsets": lambda: (
            ".*("
            + "|".join(
                f"{a}{b}.{{{50 + i}}}{b}" for i, (a, b) in enumerate(zip("abcde" * 100, "vwxyz" * 100, strict=True))
            )
            + ")"
        ),
        "five subsets at once": lambda: "".join(f"(?=.*{a}.{{{20 + i}}}{a})" for i, a in enumerate("abcde")) + ".*",
        "Unicode, negated and counted": lambda: r"([^\p{L}]{500}\P{N}{500}){500}",
        "any case": lambda: "(?i:" + "straßeſKÅ" * 20_000 + ")",
    }.items()
}
PATTERNS["5 MB of open groups"] = PATTERNS["5 MB of open groups"]._replace(answers=SYNTAX | TOO_LARGE)

GBNF = {
    name: Row(make, Grammar.gbnf, answers)
    for name, (make, answers) in {
        "5 MB of rules": (
            lambda: "root ::= r0\n" + "\n".join(f'r{i} ::= "a" r{i + 1}' for i in range(150_000)) + '\nr150000 ::= "b"',
            EITHER,
        ),
        "5 MB in one literal": (lambda: 'root ::= "' + "abcde" * 1_000_000 + '"', EITHER),
        "100,000 alternatives": (lambda: "root ::= " + " | ".join(f'"{word(i)}"' for i in range(100_000)), EITHER),
        "groups 100,000 deep": (lambda: "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000, EITHER),
        "each rule twice the next": (
            lambda: (
                "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60)) + '\nr60 ::= "a" | ""'
            ),
            EITHER,
        ),
        "ambiguity everywhere": (lambda: 'root ::= root root root | root root | "a" | ""', COMPILED),
        "a count of a million": (lambda: "root ::= (item){1000000}\nitem ::= [a-z] item?", EITHER),
        "counts in counts": (lambda: 'root ::= a{1000}\na ::= b{1000}\nb ::= ("x" root?){1000}', EITHER),
        "left recursion of a thousand rules": (
            lambda: "root ::= r0\n" + "\n".join(f'r{i} ::= r{(i + 1) % 1000} "a" | "b"' for i in range(1000)),
            EITHER,
        ),
    }.items()
}

LARK = {
    name: Row(make, Grammar.lark, answers)
    for name, (make, answers) in {
        "templates that double": (
            lambda: (
                "start: t0{A}\n"
                + "\n".join(f"t{i}{{x}}: t{i + 1}{{x}} t{i + 1}{{x}}" for i in range(40))
                + '\nt40{x}: x\nA: "a"'
            ),
            EITHER,
        ),
        "templates that grow": (lambda: 'start: t{A}\nt{x}: x | t{pair{x}}\npair{x}: x x\nA: "a"', TOO_LARGE),
        "a terminal of 100,000 words": (
            lambda: "start: W+\nW: " + " | ".join(f'"{word(i)}"' for i in range(100_000)),
            EITHER,
        ),
        "a hostile schema inside": (
            lambda: 'start: %json {"type": "array", "minItems": 1000000, "contains": {"const": 1}}',
            EITHER,
        ),
    }.items()
}

OTHERS = {
    "a choice of a million": Row(lambda: [word(i) for i in range(1_000_000)], Choice),
    "a choice of 5 MB": Row(lambda: ["a" * 5_000_000, "b"], Choice),
    "conjunctions of 20 patterns": Row(
        lambda: [Regex(f".*{chr(97 + i)}.{{{i}}}z.*") for i in range(20)],
        lambda parts: functools.reduce(operator.and_, parts),
    ),
    "complements of complements": Row(
        lambda: 300,
        lambda n: functools.reduce(lambda inner, i: ~(Regex(f"{chr(97 + i % 26)}.*") & inner), range(n), Regex(".*")),
    ),
    "a sequence of 2,000": Row(
        lambda: [Regex("[a-z]"), Regex("[0-9]+")] * 1_000, lambda parts: functools.reduce(operator.add, parts)
    ),
    "repeated a million times": Row(lambda: Regex("(ab?)+,"), lambda part: part.repeat(1_000_000, 1_000_000)),
    "a schema repeated": Row(
        lambda: grammask.JsonSchema({"uniqueItems": True, "minItems": 1_000}), lambda part: part.repeat(1_000, None)
    ),
}

ROWS: dict[str, Row] = {
    f"{table}: {name}": row
    for table, rows in {"patterns": PATTERNS, "gbnf": GBNF, "lark": LARK, "others": OTHERS}.items()
    for name, row in rows.items()
}
