"""What was tried before a value was accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from grammask.decoding import Usage
from grammask.validation.problems import Path, Problem


@dataclass(frozen=True)
class Attempt:
    """One output of the model and what was wrong with it.

    Attributes:
        text: the output.
        problems: empty for the accepted one.
        usage: what it cost.
        value: the JSON value that was read from it; None if there was none.
        kept: places whose values were forced because they had been right before.
        repaired: the text was no JSON as it stood (a code fence, words around it, a missing bracket) and was read with
            repairs.
    """

    text: str
    problems: tuple[Problem, ...]
    usage: Usage
    value: Any = None
    kept: tuple[Path, ...] = ()
    repaired: bool = False


def total_usage(attempts: Iterable[Attempt]) -> Usage:
    """The cost of all attempts together."""
    usages = [attempt.usage for attempt in attempts]
    return Usage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        sum(usage.forced_tokens for usage in usages),
        sum(usage.model_calls for usage in usages),
    )
