"""Lark: what each notation means, what is refused, and what is reported."""

from __future__ import annotations

import itertools
import random

import pytest

import grammask
from support.grammars import accepts, byte_vocabulary

VOCABULARY = byte_vocabulary()

# name: (grammar, accepted, refused)
MEANING: dict[str, tuple[str, list[str], list[str]]] = {
    "strings": (r'start: "a\n\t\"\\\x41\u00e9"', ['a\n\t"\\Aé'], ["a"]),
    "strings in any case": ('start: "sElect"i "x"', ["selectx", "SELECTx", "Selectx"], ["selectX"]),
    "strings in any case with syntax characters": ('start: "a+(b)."i', ["A+(B).", "a+(b)."], ["aa(b)."]),
    "an i that is a name": ('start: "a" i\ni: "b"', ["ab"], ["A", "a"]),
    "ranges": ('start: "a".."c" "0" .. "2"', ["a0", "c2"], ["d0", "a3", ".."]),
    "regular expressions": (r"start: /[a-c]+\/x|\d/", ["ab/x", "7"], ["/x", "abx"]),
    "flag i": ("start: /ab/i", ["ab", "AB", "aB"], ["ba"]),
    "flag s": ("start: /a./s /b./", ["a\nbx", "axb\r"], ["axb\n"]),
    "flag x": ("start: /a b # note\n c/x", ["abc"], ["a b", "a b c"]),
    "dot leaves out the line feed alone": ("start: /./", ["a", "\r", "\u2028", "é"], ["\n", ""]),
    "dot in a class is a dot": ("start: /[.]/", ["."], ["a"]),
    "classes know Unicode": (r"start: /\w\d/", ["é1", "字٣", "_0"], ["-1", "aa"]),
    "terminals": ('start: A\nA: B "c" | "d"\nB: "b"+', ["bbc", "d"], ["c", "b"]),
    "terminal operators": ('start: A\nA: /[a-z]+/ & ~/.*x.*/ & ~"no"', ["ab", "nos"], ["axb", "no", "x", "A"]),
    "complement of one repetition": ('start: A\nA: ~"a"+ & /[ab]{2}/', ["ab", "bb", "ba", "aa"], ["a"]),
    "complement is over text": ('start: A\nA: ~"a"', ["", "aa", "é", "😀"], ["a"]),
    "maybe": ('start: ["a" "b"] "c"', ["c", "abc"], ["bc", "ac"]),
    "counted": ('start: "a" ~ 2 "b" ~ 1..2', ["aab", "aabb"], ["ab", "aabbb"]),
    "counted in braces": ('start: "a"{2} "b"{1,2} "c"{,1} "d"{1,}', ["aabd", "aabbcdd"], ["aab", "abd"]),
    "rules over lines": ('start: "a"   // one\n     // two\n     | "b"  # three\n\n     | "c"', ["a", "b", "c"], []),
    "line breaks in brackets": ('start: ("a"\n  "b")\n  | "c"', ["ab", "c"], []),
    "escaped line breaks": ('start: "a" \\\n  "b"', ["ab"], []),
    "comment signs in strings": ('start: "#" "//" /#|\\/\\//', ["#//#", "#////"], ["#"]),
    "aliases and modifiers": ('?start: a -> b | "x"\n!a: "a" -> c\n  | _d\n_d: "d"', ["a", "x", "d"], ["b"]),
    "priorities": ('start.2: A\nA.-1: "a"', ["a"], []),
    "empty alternatives": ('start: "a" |', ["", "a"], ["b"]),
    "empty rule": ("start:", [""], ["a"]),
    "templates": ('start: _list{X, ","}\n_list{item, sep}: item (sep item)*\nX: "x"', ["x", "x,x"], ["", "x,"]),
    "templates with groups": ('start: twice{("a" | "b")}\ntwice{x}: x x', ["aa", "ab"], ["a", "c"]),
    "templates in templates": ('start: o{o{"a"}}\no{x}: "(" x ")"', ["((a))"], ["(a)", "a"]),
    "recursive templates": ('start: t{"a"}\nt{x}: x | "(" t{x} ")"', ["a", "((a))"], ["(a"]),
    "ignored text": ('start: "a" B+ "c"\nB: "b" "b"\n%ignore " "', ["abbc", " a bb bb c  "], ["ab bc", "a b b c"]),
    "several ignored": ('start: "a" "b"\n%ignore " "\n%ignore /#[^\\n]*\\n/', ["a#x\n #y\nb", "#\nab#\n"], ["a#b"]),
    "ignored before rules": ('%ignore WS\nstart: x x\nx: "a"?\n%import common.WS', ["", " ", "a a", " a\n"], ["aaa"]),
    "import": ("start: INT SIGNED_INT\n%import common (INT, SIGNED_INT)", ["1-2", "12"], ["1", "-1"]),
    "import under another name": ("start: N\n%import common.NUMBER -> N", ["1", "1.5e3", ".5"], ["e3", "."]),
    "imported names stay apart": ('start: NUMBER DIGIT\n%import common.NUMBER\nDIGIT: "x"', ["12x"], ["12"]),
    "escaped strings": (
        "start: ESCAPED_STRING\n%import common.ESCAPED_STRING",
        [r'"a\"b\\"', '""'],
        ['"a"b"', '"\\"', '"\n"'],
    ),
    "C comments": (
        "start: C_COMMENT\n%import common.C_COMMENT",
        ["/**/", "/* a * b **/"],
        ["/*/", "/**/*/", "/* */ */"],
    ),
    "names of C": ("start: CNAME\n%import common.CNAME", ["_a1", "B"], ["1a", ""]),
    "override": ('start: a\na: "x"\n%override a: "y"', ["y"], ["x"]),
    "extend": ('start: a\na: "x"\n%extend a: "y" | "z"', ["x", "y", "z"], ["w"]),
    "substrings": (
        'start: %regex {"substring_words": "one two. three"}',
        ["", "one", "one two", " two. ", "three", "one two. three"],
        ["on", "onetwo", "two three"],
    ),
    "substrings of chunks": (
        'start: %regex {"substring_chunks": ["ab", "c", "ab"]}',
        ["abcab", "cab", "ab"],
        ["a", "abab"],
    ),
    "substrings of characters": ('start: S\nS: %regex {"substring_chars": "abé"}', ["a", "bé", "abé"], ["aé"]),
    "options of another engine": ('%llguidance {}\nstart: "a"', ["a"], []),
    "a keyword is not set against a name": ('start: "if" NAME\nNAME: /[a-z]+/', ["ifx", "ifif"], ["if", "i"]),
    "left recursion": ('start: start "+" x | x\nx: "1" | "(" start ")"', ["1", "1+1", "(1+1)+1"], ["1+", "(1", "+1"]),
}


