"""Where blanks may stand between the tokens of a JSON text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from grammask._core import Builder, Expr

Whitespace = Literal["flexible", "compact", "python"]
POLICIES: tuple[Whitespace, ...] = ("flexible", "compact", "python")

MAX_BLANKS = 64
"""Blanks in a row under the flexible policy: enough for pretty-printing, and an end to a model that loops on them."""


MAX_INDENT = 16


def check(policy: object) -> None:
    """Raises ValueError if this is no policy for white space."""
    if isinstance(policy, int) and not isinstance(policy, bool) and 0 <= policy <= MAX_INDENT:
        return
    if policy not in POLICIES:
        names = ", ".join(POLICIES)
        raise ValueError(f"whitespace is one of {names}, or an indent from 0 to {MAX_INDENT}, not {policy!r}")


class Punctuation(NamedTuple):
    """The texts around values; ``before_value`` is part of the body of every value but the outermost."""

    before_value: Expr
    open_object: Expr
    colon: Expr
    comma: Expr
    item_comma: Expr
    close_object: Expr
    open_array: Expr
    close_array: Expr


def punctuation(policy: Whitespace, builder: Builder) -> Punctuation:
    literal, concat = builder.literal, builder.concat
    if policy == "flexible":
        # A call, so that the count of blanks is a state of one shared frame instead of one of every place with a gap.
        blanks = builder.repeat(builder.byte_set([(9, 10), (13, 13), (32, 32)]), 1, MAX_BLANKS)
        gap = builder.optional(builder.call(blanks))
        return Punctuation(
            before_value=gap,
            open_object=concat([literal(b"{"), gap]),
            colon=concat([gap, literal(b":")]),
            comma=concat([gap, literal(b","), gap]),
            item_comma=concat([gap, literal(b",")]),
            close_object=concat([gap, literal(b"}")]),
            open_array=literal(b"["),
            close_array=concat([gap, literal(b"]")]),
        )
    comma, colon = (literal(b", "), literal(b": ")) if policy == "python" else (literal(b","), literal(b":"))
    return Punctuation(
        before_value=builder.epsilon,
        open_object=literal(b"{"),
        colon=colon,
        comma=comma,
        item_comma=comma,
        close_object=literal(b"}"),
        open_array=literal(b"["),
        close_array=literal(b"]"),
    )
