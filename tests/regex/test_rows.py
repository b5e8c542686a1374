"""Patterns with texts that they accept and refuse, as a whole."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from grammask.constraints.regex import Regex
from support.builders import BUILDER_NAMES, make_builder


class Row(NamedTuple):
    pattern: str
    accepted: list[str]
    refused: list[str]
    flags: str = ""
    search: bool = False
    unicode_classes: bool = False


ROWS = [
    # -- literals and escapes
    Row("", [""], ["a", "\n"]),
    Row("abc", ["abc"], ["", "ab", "abcd", "ABC"]),
    Row(r"\t\n\v\f\r\a\0", ["\t\n\v\f\r\a\0"], ["tnvfra0"]),
    Row(r"\x41\u0042\u{43}\u{1F600}\U0001F601\cJ", ["ABC😀😁\n"], ["ABC😀😁J"]),
    Row(r"\uD83D\uDE00", ["😀"], ["\ufffd"]),
    Row(r"\012\101", ["\nA"], ["12101"]),
    Row(r"\N{HEBREW LETTER ALEF}\N{GRINNING FACE}", ["א😀"], ["N"]),
    Row(r"git:\/\/[a-z\-]+\, \!\@\%\:\_\<\"\'\ ", ["git://a-b, !@%:_<\"' "], ["git:\\/\\/ab, !@%:_<\"' "]),
    Row(r"\^\$\\\.\*\+\?\(\)\[\]\{\}\|", ["^$\\.*+?()[]{}|"], [""]),
    Row("a{b}c]", ["a{b}c]"], ["abc"]),
    Row("a{,b", ["a{,b"], ["a"]),
    # -- classes
    Row("[a-cx]", ["a", "b", "c", "x"], ["d", "", "-", "ab"]),
    Row("[^a-c]", ["d", "\n", "א", "😀"], ["a", "c", "", "dd"]),
    Row("[]", [], ["", "a", "]"]),
    Row("[^]", ["a", "\n", "😀"], ["", "ab"]),
    Row(r"[a\-z]", ["a", "-", "z"], ["b", "\\"]),
    Row("[a-]|[-b]", ["a", "-", "b"], ["c"]),
    Row(r"[\w-.]", ["a", "-", "."], ["/", ","]),
    Row(r"[\b\]\\^-]", ["\b", "]", "\\", "^", "-"], ["b"]),
    Row("[[a]", ["[", "a"], ["]"]),
    Row(r"[\d\s]", ["7", " ", "\u3000"], ["a"]),
    Row(r"[^\D5]", ["0", "9"], ["5", "a"]),
    Row(r"\d", ["0", "9"], ["٣", "۳", "a"]),
    Row(r"\w", ["a", "Z", "0", "_"], ["é", "א", "-", "ı"]),
    Row(r"\s", [" ", "\t", "\n", "\u00a0", "\ufeff", "\u2028", "\u3000"], ["a", "\u200b", "\u200c", "\x85", "\x1c"]),
    Row(r"\D\W\S", ["א א", "٣é٣"], ["1 a", "aaa", "a  "]),
    Row(r"\d+ \w+", ["۱۲ سلام", "12 שלום_7", "٣ می\u200cروم"], ["x y", "1 -"], unicode_classes=True),
    Row(".", ["a", "\0", "😀", "\x85"], ["", "\n", "\r", "\u2028", "\u2029", "aa"]),
    Row(".", ["a", "\n", "\u2028"], ["", "aa"], flags="s"),
    # -- Unicode properties
    Row(r"\p{Lu}\p{Ll}+", ["Straße", "Éa", "Ωμ", "İı"], ["straße", "É", "אב"]),
    Row(r"\p{Letter}+", ["אבג", "汉字", "абв", "ığü", "سلام"], ["a1", "", "می\u200cروم"]),
    Row(r"\p{L}[\p{L}\p{M}\p{Join_C}]*", ["می\u200cروم", "שָׁלוֹם", "नमस्ते"], ["\u200cمی", "1"]),
    Row(r"\p{Script=Greek}+", ["Ωμέγα"], ["Omega", "Ω m"]),
    Row(r"\p{sc=Hebr}+|\p{scx=Arab}+|\p{Script=Han}+", ["שלום", "سلام،", "汉字"], ["ab", "שaל"]),
    Row(r"\P{L}+", ["12 3", "😀"], ["a1"]),
    Row(r"[\p{N}_]+", ["1٣Ⅷ_"], ["a"]),
    Row(r"\p{Emoji_Presentation}+", ["😀🚀"], ["a", "1"]),
    Row(r"\p{gc=Nd}{2}|\p{digit}{3}", ["1٣", "1۲3"], ["1"]),
    Row(r"[^\P{Lu}A-Y]", ["Z", "Ω"], ["A", "a"]),
    # -- alternation, groups, quantifiers
    Row("a|b|cd|", ["a", "b", "cd", ""], ["c", "d", "ab"]),
    Row("(a)(?:b)(?<n>c)(?P<m>d)(?#note)e", ["abcde"], ["abcd"]),
    Row("a*b+c?", ["b", "aabbc", "bc"], ["", "a", "acc"]),
    Row("a*?b+?c??", ["b", "aabbc", "bc"], ["", "a", "acc"]),
    Row("a{2}b{1,}c{0,2}d{,1}", ["aab", "aabbccd"], ["ab", "aa", "aabccc", "aabdd"]),
    Row("(ab|c){2,3}", ["abab", "ccc", "abcab"], ["ab", "cccc"]),
    Row("(([pq]*)*r?)*s", ["s", "pqs", "rrs", "pqrpps"], ["", "pq", "sp"]),
    Row("a{0}b{0,0}(c{0})*d", ["d"], ["ad", "cd"]),
    Row("((a?){3}){2}", ["", "aaaaaa"], ["aaaaaaa"]),
    Row("v[a-z]{3,9000}!", ["vabc!", "v" + "k" * 9000 + "!"], ["vab!", "v" + "k" * 9001 + "!"]),
    Row("[ab]{100000}", ["ab" * 50_000], ["ab" * 49_999 + "a", "ab" * 50_000 + "a"]),
    # -- anchors
    Row("^abc$", ["abc"], ["ab", "abc\n"]),
    Row("^on$|^off$|auto", ["on", "off", "auto"], ["one", "semi-auto"]),
    Row("^on$|^off$|auto", ["on", "off", "auto", "semi-auto-2"], ["one", "onoff", "of", "", "aut"], search=True),
    Row("^dev|alpha|stable$", ["devX", "xalphax", "unstable"], ["xdev", "stablex"], search=True),
    Row(r"\Aab\Z|\Acd\z", ["ab", "cd"], ["abx", "xcd"], search=True),
    Row("a^b|b$a", [], ["ab", "ba", "a^b"], search=True),
    Row("^^a$$", ["a"], ["", "aa"], search=True),
    Row("(^|,)a(,|$)", ["a", "b,a", "a,b", "x,a,y"], ["ba", "ab", "b,ab"], search=True),
    Row("^a$", ["a", "b\na", "a\nb", "b\r\na\u2028c"], ["ba", "ab", "b a"], flags="m", search=True),
    Row("(?:^[a-z]+$\n?)+", ["ab\ncd", "ab", "ab\n"], ["", "ab\n\ncd", "aB"], flags="m"),
    Row(r"^(\/?((\.{2})|([a-z0-9\-]*))($|\/))*$", ["", "/", "a/b", "../a/"], ["A", "a.b"], search=True),
    # -- word boundaries
    Row(r"\bfoo\b", ["foo", "a foo b", "-foo-"], ["afoo", "foob", "foo_", "fo"], search=True),
    Row(r"\Boo\B", ["food", "xooxx"], ["oo", "foo", "oops"], search=True),
    Row(r"(?:\b\w+\b ?){3}", ["a bc d", "ab c d "], ["ab cd", "abc", "a b c d", "ab  c d"]),
    Row(r"(\b|x)-", ["a-", "x-", "1 x-"], ["-", " -", ""], search=True),
    Row(r"\bא", ["aא"], ["א", " א"], search=True),
    Row(r"\bא\b", ["א", " א "], ["אב", "aא"], search=True, unicode_classes=True),
    # -- look-arounds
    Row("(?=.*[0-9])(?=.*[a-z])[a-z0-9]{3,5}", ["a1b", "12a45"], ["abc", "123", "a1", "a12345"]),
    Row("(?!foo|bar)[a-z]+", ["fo", "xfoo", "ba"], ["foo", "food", "bar"]),
    Row("a(?=b)b|a(?!b)c", ["ab", "ac"], ["a", "bc"]),
    Row("^((?!mode)(?!Mode).)*$", ["", "mod", "mmod", "odem"], ["mode", "a mode b", "xMode"], search=True),
    Row("<!--(?:(?!-->).)*-->", ["<!---->", "<!-- a - -> -->"], ["<!-- --> -->", "<!-- -"]),
    Row(r"(?<=\$)\d+", ["$12", "a$1"], ["12", "€1"], search=True),
    Row(r"(?<!\$)\b\d+", ["12", "€1"], ["$1", "$12"], search=True),
    Row("(?<=^|,)a+(?=,|$)", ["a", "b,aa", "a,b"], ["ba", "ab", ""], search=True),
    Row("(?<=a+b*)c", ["ac", "aabbc", "xabc"], ["c", "bc", "cx"], search=True),
    Row("(?<!ab)c|(?<=ab)d", ["c", "bc", "abd"], ["abc", "d"], search=True),
    Row("(?:(?<=a)b|(?<!a)a|(?<=b)c)+", ["ab", "abcab", "a"], ["b", "aa", "ac", "abb"]),
    Row("(?:a(?=b|$)|b(?!b))*", ["abab", "ba", ""], ["aab", "abb"]),
    Row("(?:[a-z](?![a-z]{2}$)){2,}", ["ab"], ["abc", "abcd", "a"]),
    Row(r"(?=(?=.b)a)..", ["ab"], ["aa", "bb"]),
    Row(r"(?<=(?<!x)y)z", ["yz", "ayz"], ["xyz", "z"], search=True),
    Row(r"^@(?:[\da-z](?:(?!.*--)[\da-z-]*[\da-z])?)/x$", ["@a/x", "@a-b/x"], ["@a--b/x", "@-/x"], search=True),
    # -- flags
    Row("straße", ["STRAßE", "straße", "ſtraẞe"], ["strasse"], flags="i"),
    Row("i", ["i", "I"], ["ı", "İ"], flags="i"),
    Row("İı", ["İı"], ["iı", "İI"], flags="i"),
    Row("(?i)k[à-ç]Σ", ["kàσ", "KÇς", "\u212aÀΣ"], ["kdσ"]),
    Row("[^k]", ["a"], ["k", "K", "\u212a"], flags="i"),
    Row(r"\w", ["ſ", "\u212a", "a"], ["é"], flags="i"),
    Row("(?i:a)b(?-i:c)", ["abc", "Abc"], ["aBc", "AbC"]),
    Row("(?s).(?-s:.)", ["\na"], ["\n\n"]),
    Row("(?x) a  b # comment\n [ ] c", ["ab c"], ["abc", "a b c"]),
    # -- scripts
    Row("[א-ת]+(?: [א-ת]+)*", ["שלום עולם"], ["שלום ", "שָלום", "abc"]),
    Row("(?:[آ-ی]+\u200c?)+", ["می\u200cخواهم", "سلام"], ["\u200cسلام", "می\u200c\u200cروم"]),
    Row("[\u4e00-\u9fff]{2,4}", ["汉字", "中华人民"], ["字", "汉字汉字汉", "kanji"]),
    Row("👩‍👩‍👧|🇫🇷|👍🏽?", ["👩‍👩‍👧", "🇫🇷", "👍", "👍🏽"], ["👩", "🇫", "🏽"]),
    Row(r"\u{1F468}(?:\u200D\p{Emoji})*", ["👨‍👩‍👧"], ["👨👩"]),
    Row("[ğüşıöçİĞÜŞÖÇ]+", ["ğüşı", "İ"], ["i", "I", "s"]),
    Row("[\U00010000-\U0010ffff]", ["😀", "𝒳"], ["a", "\uffff"]),
    Row("[\ud800-\udfff]", [], ["a", "\ufffd"]),
]  # fmt: skip


@pytest.mark.parametrize("builder_name", BUILDER_NAMES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.pattern[:40]!r}{row.flags}{'~' * row.search}")
def test_row(row: Row, builder_name: str) -> None:
    builder = make_builder(builder_name)
    regex = Regex(row.pattern, row.flags, search=row.search, unicode_classes=row.unicode_classes)
    expr = regex.lower(builder)
    for text in row.accepted:
        assert builder.matches(expr, text.encode()), f"{row.pattern!r} refuses {text[:50]!r}"
    for text in row.refused:
        assert not builder.matches(expr, text.encode()), f"{row.pattern!r} accepts {text[:50]!r}"


def test_bytes_that_are_no_text_never_match() -> None:
    builder = make_builder("native")
    for pattern in (".*", "(?s:.)*", "[^a]*", r"\P{L}*", r"(?!a)[^]*", r"\W*\b|[^]*"):
        expr = Regex(pattern, search=True).lower(builder)
        for data in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"a\x80"):
            assert not builder.matches(expr, data), f"{pattern!r} accepts {data!r}"
