"""Sets of Unicode code points as sorted, disjoint, non-adjacent inclusive ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CodePointSet = tuple[tuple[int, int], ...]
"""Normalized ranges ``((first, last), ...)``: ascending, disjoint, never adjacent, so equal sets are equal tuples."""

LAST = 0x10FFFF
EMPTY: CodePointSet = ()
ANY: CodePointSet = ((0, LAST),)


def from_ranges(ranges: Iterable[tuple[int, int]]) -> CodePointSet:
    """Normalize ranges given in any order, overlapping or not."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            if last > merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def of_text(text: str) -> CodePointSet:
    """The set of the characters of ``text``."""
    return from_ranges((ord(char), ord(char)) for char in text)


def union(sets: Sequence[CodePointSet]) -> CodePointSet:
    """All code points that are in any of the sets."""
    if len(sets) == 1:
        return sets[0]
    return from_ranges(item for ranges in sets for item in ranges)


def complement(ranges: CodePointSet) -> CodePointSet:
    """All code points from U+0000 to U+10FFFF that are not in the set."""
    result: list[tuple[int, int]] = []
    start = 0
    for first, last in ranges:
        if first > start:
            result.append((start, first - 1))
        start = last + 1
    if start <= LAST:
        result.append((start, LAST))
    return tuple(result)


def intersection(left: CodePointSet, right: CodePointSet) -> CodePointSet:
    """The code points that both sets hold."""
    result: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        first = max(left[i][0], right[j][0])
        last = min(left[i][1], right[j][1])
        if first <= last:
            result.append((first, last))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def difference(left: CodePointSet, right: CodePointSet) -> CodePointSet:
    """The code points of ``left`` that ``right`` lacks."""
    return intersection(left, complement(right))


def contains(ranges: CodePointSet, code_point: int) -> bool:
    """Whether the set holds this code point."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if ranges[middle][1] < code_point:
            low = middle + 1
        else:
            high = middle
    return low < len(ranges) and ranges[low][0] <= code_point


def is_single(ranges: CodePointSet) -> bool:
    """Whether the set holds exactly one code point."""
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def partition(sets: Iterable[CodePointSet]) -> list[CodePointSet]:
    """The coarsest partition of all code points of which every given set is a union of blocks.

    Two code points share a block when they belong to the same given sets, so an automaton over the given sets treats
    them alike.
    """
    distinct = sorted(set(sets))
    events: list[tuple[int, int]] = []
    for index, ranges in enumerate(distinct):
        for first, last in ranges:
            events.append((first, index))
            events.append((last + 1, index))
    events.sort()
    blocks: dict[int, list[tuple[int, int]]] = {}
    membership = 0
    start = 0
    for position, index in events:
        if position > start:
            blocks.setdefault(membership, []).append((start, position - 1))
            start = position
        membership ^= 1 << index
    if start <= LAST:
        blocks.setdefault(membership, []).append((start, LAST))
    return [from_ranges(ranges) for ranges in blocks.values()]
