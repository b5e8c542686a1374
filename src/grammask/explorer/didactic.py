"""Small distributions to learn with: a dozen words each, with logits made up so that every knob shows something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A made-up position.

    Attributes:
        title: what it is about.
        context: the text before.
        words: word and logit, in no particular order.
        history: words that the output has so far, for the penalties.
    """

    title: str
    context: str
    words: tuple[tuple[str, float], ...]
    history: tuple[str, ...] = ()


EXAMPLES: dict[str, Example] = {
    "peaked": Example(
        "A fact: one word holds most of the probability",
        "The capital of France is",
        (
            (" Paris", 9.0),
            (" a", 5.1),
            (" the", 4.9),
            (" located", 4.2),
            (" Lyon", 3.6),
            (" called", 3.0),
            (" in", 2.9),
            (" not", 2.6),
            (" Marseille", 2.4),
            (" also", 2.2),
            (" beautiful", 1.7),
            (" London", 1.2),
        ),
    ),
    "open": Example(
        "A story: many words are as good as any other",
        "Behind the old lighthouse there was a",
        (
            (" small", 4.0),
            (" garden", 3.8),
            (" path", 3.7),
            (" hidden", 3.6),
            (" house", 3.4),
            (" stone", 3.2),
            (" narrow", 3.1),
            (" boat", 2.9),
            (" cave", 2.8),
            (" large", 2.7),
            (" strange", 2.5),
            (" well", 2.3),
            (" dragon", 1.4),
            (" refrigerator", -0.9),
        ),
    ),
    "two camps": Example(
        "Yes or no: two words, and a long tail of poor ones",
        "Is a tomato a fruit? Answer:",
        (
            (" Yes", 6.2),
            (" No", 5.9),
            (" It", 3.1),
            (" A", 2.8),
            (" Botan", 2.2),
            (" Well", 1.6),
            (" The", 1.5),
            (" That", 1.1),
            (" Maybe", 0.9),
            (" Tom", 0.5),
            (" 42", -1.5),
            (" ;", -2.2),
        ),
    ),
    "loop": Example(
        "A loop: what was said is likely to be said again",
        "It was good, it was good, it was",
        (
            (" good", 7.0),
            (" great", 5.6),
            (" very", 5.0),
            (" the", 4.4),
            (" fun", 4.1),
            (" nice", 4.0),
            (" so", 3.7),
            (" bad", 3.0),
            (" late", 2.4),
            (" over", 2.1),
            (" it", 1.9),
            (" was", 1.0),
        ),
        history=(" it", " was", " good", " it", " was", " good", " it", " was"),
    ),
}
"""Name to example."""
