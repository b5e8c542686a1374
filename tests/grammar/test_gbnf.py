"""GBNF: what each notation means, and what is refused."""

from __future__ import annotations

import pytest

import grammask
from support.grammars import accepts, byte_vocabulary

VOCABULARY = byte_vocabulary()

# name: (grammar, accepted, refused)
MEANING: dict[str, tuple[str, list[str], list[str]]] = {
    "literal": ('root ::= "ab"', ["ab"], ["", "a", "abc", "AB"]),
    "empty literal": ('root ::= ""', [""], ["a"]),
    "escapes": (r'root ::= "\x41\u00e9\U0001F600\n\r\t\\\"\[\]\-"', ['Aé😀\n\r\t\\"[]-'], ["A"]),
    "an escaped code point is not a byte": (r'root ::= "\xe9"', ["é"], ["e"]),
    "alternatives": ('root ::= "a" | "b" |', ["a", "b", ""], ["ab"]),
    "groups": ('root ::= ("a" | "b") ("c" "d")', ["acd", "bcd"], ["abcd", "cd"]),
    "class": ("root ::= [a-cx]", ["a", "b", "c", "x"], ["d", "", "ab", "-"]),
    "class with a hyphen at an end": ("root ::= [a-] [-b]", ["--", "ab", "a-"], ["bb"]),
    "class with escapes": (r"root ::= [\]\[\\\x30-\x39\u00e9\n\-]", ["]", "[", "\\", "5", "é", "\n", "-"], ["x", "a"]),
    "class with a quote": ('root ::= ["#]', ['"', "#"], ["'"]),
    "negated class": ("root ::= [^a-c\\n]", ["d", "é", "😀", "\r"], ["a", "b", "\n", "", "dd"]),
    "class of astral characters": ("root ::= [🌑-🌘]", ["🌑", "🌔", "🌘"], ["🌙", "🌐"]),
    "any character": ("root ::= .", ["a", "\n", "é", "😀"], ["", "ab"]),
    "star": ('root ::= "ab"*', ["", "ab", "abab"], ["a", "aba", "abb"]),
    "plus": ('root ::= "a"+', ["a", "aaa"], ["", "b"]),
    "optional": ('root ::= "a"? "b"', ["ab", "b"], ["a", "aab"]),
    "exactly": ('root ::= "a"{3}', ["aaa"], ["aa", "aaaa"]),
    "at least": ('root ::= "a"{2,}', ["aa", "aaaaa"], ["a", ""]),
    "between": ('root ::= "a"{1,3}', ["a", "aaa"], ["", "aaaa"]),
    "at most": ('root ::= "a"{,2}', ["", "aa"], ["aaa"]),
    "bounds with blanks": ('root ::= "a"{ 1 , 2 }', ["a", "aa"], ["aaa"]),
    "zero times": ('root ::= "a"{0} "b"', ["b"], ["ab"]),
    "large bounds are kept": ('root ::= "a"{0,3000}', ["a" * 3000], ["a" * 3001]),
    "operators on operators": ('root ::= "a"{2}*', ["", "aa", "aaaa"], ["a", "aaa"]),
    "comments": ('# first\nroot ::= "a" # then\n  # more\nx ::= "#" # last', ["a"], ["#"]),
    "line breaks in groups": ('root ::= (\n  "a" # one\n  |\n  "b"\n)\n', ["a", "b"], []),
    "line breaks after a bar": ('root ::= "a" |\n  "b"\n', ["a", "b"], []),
    "line breaks before a bar": ('root ::= "a"\n  | "b"\n\n  | "c"\n', ["a", "b", "c"], []),
    "carriage returns": ('root ::= x "b"\r\nx ::= "a"\r\n', ["ab"], []),
    "names": ('root ::= a-1 B_2 3\na-1 ::= "x"\nB_2 ::= "y"\n3 ::= "z"', ["xyz"], ["xy"]),
    "definition on the next line": ('root ::=\n  "a"', ["a"], []),
    "left recursion": ('root ::= root "a" | "b"', ["b", "baaa"], ["a", "", "ab"]),
    "right recursion": ('root ::= "a" root | "b"', ["b", "aaab"], ["a", "ba"]),
    "nested recursion": ('root ::= "(" root ")" root | ""', ["", "(())()"], ["(", ")(", "(()"]),
    "ambiguous recursion": ('root ::= root root | "a" | ""', ["", "aaaa"], ["b"]),
    "hidden left recursion": ('root ::= x root "a" | "b"\nx ::= "c"?', ["b", "cba", "ccbaa", "baa"], ["a", "cb"]),
    "mutual recursion": ('root ::= "a" x | "."\nx ::= "b" root | "!"', [".", "ab.", "a!", "aba!"], ["a.", "ab!"]),
    "cycles of names": ('root ::= x | "a"\nx ::= root | "b" x', ["a", "ba", "bba"], ["b", "ab"]),
    "palindromes": ('root ::= "a" root "a" | "b" root "b" | "c"', ["c", "abcba"], ["abcab", "abba"]),
}


