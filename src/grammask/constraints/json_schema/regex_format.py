"""The format ``regex``: texts of regular expressions (ECMA-262 section 22.2.1, with the flag u).

The syntax of regular expressions nests, so it is not regular; and some of its rules (a reference needs its group, a
name may be given once, a range must ascend) ask for unbounded memory. The language here is a regular part of it: groups
nest up to MAX_NESTING deep, and a text that would need such a rule to be checked in full is left out. Everything in it
is a valid expression:

* no back references and no named groups; property escapes of general categories only;
* in a class, a range runs from an ASCII character upwards, or between two ``\\uXXXX`` that differ in the first digit;
* in ``{n,m}`` either m has more digits than n, or both have the same one or two.

Beyond the flag u, a backslash may stand before any ASCII punctuation mark, as in every dialect in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammask._core import Builder, Expr, Spelling

MAX_NESTING = 5

_HEX = "0123456789abcdef"


def _hex_class(digits: str) -> str:
    return "[" + digits + digits.upper() + "]"


_PUNCTUATION = "[!-/:-@\\[-`{-~]"
_CATEGORIES = "C[cfnos]?|L[lmotu]?|LC|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?|Letter|digit|Any|ASCII|Alphabetic"
_CLASS_ESCAPE = f"\\\\(?:[dDsSwW]|[pP]\\{{(?:{_CATEGORIES})\\}})"
_CHARACTER_ESCAPE = (
    "\\\\(?:[fnrtv]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u(?:[0-9A-Fa-f]{4}|\\{0*(?:[0-9A-Fa-f]{1,5}|10[0-9A-Fa-f]{4})\\})"
    f"|{_PUNCTUATION})"
)
_ATOM = f"[^\\^$\\\\.*+?()\\[\\]{{}}|]|\\.|{_CHARACTER_ESCAPE}|{_CLASS_ESCAPE}"


def _quantifier() -> str:
    number = "(?:0|[1-9][0-9]{0,4})"
    longer = "|".join(
        f"{'[0-9]' if size == 1 else f'[1-9][0-9]{{{size - 1}}}'},[1-9][0-9]{{{size},4}}" for size in (1, 2, 3, 4)
    )
    one_digit = "|".join(f"{low},[{low}-9]" for low in range(10))
    two_digits = "|".join(f"{low}[0-9],[{low + 1}-9][0-9]" for low in range(1, 9))
    same_tens = "|".join(f"{tens}{low},{tens}[{low}-9]" for tens in range(1, 10) for low in range(10))
    return f"(?:[*+?]|\\{{(?:{number},?|{longer}|{one_digit}|{two_digits}|{same_tens})\\}})\\??"


def _character_class() -> str:
    starts = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\\]-^[&"]
    ascending = "|".join(
        f"\\x{ord(low):02x}-(?:[\\x{ord(low):02x}-\\x5a_-~]|[^\\x00-\\x7f])" if ord(low) <= 0x5A
        else f"\\x{ord(low):02x}-(?:[\\x{ord(low):02x}-~]|[^\\x00-\\x7f])"
        for low in starts
    )  # fmt: skip
    three = "[0-9A-Fa-f]{3}"
    first = "|".join(f"\\\\u{_hex_class(_HEX[i])}{three}-\\\\u{_hex_class(_HEX[i + 1 :])}{three}" for i in range(15))
    item = f"[^\\\\\\]\\-\\^\\[&]|{_CHARACTER_ESCAPE}|{_CLASS_ESCAPE}|\\\\[b-]"
    return f"\\[\\^?-?(?:{ascending}|{first}|{item})*-?\\]"


def lower(builder: Builder, spelling: Spelling) -> Expr:
    """The texts of the format, without quotes."""
    from grammask.constraints.regex import lower_pattern

    def pattern(source: str) -> Expr:
        return lower_pattern(source, builder, spelling=spelling, search=False)

    def text(source: str) -> Expr:
        return builder.text(source, spelling)

    optional_quantifier = builder.optional(pattern(_quantifier()))
    simple = builder.concat([pattern(f"{_ATOM}|{_character_class()}"), optional_quantifier])
    flat = builder.union([simple, pattern("\\^|\\$|\\\\[bB]"), text("|")])
    group_start = builder.union([text("("), text("(?:")])
    look_start = builder.union([text("(?="), text("(?!"), text("(?<="), text("(?<!")])
    disjunction = builder.repeat(flat, 0, None)
    for _ in range(MAX_NESTING):
        body = builder.concat([disjunction, text(")")])
        group = builder.concat([group_start, body, optional_quantifier])
        look_around = builder.concat([look_start, body])
        disjunction = builder.repeat(builder.union([flat, group, look_around]), 0, None)
    return disjunction
