"""Malformed and unsupported patterns: which error, at which column, with what advice."""

from __future__ import annotations

import re

import pytest

from grammask.constraints.regex import Regex
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge, UnsupportedConstraint
from support.builders import make_builder

SYNTAX_ERRORS = [
    # pattern, column, part of the message or hint
    ("^(ab[c$", 5, "never closed"),
    ("(ab", 1, "never closed"),
    ("a(b(c)", 2, "never closed"),
    ("ab)c", 3, "closes no group"),
    ("*a", 1, "nothing to repeat"),
    ("a|+b", 3, "nothing to repeat"),
    ("(?:*)", 4, "nothing to repeat"),
    ("^*", 2, "anchor"),
    (r"\b+", 3, "anchor"),
    ("a**", 3, "cannot follow"),
    ("a{2}{3}", 5, "cannot follow"),
    ("a{3,2}", 2, "greater"),
    ("[z-a]", 2, "reverse"),
    ("[a", 1, "never closed"),
    ("a[^\\]", 2, "never closed"),
    ("ab\\", 3, "backslash"),
    (r"\y", 1, "unknown escape"),
    (r"[\B]", 2, "unknown escape"),
    (r"\x4", 1, "hexadecimal"),
    (r"a\u12", 2, "hexadecimal"),
    (r"\u{110000}", 1, "10FFFF"),
    (r"\U00110000", 1, "hexadecimal"),
    (r"\c1", 1, "letter"),
    (r"\N{NO SUCH NAME}", 1, "unknown character name"),
    (r"\p", 1, "braces"),
    (r"\p{Klingon}", 1, "unknown Unicode property"),
    (r"\p{Greek}", 1, r"\p{Script=Greek}"),
    (r"\p{IsHebrew}", 1, r"\p{Script=Hebrew}"),
    (r"\p{lu}", 1, r"\p{Lu}"),
    (r"\p{Script=Elvish}", 1, "unknown Unicode property"),
    ("(?<1a>x)", 1, "identifier"),
    ("(?P<a", 1, "identifier"),
    ("(?#abc", 1, "never closed"),
    ("(?y:a)", 3, "unknown flag"),
    ("a(?i)b", 2, "(?i:...)"),
    ("(?-i)a", 1, "group only"),
    ("(?~a)", 1, "unknown kind of group"),
    ("(?", 1, "unknown kind of group"),
]

UNSUPPORTED = [
    (r"(a)\1", 4),
    (r"(?<n>a)\k<n>", 8),
    ("(?P<n>a)(?P=n)", 9),
    ("a*+", 3),
    ("a{2,3}+", 7),
    ("(?>a)", 1),
    ("(a)?(?(1)b|c)", 5),
    ("(?<=a(?=b))b", 6),
    ("(?:(?!a(?!b)).)*", 8),
]


@pytest.mark.parametrize(("pattern", "column", "part"), SYNTAX_ERRORS)
def test_malformed(pattern: str, column: int, part: str) -> None:
    with pytest.raises(ConstraintSyntaxError) as caught:
        Regex(pattern)
    assert caught.value.column == column
    assert part in str(caught.value)


@pytest.mark.parametrize(("pattern", "column"), UNSUPPORTED)
def test_unsupported(pattern: str, column: int) -> None:
    with pytest.raises(UnsupportedConstraint) as caught:
        Regex(pattern, search=True).lower(make_builder("native"))
    assert caught.value.column == column
    assert caught.value.hint


def test_the_message_points_at_the_place() -> None:
    with pytest.raises(ConstraintSyntaxError) as caught:
        Regex("x" * 100 + "(?i)" + "y" * 100)
    _, shown, caret, hint = str(caught.value).splitlines()
    assert shown[caret.index("^") :].startswith("(?i)yyy")
    assert len(shown) < 70
    assert "hint" in hint


@pytest.mark.parametrize("pattern", ["a" * 9 + "{99999999999}", "a{2147483648}", "(" * 200 + "a" + ")?b" * 200])
def test_too_large(pattern: str) -> None:
    with pytest.raises(ConstraintTooLarge) as caught:
        Regex(pattern)
    assert caught.value.column


def test_flags() -> None:
    assert Regex("a", re.IGNORECASE | re.DOTALL) == Regex("a", "is")
    assert Regex("a", re.UNICODE) == Regex("a", unicode_classes=True)
    assert Regex("a", "u") != Regex("a")
    with pytest.raises(ConstraintSyntaxError, match="flag"):
        Regex("a", "g")
    with pytest.raises(ConstraintSyntaxError, match="LOCALE"):
        Regex("a", int(re.LOCALE))
    with pytest.raises(TypeError):
        Regex(b"a")  # type: ignore[arg-type]
