"""Array layouts as expressions.

An array is a word over letters: a letter is a call of the value of one item, commas stand between. The positions are
one language over these letters, each condition on counts another, and the array is their intersection. Arrays whose
items are compared with each other are frames of the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grammask.constraints.json_schema.arrays import ArrayLayout, Letters
from grammask.constraints.json_schema.formulas import Formula

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.json_schema.whitespace import Punctuation


def array_expression(
    layout: ArrayLayout, values: Mapping[Formula, Expr], builder: Builder, punctuation: Punctuation
) -> Expr:
    """The expression of a layout."""
    return _ArrayLanguage(layout, values, builder, punctuation).expression()


class _ArrayLanguage:
    def __init__(
        self, layout: ArrayLayout, values: Mapping[Formula, Expr], builder: Builder, punctuation: Punctuation
    ) -> None:
        self._layout = layout
        self._values = values
        self._builder = builder
        self._punctuation = punctuation

    def expression(self) -> Expr:
        builder, layout, punctuation = self._builder, self._layout, self._punctuation
        if layout.has_kinds:
            return self._compared_and_counted()
        if layout.unique is not None:
            return self._unique()
        words = self._positions()
        if layout.counts or layout.clauses:
            parts = [words]
            parts += [self._counted(*count) for count in layout.counts]
            parts += [builder.union([self._option(*option) for option in clause]) for clause in layout.clauses]
            words = builder.intersection(parts)
        return builder.concat([punctuation.open_array, words, punctuation.close_array])

    def _choice(self, letters: Letters) -> Expr:
        if not letters.values:
            return self._builder.empty
        if len(letters.values) == 1:
            return self._values[letters.values[0][0]]
        return self._builder.union([self._values[formula] for formula, _ in letters.values])

    def _positions(self) -> Expr:
        """Items in their positions, with commas: built from the last position backwards."""
        builder, layout, comma = self._builder, self._layout, self._punctuation.item_comma
        width = len(layout.prefix)
        high = layout.high
        rest = self._choice(layout.rest)
        low = layout.low
        if not width:
            if high == 0 or rest == builder.empty:
                return builder.epsilon if low == 0 else builder.empty
            more = builder.repeat(builder.concat([comma, rest]), max(low - 1, 0), None if high is None else high - 1)
            words = builder.concat([rest, more])
            return words if low else builder.optional(words)
        # What may follow item number `width`: later items, each after a comma.
        if (high is not None and high <= width) or rest == builder.empty:
            tail = builder.epsilon if low <= width else builder.empty
        else:
            tail = builder.repeat(
                builder.concat([comma, rest]), max(low - width, 0), None if high is None else high - width
            )
        for position in range(width - 1, -1, -1):
            if high is not None and position >= high:
                continue
            item = self._choice(layout.prefix[position])
            parts = [comma, item, tail] if position else [item, tail]
            tail = builder.concat(parts)
            if low <= position:
                tail = builder.optional(tail)
        return tail

    def _all_letters(self) -> list[tuple[Formula, frozenset[int]]]:
        layout = self._layout
        found: dict[tuple[Formula, frozenset[int]], None] = {}
        for letters in (*layout.prefix, layout.rest):
            found.update(dict.fromkeys(letters.values))
        return list(found)

    def _step(self, letters: list[Expr]) -> Expr:
        """One item with or without the comma before it (the language of positions decides which)."""
        builder = self._builder
        return builder.concat([builder.optional(self._punctuation.item_comma), builder.union(letters)])

    def _counted(self, test: int, start: int, low: int, high: int | None) -> Expr:
        """Words in which between low and high items from start on pass the test."""
        builder = self._builder
        letters = self._all_letters()
        anything = self._step([self._values[formula] for formula, _ in letters])
        passing = self._step([self._values[formula] for formula, known in letters if test in known])
        failing = self._step([self._values[formula] for formula, known in letters if test not in known])
        if high is None:
            counted = builder.concat(
                [
                    builder.repeat(builder.concat([builder.repeat(anything, 0, None), passing]), low, low),
                    builder.repeat(anything, 0, None),
                ]
            )
        else:
            counted = builder.concat(
                [
                    builder.repeat(builder.concat([builder.repeat(failing, 0, None), passing]), low, high),
                    builder.repeat(failing, 0, None),
                ]
            )
        if not start:
            return counted
        words = builder.concat([builder.repeat(anything, start, start), counted])
        return words if low else builder.union([words, builder.repeat(anything, 0, start - 1)])

    def _option(self, test: int, position: int, later: bool) -> Expr:
        """Words whose item at a position (or some item from there on) passes the test."""
        builder = self._builder
        letters = self._all_letters()
        anything = self._step([self._values[formula] for formula, _ in letters])
        passing = self._step([self._values[formula] for formula, known in letters if test in known])
        before = builder.repeat(anything, position, None if later else position)
        return builder.concat([before, passing, builder.repeat(anything, 0, None)])

    def _unique(self) -> Expr:
        layout, punctuation = self._layout, self._punctuation
        return self._builder.unique_array(
            self._choice(layout.rest),
            prefix=[self._choice(letters) for letters in layout.prefix],
            open=punctuation.open_array,
            comma=punctuation.item_comma,
            close=punctuation.close_array,
            min_items=layout.low,
            max_items=layout.high,
        )

    def _compared_and_counted(self) -> Expr:
        layout, punctuation = self._layout, self._punctuation
        numbers = {formula: number for number, (formula, _) in enumerate(self._all_letters())}
        positions = [
            [(numbers[formula], self._counted_by(known, position)) for formula, known in letters.values]
            for position, letters in enumerate((*layout.prefix, layout.rest))
        ]
        return self._builder.counted_array(
            [self._values[formula] for formula in numbers],
            positions,
            open=punctuation.open_array,
            comma=punctuation.item_comma,
            close=punctuation.close_array,
            counts=[*[(low, high) for _, _, low, high in layout.counts], *[(1, None) for _ in layout.clauses]],
            repeats=layout.repeats is not None,
            before_item=punctuation.before_value,
            min_items=layout.low,
            max_items=layout.high,
        )

    def _counted_by(self, known: frozenset[int], position: int) -> int:
        """The bit set of the counts, and behind them of the clauses, that an item at a position adds to."""
        layout = self._layout
        adds = [test in known and position >= start for test, start, _, _ in layout.counts]
        adds += [
            any(test in known and (position >= at if later else position == at) for test, at, later in clause)
            for clause in layout.clauses
        ]
        return sum(1 << bit for bit, added in enumerate(adds) if added)
