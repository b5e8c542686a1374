"""Extracts a support record from a customer's message with a real model on this machine's processor.

    python examples/support_record.py [MESSAGE_FILE]

The model is SmolLM2 with 135 million parameters. It copies well and judges poorly, so it is shown two worked examples
(support_examples.json) and asked for what it can do: name, order id and items are copied from the message, and so is
the category where the message says the word, as this one does. The type sees to the rest: the output is always a
record, whatever the model makes of the message.

The same on the command line, with the type written as a JSON Schema:

    grammask generate --schema examples/support_record.schema.json --whitespace python \\
        --messages examples/support_examples.json --input examples/support_message.txt --stats
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import grammask

HERE = Path(__file__).parent


@dataclass(frozen=True)
class SupportRecord:
    """What a support desk wants to know about a message."""

    name: Annotated[str, {"minLength": 1, "maxLength": 60}]
    order_id: Annotated[str, {"pattern": "^[0-9]{2}-[0-9]{5}$"}]
    category: Literal["damaged", "late", "wrong item"]
    items: Annotated[list[Annotated[str, {"minLength": 1, "maxLength": 60}]], {"minItems": 1, "maxItems": 8}]


def show_progress(text: str) -> None:
    """Writes to standard error, at once."""
    print(text, end="", file=sys.stderr, flush=True)


def main() -> None:
    message_file = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "support_message.txt"
    message = message_file.read_text(encoding="utf-8").strip()
    examples = json.loads((HERE / "support_examples.json").read_text(encoding="utf-8"))

    show_progress("loading the model (the first time takes half a minute)\n")
    model = grammask.load_model("smollm2")
    # With the white space of json.dumps, as in the worked examples, everything between the values is certain.
    output = grammask.typed_output(SupportRecord, whitespace="python")
    show_progress("reading the message ")
    stream = model.stream([*examples, {"role": "user", "content": message}], output)
    for piece in stream:
        show_progress(piece)
    result = stream.result
    show_progress("\n\n")

    print(f"{message}\n")
    print(f"{result.value}\n")
    usage = result.usage
    print(f"{usage.completion_tokens} tokens: {usage.forced_tokens} forced by the type, {usage.sampled_tokens} sampled")
    print(f"{usage.model_calls} forward passes after a prompt of {usage.prompt_tokens} tokens")
    print(f"{result.tokens_per_second:.1f} tokens per second, {result.seconds:.1f} s in all")


if __name__ == "__main__":
    main()
