"""Extracts an event from an announcement with a real model, and shows the record while it is written.

    python examples/extraction.py [ANNOUNCEMENT_FILE]

The record is typed: the date is a date, and an event is of one of three kinds. Whatever has been written of it can be
used at once, with the members that are not there yet absent. The model is shown two worked examples.
"""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import grammask

ANNOUNCEMENT = "The Quartet of the North gives a concert in the old mill on 2027-03-14."

EXAMPLES = (
    (
        "Lou Abel opens an exhibition in the station hall on 2026-10-05.",
        '{"date": "2026-10-05", "kind": "exhibition", "who": "Lou Abel", "place": "station hall"}',
    ),
    (
        "Omar Haddad gives a talk in the theatre on 2026-11-20.",
        '{"date": "2026-11-20", "kind": "talk", "who": "Omar Haddad", "place": "theatre"}',
    ),
)


@dataclass(frozen=True)
class Event:
    """One event of an announcement."""

    date: datetime.date
    kind: Literal["talk", "concert", "exhibition"]
    who: Annotated[str, {"minLength": 2, "maxLength": 40}]
    place: Annotated[str, {"minLength": 2, "maxLength": 40}]


def main() -> None:
    announcement = Path(sys.argv[1]).read_text(encoding="utf-8") if len(sys.argv) > 1 else ANNOUNCEMENT
    messages: list[dict[str, Any]] = []
    for text, record in EXAMPLES:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": record}]
    model = grammask.load_model("smollm2")
    output = grammask.typed_output(Event, whitespace="python")
    stream = model.stream([*messages, {"role": "user", "content": announcement}], output, max_tokens=120)
    for value in stream.values():
        print(value)
    result = stream.result
    if result.value is None:
        raise SystemExit(f"the record was cut after {result.usage.completion_tokens} tokens")
    event = result.value
    print(f"\n{event.date:%d %B %Y}: {event.kind} by {event.who}, {event.place}")
    print(f"{result.usage.completion_tokens} tokens, {result.usage.forced_tokens} of them certain without the model")


if __name__ == "__main__":
    main()
