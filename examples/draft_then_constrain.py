"""Thinks first, in free text, then answers in a fixed form: the draft is shown as it is written.

    python examples/draft_then_constrain.py

A constraint on the answer leaves no room to reason. With ``strategy="draft"`` the model first writes freely, and the
constrained answer is conditioned on what it wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import grammask

QUESTION = "There are 2 eggs in a nest. A bird lays 3 more eggs. How many eggs are there?"


@dataclass(frozen=True)
class Answer:
    """The answer to a sum."""

    eggs: Annotated[int, {"enum": list(range(100))}]


def main() -> None:
    model = grammask.load_model("smollm2")
    output = grammask.typed_output(Answer, whitespace="python")
    question = [{"role": "user", "content": QUESTION}]
    stream = model.stream(question, output, strategy=grammask.Draft(max_tokens=120), max_tokens=30)
    channel = ""
    for event in stream.events():
        if event.channel != channel:
            channel = event.channel
            print(f"\n[{channel}]")
        print(event.text, end="", flush=True)
    print(f"\n\n{stream.result.value}")


if __name__ == "__main__":
    main()
