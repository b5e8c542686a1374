"""What an answer must be: the forms in which a provider may be asked for it, and the exact judgement of what comes.

The forms go from the strongest to the weakest: the provider enforces the constraint, or something close to it; the
provider enforces JSON; the model is told in words. Whatever the form, an answer counts only if grammask's own matcher
accepts it and the type's own validators do.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from grammask.constraints.algebra import Exactly
from grammask.constraints.base import Constraint
from grammask.constraints.choice import Choice
from grammask.constraints.json_schema import JsonSchema
from grammask.constraints.json_value import JsonValue
from grammask.constraints.regex import Regex
from grammask.constraints.tools import ToolCalls
from grammask.constraints.types import TypedOutput, typed_output
from grammask.engine.compile import CompiledConstraint
from grammask.hosted.protocol import FREE, Format
from grammask.hosted.repair import NoJson, find_json
from grammask.hosted.rewriting import Inexpressible, Rewritten, rewrite
from grammask.hosted.subset import Subset
from grammask.models.errors import ModelError
from grammask.providers import Api
from grammask.validation.json_problems import JsonProblems, accepts, compile_for_bytes, read_json, write_json
from grammask.validation.problems import Problem, problems_of, within_value

_TRIED = ("accepted", "unknown")
"""Statuses of a feature that are worth a request: one of unknown status is tried, and left if it is refused."""


@dataclass(frozen=True)
class Form:
    """One way of asking.

    Attributes:
        format: what the provider is asked to enforce.
        instructions: what the model is told in words.
        rewritten: how the schema was changed for the provider.
        notes: what the provider does not enforce.
        exact: the answer needs no reading but the one for its type, so it may be shown while it is written.
    """

    format: Format = FREE
    instructions: str = ""
    rewritten: Rewritten | None = None
    notes: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True)
class Judgement:
    """What became of an answer.

    Attributes:
        text: the output, spelled as the constraint has it.
        json: the JSON value, None where the output is no JSON.
        value: the output as a value of the type.
        problems: why it does not count; empty if it does.
        repaired: it had to be dug out of the answer.
    """

    text: str
    json: Any = None
    value: Any = None
    problems: tuple[Problem, ...] = ()
    repaired: bool = False


class Answer:
    """The wanted output of one call.

    Args:
        wanted: None for free text, a Constraint, a text that stands for itself, a CompiledConstraint, a TypedOutput or
            a Python type.

    Raises:
        ConstraintError: it cannot be enforced exactly, so an answer could not be judged.
        ModelError: it is made for a model in this process.
    """

    def __init__(self, wanted: Any) -> None:
        if isinstance(wanted, CompiledConstraint):
            wanted = wanted.constraint
        if isinstance(wanted, ToolCalls):
            raise ModelError(
                "tool calls of a hosted model are read by its provider",
                hint="use grammask.run_tools(model, messages, tools)",
            )
        self.is_free = wanted is None
        self._parse: Callable[[str], Any] = str
        if isinstance(wanted, str):
            wanted = Exactly(wanted)
        elif wanted is not None and not isinstance(wanted, Constraint):
            typed = wanted if isinstance(wanted, TypedOutput) else typed_output(wanted)
            wanted, self._parse = typed.constraint, typed.parse
        elif isinstance(wanted, (JsonSchema, JsonValue)):
            self._parse = json.loads
        self._constraint: Constraint | None = wanted
        self._json: JsonProblems | None = None
        if isinstance(wanted, JsonSchema):
            self._json = JsonProblems(wanted)
        elif isinstance(wanted, JsonValue):
            self._json = JsonProblems(JsonSchema(True))
        elif wanted is not None:
            self._compiled = compile_for_bytes(wanted)

    # -- asking

    def forms(self, api: Api, provider: str, subset: Subset) -> Iterator[Form]:
        """The ways of asking a provider, the strongest first."""
        if self._constraint is None:
            yield Form()
        elif self._json is not None:
            yield from self._json_forms(api, subset)
        else:
            yield from self._text_forms(api, provider.partition("/")[0], subset)

    def _json_forms(self, api: Api, subset: Subset) -> Iterator[Form]:
        schema = self._constraint.schema if isinstance(self._constraint, JsonSchema) else True
        if isinstance(schema, Mapping) and api.features["json_schema"].status in _TRIED:
            with contextlib.suppress(Inexpressible):
                yield self._schema_form(schema, api, subset)
        told = "Answer with a JSON value and nothing else: no explanation, no code fence."
        if isinstance(schema, Mapping):
            shown = json.dumps(schema, ensure_ascii=False, default=str)
            told = (
                f"Answer with a JSON value and nothing else: no explanation, no code fence. "
                f"It must satisfy this JSON Schema:\n{shown}"
            )
        form = Form(instructions=told, notes=("the schema is told to the model in words",), exact=False)
        is_object = isinstance(schema, Mapping) and schema.get("type") == "object"
        if is_object and api.features["json_object"].status in _TRIED:
            yield replace(form, format=Format("json_object"))
        yield form

    def _schema_form(self, schema: Any, api: Api, subset: Subset) -> Form:
        rewritten = rewrite(schema, subset)
        # Strict mode is OpenAI's subset: a server that knows it refuses a schema that is sent as it is.
        strict = api.features["strict"].status == "accepted" and subset.all_required
        notes = [f"at {pointer or '(root)'}: {keyword} is checked afterwards" for pointer, keyword in rewritten.dropped]
        notes += [f"at {pointer or '(root)'}: no further members are offered" for pointer in rewritten.narrowed]
        return Form(
            Format("json_schema", rewritten.schema, strict=strict),
            rewritten=rewritten,
            notes=tuple(notes),
            exact=not rewritten.wrapped and not rewritten.nullable,
        )

    def _text_forms(self, api: Api, provider: str, subset: Subset) -> Iterator[Form]:
        constraint = self._constraint
        choices = constraint.texts if isinstance(constraint, Choice) else None
        if isinstance(constraint, Exactly):
            choices = [constraint.text]
        pattern = constraint.pattern if isinstance(constraint, Regex) and not constraint.search else None
        if isinstance(constraint, Regex) and constraint.flags:
            pattern = None
        native = provider in ("vllm", "sglang")
        if native and choices is not None and api.features["choice"].status == "accepted":
            yield Form(Format("choice", choices=tuple(choices)))
        if native and pattern is not None and api.features["regex"].status == "accepted":
            yield Form(Format("regex", text=pattern))
        schema: dict[str, Any] | None = None
        if choices is not None:
            schema = {"type": "string", "enum": choices}
        elif pattern is not None and (subset.keywords is None or "pattern" in subset.keywords):
            schema = {"type": "string", "pattern": f"^(?:{pattern})$"}
        if schema is not None and api.features["json_schema"].status in _TRIED:
            form = self._schema_form(schema, api, replace(subset, keywords=subset.keywords, root_object=True))
            yield replace(form, exact=False, rewritten=form.rewritten)
        yield Form(instructions=_told(constraint, choices), notes=("told to the model in words",), exact=False)

    # -- judging

    def judge(self, text: str, form: Form) -> Judgement:
        """Reads an answer and says what is wrong with it."""
        if self._constraint is None:
            return Judgement(text, value=text)
        if self._json is None:
            return self._judge_text(text, form)
        try:
            found, repaired = find_json(text)
        except NoJson as error:
            return Judgement(text, problems=(Problem(str(error)),))
        try:
            value = form.rewritten.restore(found) if form.rewritten is not None else found
            problems = self._json.find(value)
        except RecursionError:
            return Judgement(text, problems=(Problem("the JSON value is nested too deeply"),))
        if problems:
            return Judgement(text, value, problems=tuple(problems), repaired=repaired)
        unchanged = value is found and not repaired and _is_json(text)
        spelled = text.strip() if unchanged else write_json(value)
        try:
            return Judgement(spelled, value, self._parse(spelled), repaired=repaired)
        except ValueError as error:
            faults = tuple(within_value(problems_of(error), value))
            return Judgement(spelled, value, problems=faults, repaired=repaired)

    def _judge_text(self, text: str, form: Form) -> Judgement:
        if form.rewritten is not None:
            try:
                found, _ = find_json(text)
            except NoJson as error:
                return Judgement(text, problems=(Problem(str(error)),))
            text = str(form.rewritten.restore(found))
        for candidate in _candidates(text):
            if accepts(self._compiled, candidate):
                repaired = candidate != text and form.rewritten is None
                return Judgement(candidate, value=candidate, repaired=repaired)
        return Judgement(text, problems=(Problem(self._fault(text)),))

    def _fault(self, text: str) -> str:
        """Where a text leaves the constraint."""
        matcher = self._compiled.matcher()
        data = text.encode(errors="replace")
        good = matcher.matched_prefix(data)
        head = data[:good].decode(errors="ignore")
        if good == len(data):
            return f"the answer {text!r} is not complete"
        return f"the answer {text!r} is not allowed from character {len(head) + 1} on"


def _told(constraint: Constraint | None, choices: list[str] | None) -> str:
    if choices is not None:
        listed = "\n".join(f"- {choice}" for choice in choices[:200])
        return f"Answer with exactly one of these and nothing else:\n{listed}"
    if isinstance(constraint, Regex):
        told = "Answer with a text that matches this regular expression as a whole, and nothing else:"
        return f"{told}\n{constraint.pattern}"
    return "Answer with nothing but the output itself: no explanation, no quotes, no code fence."


def _candidates(text: str) -> Iterator[str]:
    """An answer as it is and without what models put around it."""
    yield text
    stripped = text.strip()
    yield stripped
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        yield stripped[stripped.index("\n") + 1 : -3].strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'`":
        yield stripped[1:-1]


def _is_json(text: str) -> bool:
    try:
        read_json(text.strip())
    except (ValueError, RecursionError):
        return False
    return True
