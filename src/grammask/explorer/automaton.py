"""The automaton view: the frames that the constraint holds open, and the states near the cursor as a graph.

States are told apart by their readable form and by the bytes that may follow. That is enough to look at; the matcher
itself tells states apart by their expressions.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from grammask.cli.check import expected_next
from grammask.cli.places import describe_bytes, quote
from grammask.explorer.constraints import ConstraintSpec, byte_vocabulary
from grammask.explorer.fields import fields, whole
from grammask.explorer.fields import text as text_field
from grammask.explorer.json_place import schemas_at
from grammask.explorer.reasons import Reasons

if TYPE_CHECKING:
    from grammask._core import Matcher

_BLANKS = b" \t\r\n"
_LETTER = "é".encode()
"""Stands for every character of more than one byte where all of them may come."""

MAX_NODES = 30
MAX_TEXT = 20_000
_SHOWN = 240
"""Characters of a frame's expression that are shown."""


def automaton(request: Any) -> dict[str, Any]:
    """The constraint after a text: frames, place, next bytes, the local graph, and the depth along the text.

    The place is a JSON pointer, or the path of rules of a grammar.

    Args:
        request: ``constraint``, ``text``, ``depth`` (steps from the cursor, 1 to 6) and ``blanks`` (whether white space
            is followed where something else may come).

    Raises:
        Problem: the constraint is no good.
    """
    request = fields(request)
    spec = ConstraintSpec.of(request.get("constraint"))
    text = text_field(request, "text", MAX_TEXT)
    depth = whole(request, "depth", 3, 1, 6)
    vocabulary = byte_vocabulary()
    start = spec.compile(vocabulary).matcher()
    data = text.encode("utf-8", "replace")
    fits = start.matched_prefix(data)
    matcher = start.copy()
    matcher.accept_bytes(data[:fits])
    accepted = data[:fits]
    reasons = Reasons(spec, matcher, accepted, vocabulary)
    place = reasons.place
    certain = matcher.forced_bytes(64)
    return {
        "text": accepted.decode("utf-8", "replace"),
        "rest": data[fits:].decode("utf-8", "replace"),
        "complete": matcher.is_complete,
        "expected": reasons.expected(),
        "next": _next_bytes(matcher),
        "certain": certain.decode("utf-8", "ignore"),
        "forced": quote(certain) if certain else None,
        "frames": [_frame(text) for text in matcher.stack()],
        "pointer": None if place is None else place.pointer,
        "where": None if place is None else place.where,
        "schema_pointers": []
        if place is None
        else [pointer or "(root)" for pointer, _ in schemas_at(spec.schema(), place.path)],
        "rules": [
            {
                "words": str(path),
                "names": [rule.name for rule in path.rules],
                "lines": [rule.line for rule in path.rules],
            }
            for path in reasons.rules
        ],
        "heights": heights(start, accepted),
        "graph": graph(matcher, depth, follow_blanks=bool(request.get("blanks", False))),
    }


def heights(matcher: Matcher, data: bytes) -> list[dict[str, Any]]:
    """For each character of a text, the number of frames open after it, and the place if the text is JSON."""
    walk = matcher.copy()
    told = []
    text = data.decode("utf-8", "ignore")
    for position, character in enumerate(text):
        walk.accept_bytes(character.encode())
        told.append({"text": character, "height": len(walk.stack()), "pointer": ""})
        if position > 4000:
            break
    return told


def graph(matcher: Matcher, depth: int, *, follow_blanks: bool) -> dict[str, Any]:
    """The states within ``depth`` steps of the cursor.

    A step is one byte, or a run of bytes without a choice. Characters of several bytes are one step where all may come.

    Returns:
        ``nodes`` (id, layer, label, complete, expanded), ``edges`` (from, to, label, and bytes as a count), ``cut``:
        whether there are more states than are shown, ``blanks_left_out``.
    """
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    known: dict[tuple[Any, ...], int] = {}
    cut = blanks_left_out = False

    def node_of(state: Matcher, layer: int) -> tuple[int | None, bool]:
        identity = (tuple(state.stack()), state.next_bytes(), state.is_complete)
        if identity in known:
            return known[identity], False
        if len(nodes) >= MAX_NODES:
            return None, False
        known[identity] = len(nodes)
        nodes.append(
            {
                "id": len(nodes),
                "layer": layer,
                "label": _label(state),
                "complete": state.is_complete,
                "height": len(state.stack()),
                "expanded": False,
            }
        )
        return len(nodes) - 1, True

    first, _ = node_of(matcher, 0)
    waiting = deque([(matcher.copy(), first, 0)])
    while waiting:
        state, number, layer = waiting.popleft()
        if layer >= depth or number is None:
            continue
        nodes[number]["expanded"] = True
        steps, skipped = _steps(state, follow_blanks)
        blanks_left_out = blanks_left_out or skipped
        targets: dict[int, list[bytes]] = {}
        for step in steps:
            after = state.copy()
            if not after.accept_bytes(step):
                continue
            target, is_new = node_of(after, layer + 1)
            if target is None:
                cut = True
                continue
            targets.setdefault(target, []).append(step)
            if is_new:
                waiting.append((after, target, layer + 1))
        edges.extend({"from": number, "to": target, "label": _step_label(labels)} for target, labels in targets.items())
    return {"nodes": nodes, "edges": edges, "cut": cut, "blanks_left_out": blanks_left_out}


def _steps(state: Matcher, follow_blanks: bool) -> tuple[list[bytes], bool]:
    """The steps to follow from a state, and whether white space was left out."""
    forced = state.forced_bytes(48)
    if forced:
        return [forced], False
    following = state.next_bytes()
    blanks = [byte for byte in following if byte in _BLANKS]
    ascii_bytes = [byte for byte in following if byte < 0x80]
    wide = [byte for byte in following if byte >= 0x80]
    skipped = False
    if not follow_blanks and blanks and len(ascii_bytes) > len(blanks) and len(ascii_bytes) < 90:
        ascii_bytes = [byte for byte in ascii_bytes if byte not in _BLANKS]
        skipped = True
    steps = [bytes([byte]) for byte in ascii_bytes]
    if wide:
        if _LETTER[0] in wide and state.matched_prefix(_LETTER) == len(_LETTER):
            steps.append(_LETTER)
        else:
            steps.extend(bytes([byte]) for byte in wide[:4])
    return steps, skipped


def _step_label(steps: list[bytes]) -> str:
    single = bytes(step[0] for step in steps if len(step) == 1)
    parts = [describe_bytes(single)] if single else []
    for step in steps:
        if step == _LETTER:
            parts.append("a non-ASCII character")
        elif len(step) > 1:
            parts.append(quote(step, 24))
    label = ", ".join(parts)
    return label if len(label) <= 46 else label[:45] + "…"


def _label(state: Matcher) -> str:
    """A few words for a state: what may come next."""
    if not state.next_bytes():
        return "end"
    expected = expected_next(state)
    return expected if len(expected) <= 30 else expected[:29] + "…"


def _next_bytes(matcher: Matcher) -> dict[str, Any]:
    following = matcher.next_bytes()
    return {"count": len(following), "words": describe_bytes(following), "bytes": list(following)}


def _frame(text: str) -> dict[str, Any]:
    return {"text": text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…", "length": len(text)}
