"""Which rules are open at the end of a text: grammar, text, and the ways to go on, what was begun first."""

from __future__ import annotations

import pytest

from grammask import ConstraintTooLarge, Grammar, JsonSchema
from grammask.constraints.grammar import open_rules

SUMS = """root ::= expr
expr ::= term (("+" | "-") term)*
term ::= number | "(" expr ")"
number ::= [0-9]+"""
LEFT = """root ::= list
list ::= list "," item | item
item ::= "a" | "b" list "e" """
LARK = """start: pair ("," pair)*
pair: NAME "=" value
value: NAME | "[" value* "]"
NAME: /[a-z]+/
%ignore " "
"""

ROWS: list[tuple[Grammar, str, list[str]]] = [
    (Grammar.gbnf(SUMS), "", ["rule term, in expr", "rule number, in term"]),
    (Grammar.gbnf(SUMS), "1", ["rule number, in term", "rule expr, in root"]),
    (Grammar.gbnf(SUMS), "(12", ["rule number, in term", "rule expr, in term", "rule term, in expr"]),
    (Grammar.gbnf(SUMS), "(1)", ["rule expr, in root"]),
    (Grammar.gbnf(SUMS), "x", []),
    # Left recursion, and a rule inside of itself.
    (Grammar.gbnf(LEFT), "a", ["rule list, in root"]),
    (Grammar.gbnf(LEFT), "ba", ["rule list, in item", "rule item, in list"]),
    (Grammar.gbnf(LEFT), "bae", ["rule list, in root"]),
    (Grammar.lark(LARK), "ab=", ["rule NAME, in value", "rule value, in pair"]),
    (Grammar.gbnf('root ::= "x"'), "x", []),
]


@pytest.mark.parametrize(("grammar", "text", "expected"), ROWS, ids=[f"{i}-{row[1]}" for i, row in enumerate(ROWS)])
def test_ways_to_go_on(grammar: Grammar, text: str, expected: list[str]) -> None:
    found = [str(path) for path in grammar.open_rules(text)]
    assert set(expected) <= set(found), found
    assert bool(found) == bool(expected)


def test_a_path_names_places() -> None:
    path = Grammar.gbnf(SUMS).open_rules("1+(2")[0]
    assert [(rule.name, rule.start, rule.line) for rule in path.rules] == [
        ("root", 0, 1),
        ("expr", 0, 2),
        ("term", 2, 3),
        ("expr", 3, 2),
        ("term", 3, 3),
        ("number", 3, 4),
    ]
    assert not path.begun
    assert Grammar.gbnf('root ::= "hello" | "help"').open_rules("he")[0].begun


def test_a_hole_is_told() -> None:
    grammar = Grammar.gbnf('root ::= "Answer: " person', holes={"person": JsonSchema({"type": "integer"})})
    assert "person" in str(grammar.open_rules("Answer: 1")[0])


def test_a_reader_goes_on_and_can_be_copied() -> None:
    reader = Grammar.gbnf(SUMS).rule_reader()
    assert reader.feed(b"(1")
    copy = reader.copy()
    assert reader.feed(b")")
    assert not copy.feed(b"x")
    assert [str(path) for path in reader.paths()] == ["rule expr, in root"]


def test_what_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_rules, "MAX_ITEMS", 200)
    with pytest.raises(ConstraintTooLarge, match="too long or too ambiguous"):
        Grammar.gbnf(SUMS).open_rules("1+" * 100)
