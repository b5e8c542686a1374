"""What both notations share: diagnostics, holes, special tokens, the reduction of recursion, hostile texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import grammask
from grammask.constraints.grammar import grammar as grammar_module
from grammask.constraints.grammar.model import GrammarWarning
from grammask.constraints.grammar.nodes import Arena, NodeId
from grammask.constraints.grammar.recursion import Solved
from support.grammars import accepts, byte_vocabulary

VOCABULARY = byte_vocabulary()

# Two ordinary tokens, pieces of a character, and special tokens of which one ends the text.
SPECIAL = grammask.Vocabulary.from_tokens(
    [b"a", b"ab", b"\xf0\x9f", b"\x99\x82", b"<t>", b"</t>", b"<x>", b"<end>"],
    eos_token_ids=[7],
    special_token_ids={"<t>": 4, "</t>": 5, "<x>": 6, "<end>": 7},
)


def allowed(grammar: grammask.Grammar, *token_ids: int) -> list[int] | None:
    """What may follow these tokens, or None if they are refused."""
    matcher = grammask.compile(grammar, SPECIAL).matcher()
    if not all(matcher.accept(token_id) for token_id in token_ids):
        return None
    return list(matcher.allowed_token_ids())


class TestDiagnostics:
    @pytest.mark.parametrize(
        ("read", "text"),
        [
            (grammask.Grammar.gbnf, 'root ::= "a" | b\nb ::= "c" b\nd ::= "e"\n'),
            (grammask.Grammar.lark, 'start: "a" | b\nb: "c" b\nd: "e"\n'),
        ],
    )
    def test_rules_without_use_and_without_end(self, read: Callable[[str], grammask.Grammar], text: str) -> None:
        with pytest.warns(GrammarWarning, match="(?s)b can never finish.*d is never used"):
            found = read(text).diagnostics()
        assert [(one.level, one.rule, one.line, one.column) for one in found] == [
            ("warning", "b", 2, 1),
            ("warning", "d", 3, 1),
        ]
        assert "can never finish" in found[0].message
        assert "never used" in found[1].message

    def test_imports_terminals_and_templates_without_use(self) -> None:
        text = 'start: "a" list{"b"}\nlist{x}: x*\nother{x}: x\n%import common.WS\nW: "w"\nu: list{"c"}\n'
        with pytest.warns(GrammarWarning):
            found = grammask.Grammar.lark(text).diagnostics()
        assert {(one.rule, one.line) for one in found} == {("other", 3), ("WS", 4), ("W", 5), ("u", 6)}

    def test_dead_alternatives_are_not_offered(self) -> None:
        with pytest.warns(GrammarWarning):
            grammar = grammask.Grammar.gbnf('root ::= "a" | "b" b\nb ::= "c" b')
        compiled = grammask.compile(grammar, VOCABULARY)
        assert compiled.matcher().next_bytes() == b"a"

    def test_a_start_that_never_finishes(self) -> None:
        with pytest.raises(grammask.UnsatisfiableConstraint, match="no text at all matches root") as caught:
            grammask.Grammar.gbnf('x ::= "a"\nroot ::= x root')
        assert caught.value.line == 2

    def test_priorities_are_explained(self) -> None:
        (found,) = grammask.Grammar.lark('start: A\nA.2: "a"').diagnostics()
        assert (found.level, found.rule, found.line) == ("note", "A", 2)
        assert str(found).startswith("note: line 2, column 2: the priority of A has no effect")

    def test_a_hole_without_use(self) -> None:
        with pytest.warns(GrammarWarning):
            (found,) = grammask.Grammar.gbnf('root ::= "a"', holes={"x": "b"}).diagnostics()
        assert found.message == "the hole x does not occur in the grammar"

    def test_nothing_to_report(self) -> None:
        assert grammask.Grammar.lark("start: INT\n%import common.INT").diagnostics() == []


class TestHoles:
    def test_gbnf(self) -> None:
        holes = {"value": grammask.JsonSchema({"type": "integer"}), "word": grammask.Regex("[a-z]+"), "end": "!"}
        grammar = grammask.Grammar.gbnf('root ::= (word "=" value ";")* end', holes=holes)
        compiled = grammask.compile(grammar, VOCABULARY)
        assert accepts(compiled, "a=1;bc=-20;!")
        assert not accepts(compiled, "a=x;!")

    def test_lark_with_ignored_text(self) -> None:
        holes = {"COLOR": grammask.Choice(["red", "dark blue"]), "more": "x"}
        grammar = grammask.Grammar.lark('%declare COLOR\nstart: COLOR more COLOR\n%ignore " "', holes=holes)
        compiled = grammask.compile(grammar, VOCABULARY)
        assert accepts(compiled, " red x dark blue ")
        assert accepts(compiled, "redxred")
        assert not accepts(compiled, "r ed x red")

    def test_a_grammar_in_a_grammar(self) -> None:
        inner = grammask.Grammar.gbnf('root ::= "(" root ")" | "x"')
        outer = grammask.Grammar.lark('start: tree "," tree', holes={"tree": inner})
        compiled = grammask.compile(outer, VOCABULARY)
        assert accepts(compiled, "((x)),x")
        assert not accepts(compiled, "((x),x)")

    def test_composition_with_other_constraints(self) -> None:
        grammar = grammask.Grammar.gbnf('root ::= "[" root ("," root)* "]" | "x"')
        compiled = grammask.compile("Answer: " + grammar + grammask.Choice(["!", "?"]), VOCABULARY)
        assert accepts(compiled, "Answer: [x,[x]]?")
        assert not accepts(compiled, "Answer: [x,[x]?")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('start: x\nx: "a"', "filled as a hole"),
            ('start: A\nA: x "b"', "holes can be used in rules only"),
        ],
    )
    def test_misuse(self, text: str, words: str) -> None:
        with pytest.raises(grammask.ConstraintSyntaxError, match=words):
            grammask.Grammar.lark(text, holes={"x": "a"})


class TestTokens:
    def test_by_name_and_by_id(self) -> None:
        for grammar in (
            grammask.Grammar.gbnf('root ::= <t> "a" <[5]>'),
            grammask.Grammar.lark('start: <t> "a" <[5]>'),
        ):
            assert allowed(grammar) == [4]
            assert allowed(grammar, 4) == [0]
            assert allowed(grammar, 4, 0) == [5]
            assert allowed(grammar, 4, 0, 5) == [7]

    def test_text_that_looks_like_a_token_is_text(self) -> None:
        assert allowed(grammask.Grammar.gbnf('root ::= "<t>" | "a"')) == [0]

    def test_negated(self) -> None:
        grammar = grammask.Grammar.gbnf('root ::= <t> !</t>* </t> "a"')
        assert allowed(grammar, 4) == [0, 1, 2, 4, 5, 6]
        assert allowed(grammar, 4, 2) == [3]
        assert allowed(grammar, 4, 2, 3, 6, 5) == [0]
        assert allowed(grammask.Grammar.gbnf("root ::= !</t>+ </t>")) == [0, 1, 2, 4, 6]

    @pytest.mark.parametrize("text", ["root ::= !<t>", "root ::= !<t>{2}", 'root ::= (!<t> "a")*', "root ::= !<t>?"])
    def test_negated_tokens_cannot_be_counted(self, text: str) -> None:
        with pytest.raises(grammask.UnsupportedConstraint, match="repeated with"):
            grammask.Grammar.gbnf(text)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("root ::= <u>", "the vocabulary has no special token <u>"),
            ("root ::= <[0]>", "not the id of a special token"),
            ("root ::= !<u>*", "the vocabulary has no special token <u>"),
        ],
    )
    def test_unknown(self, text: str, words: str) -> None:
        with pytest.raises(grammask.UnsupportedConstraint, match=words) as caught:
            grammask.compile(grammask.Grammar.gbnf(text), SPECIAL)
        assert caught.value.line == 1


class TestRecursion:
    @pytest.mark.parametrize(
        ("text", "frames"),
        [
            ('root ::= "a" root | "b"', 0),
            ('root ::= root "a" | "b"', 0),
            ('root ::= root "+" root | root "!" | "-" root | [0-9]', 0),
            ('root ::= x "," root | x\nx ::= y | "x"\ny ::= "y" x', 0),
            ('root ::= root "+" root | "(" root ")" | [0-9]', 1),
            ('root ::= "[" (root ("," root)*)? "]" | "{" (root ":" root)? "}" | [0-9]', 2),
            ('root ::= "a" root "a" | ""', 1),
            ('root ::= "if" root | "if" root "else" root | "x"', 1),
        ],
    )
    def test_how_many_frames_are_left(self, text: str, frames: int) -> None:
        assert len(grammask.Grammar.gbnf(text)._solved.recursive) == frames

    def test_the_same_language_with_a_frame_for_every_rule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = (
            'root ::= root "+" term | term\nterm ::= term "*" atom | atom\n'
            'atom ::= "-" atom | "(" root ")" | [0-9] | list\n'
            'list ::= "[" items? "]"\nitems ::= root | root "," items\n'
        )

        def unsolved(arena: Arena, bodies: dict[str, NodeId]) -> Solved:
            return Solved(bodies, frozenset(bodies))

        reduced = grammask.compile(grammask.Grammar.gbnf(text), VOCABULARY)
        monkeypatch.setattr(grammar_module, "solve", unsolved)
        plain = grammask.compile(grammask.Grammar.gbnf(text), VOCABULARY)
        for prefix in ("", "1", "-", "(1", "(1)", "[1,", "[-(2*[3,4])", "1+2*(3", "[]", "[1]", "--1+[[]", "1+"):
            first, second = reduced.matcher(), plain.matcher()
            assert first.accept_bytes(prefix.encode())
            assert second.accept_bytes(prefix.encode())
            assert first.next_bytes() == second.next_bytes()
            assert first.is_complete == second.is_complete


class TestHostile:
    def test_deep_groups(self) -> None:
        compiled = grammask.compile(
            grammask.Grammar.gbnf("root ::= " + "(" * 20_000 + '"k"' + ")" * 20_000), VOCABULARY
        )
        assert accepts(compiled, "k")
        assert not accepts(compiled, "kk")

    def test_deep_groups_with_content(self) -> None:
        compiled = grammask.compile(
            grammask.Grammar.lark("start: " + '["a" ' * 3_000 + '"k"' + "]" * 3_000), VOCABULARY
        )
        assert accepts(compiled, "a" * 3_000 + "k")
        assert accepts(compiled, "")
        assert not accepts(compiled, "a" * 2_999 + "k")

    def test_long_chains_of_rules(self) -> None:
        rules = "".join(f'r{i} ::= "a" r{i + 1} | "b"\n' for i in range(1_500))
        compiled = grammask.compile(grammask.Grammar.gbnf(f'root ::= r0\n{rules}r1500 ::= "c"\n'), VOCABULARY)
        assert accepts(compiled, "a" * 1_500 + "c")
        assert accepts(compiled, "aab")

    def test_many_rules_that_call_each_other(self) -> None:
        rules = "".join(f'r{i} ::= "k{i}" "(" v ")" | "k{i}"\n' for i in range(300))
        names = " | ".join(f"r{i}" for i in range(300))
        compiled = grammask.compile(grammask.Grammar.gbnf(f"root ::= v\nv ::= {names}\n{rules}"), VOCABULARY)
        assert accepts(compiled, "k1(k2(k299))")
        assert not accepts(compiled, "k1(k300)")

    def test_long_nesting_of_the_output(self) -> None:
        compiled = grammask.compile(grammask.Grammar.gbnf('root ::= "(" root ")" | "x"'), VOCABULARY)
        assert accepts(compiled, "(" * 20_000 + "x" + ")" * 20_000)

    def test_large_repetition(self) -> None:
        compiled = grammask.compile(grammask.Grammar.gbnf('root ::= "ab"{2,1000000}'), VOCABULARY)
        assert accepts(compiled, "ab" * 50)
        assert not accepts(compiled, "ab")

    @pytest.mark.parametrize(
        "text",
        [
            'root ::= "a"{2000000}',
            'root ::= "a"{' + "9" * 10_000 + "}",
        ],
    )
    def test_too_large(self, text: str) -> None:
        with pytest.raises(grammask.ConstraintTooLarge):
            grammask.Grammar.gbnf(text)

    def test_templates_without_end(self) -> None:
        with pytest.raises(grammask.ConstraintTooLarge, match="templates unfold"):
            grammask.Grammar.lark('start: t{"a"}\nt{x}: x t{u{x}} | x\nu{x}: x x')

    def test_json_that_is_nested_too_deeply(self) -> None:
        with pytest.raises(grammask.ConstraintTooLarge, match="nested too deeply"):
            grammask.Grammar.lark("start: %json " + "[" * 100_000)

    @pytest.mark.parametrize(
        "text", ["\x00", "root ::= \x00", 'root ::= "\ud800"', "root ::= [\ud800]", "\ufeff", "root"]
    )
    def test_odd_characters(self, text: str) -> None:
        with pytest.raises(grammask.ConstraintSyntaxError):
            grammask.Grammar.gbnf(text)
