"""Lark's string and regular-expression literals."""

from __future__ import annotations

from grammask.constraints.grammar.characters import encode, normalize_ranges, read_hex_escape
from grammask.constraints.grammar.nodes import Characters, Literal, Pattern
from grammask.constraints.grammar.scanning import Cursor
from grammask.engine.errors import UnsupportedConstraint

_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "\\": "\\", '"': '"'}
_REGEX_FLAGS = frozenset("imslux")
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ANY_BUT_LINE_FEED = r"(?:.|[\r\u2028\u2029])"
_REGEX_SYNTAX = frozenset("^$\\.*+?()[]{}|/")


def read_string(cursor: Cursor) -> Literal | Pattern | Characters:
    """``"text"``, ``"text"i`` (in any case) or the range ``"a".."z"``."""
    start = cursor.offset
    code_points = _string(cursor)
    after = cursor.offset
    cursor.skip()
    if cursor.take(".."):
        return _range(cursor, start, code_points)
    cursor.offset = after
    text = encode(cursor.source, code_points, start)
    if cursor.peek() == "i" and cursor.peek(1) not in _NAME_CHARACTERS:
        cursor.advance()
        escaped = "".join(f"\\{char}" if char in _REGEX_SYNTAX else char for char in text.decode())
        return Pattern(f"(?i){escaped}")
    return Literal(text)


def _string(cursor: Cursor) -> list[int]:
    start = cursor.offset
    cursor.advance()
    code_points: list[int] = []
    while cursor.peek() != '"':
        char = cursor.peek()
        if char == "" or char == "\n":
            raise cursor.source.error(start, "this string is not closed on its line", hint='end it with "')
        if char != "\\":
            code_points.append(ord(cursor.advance()))
            continue
        escape = cursor.peek(1)
        if escape in ("x", "u", "U"):
            code_point, cursor.offset = read_hex_escape(cursor.source, cursor.offset)
            code_points.append(code_point)
        elif escape in _SIMPLE_ESCAPES:
            code_points.append(ord(_SIMPLE_ESCAPES[escape]))
            cursor.offset += 2
        else:
            raise cursor.source.error(
                cursor.offset,
                f"\\{escape if escape.isprintable() else ''} is not an escape",
                hint=r"the escapes are \n \r \t \f \\ \" \xHH \uHHHH \UHHHHHHHH; a backslash itself is \\",
            )
    cursor.advance()
    return code_points


def _range(cursor: Cursor, start: int, low: list[int]) -> Characters:
    cursor.skip()
    if cursor.peek() != '"':
        raise cursor.unexpected("a string after '..'")
    high = _string(cursor)
    if len(low) != 1 or len(high) != 1:
        raise cursor.source.error(start, "the ends of a range are single characters")
    if high < low:
        raise cursor.source.error(start, "the ends of this range are in the wrong order")
    ranges = normalize_ranges([(low[0], high[0])])
    if not ranges:
        raise cursor.source.error(start, "no character of UTF-8 text belongs to this range")
    return Characters(ranges)


def read_regex(cursor: Cursor) -> tuple[Pattern, tuple[int, ...]]:
    """``/pattern/flags`` in the dialect of ``grammask.Regex``, and for each of its characters the offset it came from.

    Two things are translated so that they mean what they mean in Lark: ``.`` leaves out the line feed alone, and
    ``\\w``, ``\\d`` and ``\\b`` know all of Unicode.
    """
    source = cursor.source
    start = cursor.offset
    cursor.advance()
    characters: list[tuple[str, int]] = []
    broken = in_class = unicode_classes = False
    while cursor.peek() != "/":
        offset = cursor.offset
        char = cursor.peek()
        if char == "" or (char == "\\" and cursor.peek(1) == ""):
            raise source.error(start, "this regular expression is never closed", hint="end it with /")
        cursor.advance()
        broken = broken or char == "\n"
        if char == "\\":
            escaped = cursor.advance()
            unicode_classes = unicode_classes or escaped in "wWdDbB"
            written = escaped if escaped == "/" else char + escaped
        elif char == "." and not in_class:
            written = _ANY_BUT_LINE_FEED
        else:
            in_class = char == "[" or (in_class and char != "]")
            written = char
        characters.extend((each, offset) for each in written)
    cursor.advance()
    flags = cursor.take_while(_REGEX_FLAGS)
    if broken and "x" not in flags:
        raise source.error(
            start,
            "this regular expression is not closed on its line",
            hint="end it with /, write \\n for a line break, or set the flag x to spread it over lines",
        )
    if "l" in flags:
        raise source.error(
            start, "the flag l depends on the locale of a machine", hint="leave it out", kind=UnsupportedConstraint
        )
    kept = "".join(flag for flag in "imsx" if flag in flags) + ("u" if unicode_classes else "")
    prefix = f"(?{kept})" if kept else ""
    pattern = prefix + "".join(char for char, _ in characters)
    return Pattern(pattern), (start,) * len(prefix) + tuple(offset for _, offset in characters)