@pytest.mark.parametrize("name", MEANING)
def test_meaning(name: str) -> None:
    text, accepted, refused = MEANING[name]
    compiled = grammask.compile(grammask.Grammar.gbnf(text), VOCABULARY)
    assert [case for case in accepted if not accepts(compiled, case)] == []
    assert [case for case in refused if accepts(compiled, case)] == []


# (grammar, line, column, words of the message)
MALFORMED: list[tuple[str, int, int, str]] = [
    ("", 1, 1, "no rule 'root'"),
    ('# note\na ::= "x"\n', 2, 1, "no rule 'root'"),
    ('root ::= "a', 1, 10, "never closed"),
    ("root ::= [ab", 1, 10, "never closed"),
    ('root ::= ("a"', 1, 10, "never closed"),
    ('root ::= "a")', 1, 13, "closes nothing"),
    ("root ::= []", 1, 10, "empty character class"),
    ("root ::= [z-a]", 1, 11, "wrong order"),
    (r'root ::= "\q"', 1, 11, "not an escape"),
    (r'root ::= "\x4"', 1, 11, "2 hexadecimal digits"),
    (r'root ::= "\U00110000"', 1, 11, "beyond the last code point"),
    (r'root ::= "\uD800"', 1, 10, "surrogate"),
    ("root ::= [\\uD800-\\uDFFF]", 1, 10, "no character"),
    ("root ::= *", 1, 10, "nothing stands before"),
    ('root ::= "a" | +', 1, 16, "nothing stands before"),
    ('root ::= "a"{3,1}', 1, 13, "impossible"),
    ('root ::= "a"{x}', 1, 14, "a number"),
    ('root ::= "a"{,}', 1, 13, "at least one bound"),
    ('root ::= "a"{1', 1, 15, "'}'"),
    ("root ::= item", 1, 10, "item is not defined"),
    ('root ::= "a"\nb ::= "b" c\n', 2, 11, "c is not defined"),
    ('root ::= "a"\n\nroot ::= "b"', 3, 1, "already defined in line 1"),
    ('root = "a"', 1, 6, "'::='"),
    ('root ::= "a" b ::= "c"', 1, 16, "end of the rule"),
    ("root ::= $", 1, 10, "was expected"),
    ("root ::= <end", 1, 10, "never closed"),
    ("root ::= <[x]>", 1, 10, "not a token id"),
    ('root ::= !"a"', 1, 11, "a token"),
    ('| "a"', 1, 1, "a rule name"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), MALFORMED)
def test_malformed(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(grammask.ConstraintSyntaxError) as caught:
        grammask.Grammar.gbnf(text)
    error = caught.value
    assert words in error.message
    assert (error.line, error.column) == (line, column)
    *_, excerpt, caret = error.message.splitlines()
    assert caret.index("^") - excerpt.index("|") - 2 == column - 1


def test_the_hint_names_what_was_probably_meant() -> None:
    with pytest.raises(grammask.ConstraintSyntaxError, match="did you mean number"):
        grammask.Grammar.gbnf('root ::= nubmer\nnumber ::= "1"')


def test_a_long_line_is_cut_around_the_place() -> None:
    text = "root ::= " + '"abcdefghij" ' * 400 + "$" + ' "x"' * 400
    with pytest.raises(grammask.ConstraintSyntaxError) as caught:
        grammask.Grammar.gbnf(text)
    _, excerpt, caret = caught.value.message.splitlines()
    assert len(excerpt) < 100
    assert excerpt[caret.index("^")] == "$"


def test_another_root() -> None:
    compiled = grammask.compile(grammask.Grammar.gbnf('root ::= "a"\nother ::= "b"', root="other"), VOCABULARY)
    assert accepts(compiled, "b")
    assert not accepts(compiled, "a")
