"""A reasoning field: the answer inside a JSON object, with room for words before it (or, to compare, after it).

Tokens are written from left to right, so a field in which the model may think helps only where it comes first.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grammask.decoding.partial_json import partial_json
from grammask.decoding.strategy import Strategy
from grammask.decoding.streams import StreamEvent, TextStream

if TYPE_CHECKING:
    from grammask.constraints.base import Constraint
    from grammask.decoding.result import Result
    from grammask.models import LanguageModel, Prompt

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True)
class ReasoningField(Strategy):
    """``strategy="reasoning"``: the output is ``{"reasoning": "...", "answer": ANSWER}``, where ANSWER satisfies the
    constraint.

    ``Result.text`` and ``Result.value`` are the answer, ``Result.reasoning`` is the other field, which is streamed on
    the channel "reasoning"; an answer that comes first is streamed when all is written.

    Attributes:
        name, answer: the names of the two fields.
        position: whether the reasoning comes before the answer or after it.
        max_characters: the longest reasoning.
    """

    name: str = "reasoning"
    answer: str = "answer"
    position: Literal["before", "after"] = "before"
    max_characters: int = 400

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        from grammask.decoding.partial import partial_reader

        inner, parse = constraint_and_parser(constraint)
        stream = model._stream_one(prompt, self.around(inner), **options)
        return TextStream(self._run(stream, parse), cancel=stream.cancel, partial=partial_reader(constraint))

    def around(self, constraint: Constraint | str) -> Constraint:
        """The object that holds the answer."""
        from grammask.constraints.algebra import sequence
        from grammask.constraints.json_schema import JsonSchema

        words = JsonSchema({"type": "string", "minLength": 1, "maxLength": self.max_characters})
        name, answer = json.dumps(self.name), json.dumps(self.answer)
        if self.position == "before":
            return sequence(f"{{{name}: ", words, f", {answer}: ", constraint, "}")
        return sequence(f"{{{answer}: ", constraint, f", {name}: ", words, "}")

    def split(self, text: str) -> tuple[str, str]:
        """Reasoning and answer of such an object, or of the beginning of one, as far as they are certain."""
        name, answer = json.dumps(self.name), json.dumps(self.answer)
        if self.position == "after":
            body, middle, words = text[len(f"{{{answer}: ") :].rpartition(f", {name}: ")
            found = _STRING.fullmatch(words.removesuffix("}")) if middle else None
            return (json.loads(found[0], strict=False), body) if found else ("", "")
        words = text[len(f"{{{name}: ") :]
        found = _STRING.match(words)
        if found is None:
            return partial_json(words) or "", ""
        # The last brace seems to be the object's own; if more follows, it was not, and counts then.
        return json.loads(found[0], strict=False), words[found.end() + len(f", {answer}: ") :].removesuffix("}")

    def _run(self, stream: TextStream[Any], parse: Any) -> Generator[StreamEvent, None, Result[Any]]:
        from grammask.decoding.result import InvalidValue

        whole, reasoning, answer = "", "", ""
        for event in stream.events():
            whole += event.text
            words, found = self.split(whole)
            if len(words) > len(reasoning):
                yield StreamEvent(words[len(reasoning) :], "reasoning")
                reasoning = words
            if len(found) > len(answer) and self.position == "before":
                yield StreamEvent(found[len(answer) :])
                answer = found
        result = stream.result
        if self.position == "after" and result.complete:
            answer = self.split(result.text)[1]
            yield StreamEvent(answer)
        value = None
        if result.complete:
            try:
                value = parse(answer)
            except ValueError as error:
                raise InvalidValue(answer, error) from error
        return dataclasses.replace(result, text=answer, value=value, reasoning=reasoning)


def constraint_and_parser(wanted: Any) -> tuple[Any, Any]:
    """What ``generate`` takes, as a constraint that can be part of another, and the reader of its texts."""
    from grammask.constraints.base import Constraint
    from grammask.constraints.regex import Regex
    from grammask.constraints.types import TypedOutput, typed_output
    from grammask.decoding.output import FREE_TEXT, Output, reader_of
    from grammask.engine.compile import CompiledConstraint

    if isinstance(wanted, Output):
        return wanted.compiled.constraint, wanted.parse
    if wanted is None:
        return Regex(FREE_TEXT), reader_of("")
    if isinstance(wanted, CompiledConstraint):
        wanted = wanted.constraint
    if isinstance(wanted, (Constraint, str)):
        return wanted, reader_of(wanted)
    typed = wanted if isinstance(wanted, TypedOutput) else typed_output(wanted)
    return typed.constraint, typed.parse