@pytest.mark.parametrize("name", MEANING)
def test_meaning(name: str) -> None:
    text, accepted, refused = MEANING[name]
    compiled = grammask.compile(grammask.Grammar.lark(text), VOCABULARY)
    assert [case for case in accepted if not accepts(compiled, case)] == []
    assert [case for case in refused if accepts(compiled, case)] == []


# (grammar, line, column, words of the message)
MALFORMED: list[tuple[str, int, int, str]] = [
    ("", 1, 1, "no rule 'start'"),
    ('// note\nbegin: A\nA: "a"\n', 2, 1, "no rule 'start'"),
    ("%import common.INT\n", 1, 9, "no rule 'start'"),
    ("start{x}: x\n", 1, 12, "no rule 'start'"),
    ('start "a"', 1, 7, "':'"),
    ('start: "a', 1, 8, "not closed on its line"),
    ('start: "a\n"', 1, 8, "not closed on its line"),
    (r'start: "\d"', 1, 9, "not an escape"),
    ("start: /ab", 1, 8, "never closed"),
    ('start: A\nA: /[a-f]+ "z"\n', 2, 4, "never closed"),
    ("start: A\nA: /a\nB: /b/", 2, 4, "not closed on its line"),
    ("start: /a(b/", 1, 10, "in this regular expression"),
    ("start: /ab[/", 1, 11, "in this regular expression"),
    ('start: ("a"', 1, 8, "never closed"),
    ('start: ["a"', 1, 8, "never closed"),
    ('start: "a")', 1, 11, "closes nothing"),
    ('start: ("a"]', 1, 12, "closes nothing"),
    ("start: *", 1, 8, "nothing stands before"),
    ('start: "a" ~ 3..1', 1, 12, "impossible"),
    ('start: "b".."a"', 1, 8, "wrong order"),
    ('start: "ab".."c"', 1, 8, "single characters"),
    ('start: "a".."', 1, 13, "not closed on its line"),
    ("start: a", 1, 8, "a is not defined"),
    ("start: A", 1, 8, "A is not defined"),
    ("start: Ab", 1, 8, "mixes upper and lower case"),
    ('start: A\nA: b\nb: "x"', 2, 4, "cannot be part of a terminal"),
    ('start: A\nA: "x" B\nB: A | "y"', 2, 1, "cannot be recursive"),
    ('start: "a"\nstart: "b"', 2, 1, "already defined in line 1"),
    ("start: a & b", 1, 10, "regular expressions only"),
    ("start: ~a", 1, 8, "regular expressions only"),
    ('start: A\nA: "a" & ~', 2, 11, "nothing follows '~'"),
    ('start: "a" -> "b"', 1, 15, "an alias"),
    ('start: A\nA: "a" -> b', 2, 8, "aliases name alternatives of rules"),
    ("start: A\nA: <|x|>", 2, 4, "a token is not text"),
    ('start: t{x}\nx: "x"', 1, 8, "there is no template t"),
    ('start: t{"a"}\nt{x, y}: x y', 1, 8, "takes 2 arguments, here are 1"),
    ('start: t{"a",}\nt{x}: x', 1, 14, "argument is missing"),
    ("start: t\nt{x}: x", 1, 8, "t is not defined"),
    ('start: "a"\nt{x, x}: x', 2, 6, "named twice"),
    ('start: "a"\nT{x}: x', 2, 2, "cannot be a template"),
    ("start: X\n%import common.XX -> X", 2, 9, "the library 'common' has no XX"),
    ("start: x\n%import common.INT -> x", 2, 9, "upper case"),
    ("%declare X\nstart: X", 1, 10, "nothing says what text it matches"),
    ('%nonsense\nstart: "a"', 1, 1, "not a directive"),
    ('%override start: "a"', 1, 1, "no earlier start"),
    ('start: %json {"type": }', 1, 23, "not JSON"),
    ("start: A\nA: %json {}", 2, 4, "not regular"),
    ('start: %regex {"pattern": "a"}', 1, 8, "%regex cannot read"),
    ("start: %xml", 1, 8, "%json or %regex"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), MALFORMED)
