"""``generate_valid``: an output that passes checks, by asking again with the specific errors.

The first attempt is an ordinary ``generate``. When a check refuses its value, the model sees its own output and what is
wrong with it, and writes again. For a model in this process the second constraint is narrower: what was right is forced
(which costs no forward passes), and a value that was refused at its own place is excluded, so every attempt makes
progress. A hosted model is told the same in words, and its provider gets the narrower schema.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from grammask.constraints.json_schema import JsonSchema
from grammask.decoding import InvalidValue, Result
from grammask.engine.errors import UnsatisfiableConstraint
from grammask.validation.checks import Check, run_check
from grammask.validation.history import Attempt, total_usage
from grammask.validation.pinning import pin
from grammask.validation.problems import CheckError, Path, Problem, listing, problems_of, within_value
from grammask.validation.wanted import Wanted

if TYPE_CHECKING:
    from grammask.models.base import LanguageModel, Message, Prompt


class ValidationFailed(InvalidValue):
    """No attempt passed the checks.

    Attributes:
        text: the last output.
        history: all attempts, with what was wrong.
    """

    def __init__(self, history: Sequence[Attempt], reason: str) -> None:
        last = history[-1]
        super().__init__(last.text, CheckError(*last.problems))
        self.history = tuple(history)
        self.args = (f"{reason}; the last output:\n{last.text}\n{listing(last.problems)}",)


def generate_valid(
    model: LanguageModel,
    prompt: Prompt,
    wanted: Any,
    checks: Check | Iterable[Check] = (),
    *,
    attempts: int = 3,
    keep_valid: bool = True,
    feedback: Callable[[Sequence[Problem]], str] | None = None,
    **options: Any,
) -> Result[Any]:
    """Writes an output whose value passes the checks.

    Args:
        model: a local or a hosted model.
        prompt: text, or chat messages.
        wanted: a type, a constraint or a TypedOutput. A type's own validators (Pydantic) count among the checks.
        checks: what the value must pass; see ``grammask.validation.checks``.
        attempts: how many outputs to make before giving up.
        keep_valid: force what was right in the next attempt; only for JSON, and only where the problems have places.
        feedback: from the problems to what the model is told; None is a list of them.
        options: of ``model.generate``.

    Returns:
        The Result of the accepted attempt, with the ``usage`` of all attempts and their ``history``
        (``grammask.validation.Attempt``, the accepted one last). An output that was cut by ``max_tokens`` is returned
        as it is, not complete.

    Raises:
        ValidationFailed: no attempt passed, or what is left after a refusal allows nothing.
        ConstraintError, ModelError, SamplingError: as for ``generate``.
    """
    if attempts < 1:
        raise ValueError(f"attempts is {attempts}: use at least 1")
    rules = [checks] if callable(checks) else list(checks)
    output = _Output(wanted)
    history: list[Attempt] = []
    constraint: Any = output.constraint
    kept: list[Path] = []
    asked: Prompt = prompt
    while True:
        result, text, value, problems = _attempt(model, asked, output, constraint, rules, options)
        history.append(Attempt(text, tuple(problems), result.usage, output.plain(text), tuple(kept)))
        if not problems:
            return dataclasses.replace(
                result, value=value if result.complete else None, usage=total_usage(history), history=tuple(history)
            )
        if len(history) >= attempts:
            raise ValidationFailed(history, f"none of {attempts} outputs passed the checks")
        asked = _asked_again(model, prompt, text, feedback(problems) if feedback is not None else listing(problems))
        constraint, kept = output.narrowed(history) if keep_valid else (output.constraint, [])


def _attempt(
    model: LanguageModel, prompt: Prompt, output: _Output, constraint: Any, rules: list[Check], options: dict[str, Any]
) -> tuple[Result[Any], str, Any, list[Problem]]:
    """One output and its problems. The type's validators run here and not inside ``generate``, so that what the output
    cost is known also when they refuse it."""
    try:
        result = model.generate(prompt, constraint, **options)
    except UnsatisfiableConstraint as error:
        raise UnsatisfiableConstraint(
            "nothing is left that the schema allows and the checks have not refused",
            hint="the checks and the type contradict each other, or more must be given up: keep_valid=False",
        ) from error
    if not result.complete:
        return result, result.text, None, []
    try:
        value = output.parse(result.text)
    except ValueError as error:
        return result, result.text, None, list(within_value(problems_of(error), output.plain(result.text)))
    found = [problem for rule in rules for problem in run_check(rule, value)]
    return result, result.text, value, list(within_value(found, output.plain(result.text)))


class _Output:
    """What is wanted: a constraint, and the way from its texts to values."""

    def __init__(self, wanted: Any) -> None:
        found = Wanted.of(wanted)
        self.constraint = found.constraint
        self.parse = found.parse

    def plain(self, text: str) -> Any:
        """The JSON value of an output; None where outputs are no JSON."""
        if not isinstance(self.constraint, JsonSchema):
            return None
        try:
            return json.loads(text)
        except ValueError:
            return None

    def narrowed(self, history: Sequence[Attempt]) -> tuple[Any, list[Path]]:
        """The constraint for the next attempt, and what it forces. Values refused before stay excluded."""
        constraint = self.constraint
        if not isinstance(constraint, JsonSchema):
            return constraint, []
        last = history[-1]
        schema, kept = pin(constraint.schema, last.value, last.problems)
        for earlier in history[:-1]:
            schema = _excluding(schema, earlier, kept)
        narrowed = JsonSchema(
            schema,
            property_order=constraint.property_order,
            whitespace=constraint.whitespace,
            format_assertion=constraint.format_assertion,
            formats=constraint.formats,
            registry=constraint.registry,
            escapes=constraint.escapes,
            numbers=constraint.numbers,
        )
        return narrowed, kept


def _excluding(schema: Any, attempt: Attempt, kept: Sequence[Path]) -> Any:
    """The schema without the scalar members of the root that an earlier attempt was refused for."""
    for problem in attempt.problems:
        if problem.path is None or problem.others or len(problem.path) != 1 or problem.path in kept:
            continue
        name = problem.path[0]
        refused = attempt.value.get(name) if isinstance(attempt.value, dict) else None
        properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
        if name not in properties or isinstance(refused, (dict, list)):
            continue
        narrower = {"allOf": [properties[name], {"not": {"const": refused}}]}
        schema = {**schema, "properties": {**properties, name: narrower}}
    return schema


def _asked_again(model: LanguageModel, prompt: Prompt, text: str, complaint: str) -> Prompt:
    """The prompt with the refused output and what is wrong with it."""
    told = f"That is not right:\n{complaint}\nWrite it again, complete and corrected."
    if isinstance(prompt, str) and not model.has_chat_template:
        return f"{prompt}{text}\n\n{told}\n"
    messages: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    return [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": told}]
