"""Classifies messages with exact probabilities: the model's own, over the labels and nothing else.

    python examples/classification.py

``model.classify`` scores every label as a whole sequence of tokens, so labels of several tokens compare fairly, and a
label is not preferred because of how it begins.
"""

from __future__ import annotations

import grammask

MESSAGES = (
    "The parcel came on Monday, but the glass is broken.",
    "It has been three weeks and nothing has arrived.",
    "I ordered a blue chair and you sent me a red one.",
)

EXAMPLES = (
    ("The vase has a crack in it.", "damaged"),
    ("I have been waiting for my package for ten days.", "late"),
    ("This is not the book that I ordered.", "wrong item"),
)


def main() -> None:
    model = grammask.load_model("smollm2")
    examples = [
        message
        for text, label in EXAMPLES
        for message in ({"role": "user", "content": text}, {"role": "assistant", "content": label})
    ]
    for text in MESSAGES:
        found = model.classify([*examples, {"role": "user", "content": text}], ["damaged", "late", "wrong item"])
        shares = ", ".join(f"{label} {share:.0%}" for label, share in found.probabilities.items())
        print(f"{text}\n  {found.value}   ({shares})")


if __name__ == "__main__":
    main()