def test_malformed(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(grammask.ConstraintSyntaxError) as caught:
        grammask.Grammar.lark(text)
    error = caught.value
    assert words in error.message
    assert (error.line, error.column) == (line, column)
    *_, excerpt, caret = error.message.splitlines()
    assert caret.index("^") - excerpt.index("|") - 2 == column - 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("start: x\n%import python.x", "only the library 'common'"),
        ("start: x\n%import .other.x", "only the library 'common'"),
        ('%llguidance {"no_forcing": true}\nstart: "a"', "options of llguidance"),
        ("start: /a/l", "locale"),
    ],
)
def test_unsupported(text: str, words: str) -> None:
    with pytest.raises(grammask.UnsupportedConstraint, match=words):
        grammask.Grammar.lark(text)


def test_a_json_schema_inside_a_grammar() -> None:
    text = (
        'start: "call " call " done"\ncall: %json {\n  "type": "object",\n  "properties": {"n": {"type": "integer"}},\n'
    )
    compiled = grammask.compile(grammask.Grammar.lark(text + '  "required": ["n"]\n}\n'), VOCABULARY)
    assert accepts(compiled, 'call {"n": 3} done')
    assert not accepts(compiled, 'call {"n": "3"} done')
    assert not accepts(compiled, "call {} done")


def test_a_fault_in_an_embedded_constraint_is_reported_with_its_place() -> None:
    grammar = grammask.Grammar.lark('start: "a"\n  | %json {"type": "objekt"}')
    with pytest.raises(grammask.ConstraintSyntaxError, match="in this schema at /type") as caught:
        grammask.compile(grammar, VOCABULARY)
    assert (caught.value.line, caught.value.column) == (2, 5)
    grammar = grammask.Grammar.gbnf('root ::= "a" | x', holes={"x": grammask.JsonSchema({"type": "objekt"})})
    with pytest.raises(grammask.ConstraintSyntaxError, match="in the hole x at /type"):
        grammask.compile(grammar, VOCABULARY)


def test_an_embedded_constraint_without_texts_leaves_the_other_alternatives() -> None:
    compiled = grammask.compile(grammask.Grammar.lark('start: "a" | "b" %json false'), VOCABULARY)
    assert accepts(compiled, "a")
    assert compiled.matcher().next_bytes() == b"a"
    with pytest.raises(grammask.UnsatisfiableConstraint):
        grammask.compile(grammask.Grammar.lark("start: %json false"), VOCABULARY)


def test_ignored_text_agrees_with_an_earley_parser() -> None:
    """Random rules over the terminals A and B with ignored blanks, on all texts up to a length."""
    lark = pytest.importorskip("lark")
    texts = ["".join(letters) for n in range(4) for letters in itertools.product("ab ", repeat=n)]
    compared = 0
    for seed in range(40):
        generator = random.Random(seed)

        def expression(depth: int, generator: random.Random = generator) -> str:
            if depth == 0:
                return generator.choice(["A", "B", "start", "p"])
            parts = [expression(depth - 1) for _ in range(2)]
            return generator.choice(["({0} {1})", "({0} | {1})", "[{0}] {1}", "({0})* {1}"]).format(*parts)

        rules = f"start: {expression(2)} | A\np: {expression(2)} | B\n"
        text = rules + 'A: "a"\nB: "b"\n%ignore " "\n'
        try:
            parser = lark.Lark(text, parser="earley", lexer="dynamic", ambiguity="forest")
        except lark.exceptions.GrammarError:
            continue  # the parser refuses alternatives that expand to the same
        compared += 1
        compiled = grammask.compile(grammask.Grammar.lark(text), VOCABULARY)
        for candidate in texts:
            try:
                parser.parse(candidate)
                expected = True
            except lark.exceptions.LarkError:
                expected = False
            assert accepts(compiled, candidate) == expected, f"{candidate!r} in\n{text}"
    assert compared > 20
