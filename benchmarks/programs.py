"""What programs save: forward passes and tokens read, beside asking again with the whole prompt each time.

    python -m benchmarks.programs [--json FILE]

The same texts are generated twice with SmolLM2 under the same constraints. "naive" is one call of ``generate`` for each
generation, with everything so far as its prompt and no cache; "program" is a ``State`` (or the narrowed second attempt
of ``generate_valid``). Tokens read are those given to forward passes; what the constraint makes certain is read but not
asked for.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grammask
from benchmarks.tables import Table
from grammask import Regex, State, gen, select, together, where
from grammask.models import Model, Prompt, Session
from grammask.validation import field

ARTICLE = (
    "The river Aln rises in the hills of Cheviot, runs for 30 kilometres to the east, and reaches the sea at Alnmouth. "
    "In its middle course it passes the town of Alnwick, known for its castle and its gardens. Salmon live in "
    "it. In 2008 it flooded twice, after rains in July and in September, and new banks were built in the years after. "
) * 3


class CountingModel(Model):
    """A model that counts what it reads, and keeps nothing between calls.

    Attributes:
        passes: forward passes. tokens: tokens given to them.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.passes = 0
        self.tokens = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def name(self) -> str:
        return str(self._model.name)

    @property
    def vocabulary(self) -> Any:
        return self._model.vocabulary

    @property
    def context_length(self) -> int | None:
        return self._model.context_length  # type: ignore[no-any-return]

    @property
    def has_chat_template(self) -> bool:
        return True

    def encode(self, prompt: Prompt) -> list[int]:
        return self._model.encode(prompt)  # type: ignore[no-any-return]

    def session(self) -> Session:
        return _CountingSession(self._model.session(), self)


class _CountingSession:
    def __init__(self, session: Any, model: CountingModel) -> None:
        self._session = session
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def forward(self, token_ids: Sequence[int]) -> Any:
        self._model.passes += 1
        self._model.tokens += len(token_ids)
        return self._session.forward(token_ids)

    def fork(self) -> Any:
        return _CountingSession(self._session.fork(), self._model)


@dataclass(frozen=True)
class Cost:
    """What one way of doing it cost."""

    passes: int
    tokens_read: int


def measured(model: Model, work: Callable[[CountingModel], Any]) -> Cost:
    """The cost of some work with a model."""
    counting = CountingModel(model)
    work(counting)
    return Cost(counting.passes, counting.tokens)


NAME, CLASS = Regex("[A-Z][a-z]{2,9}"), ["wizard", "warrior", "thief"]


def sheet_program(model: CountingModel) -> None:
    State(model) + "A hero.\n" + together(
        "Name: ", gen("name", NAME), "\nAge: ", gen("age", where=where(integer=(18, 99))),
        "\nClass: ", select("class", CLASS), "\nWeapon: ", gen("weapon", Regex("[a-z]{3,12}")), "\n",
    )  # fmt: skip


def sheet_naive(model: CountingModel) -> None:
    text = "A hero.\n"
    fields = (
        ("Name: ", NAME),
        ("\nAge: ", where(integer=(18, 99))),
        ("\nClass: ", grammask.Choice(CLASS)),
        ("\nWeapon: ", Regex("[a-z]{3,12}")),
    )
    for label, constraint in fields:
        text += label
        text += model.generate(text, constraint).text


QUESTIONS = ("Where does it rise?", "How long is it?", "Which town does it pass?", "When did it flood?")
SHORT = where(words=(1, 6), excludes="\n", chars=(1, 40))


def chat_program(model: CountingModel) -> None:
    state = State(model).system("Answer in a few words.").user(ARTICLE + QUESTIONS[0]).assistant(gen("a", SHORT))
    for question in QUESTIONS[1:]:
        state = state.user(question).assistant(gen("a", SHORT))


def chat_naive(model: CountingModel) -> None:
    messages: list[dict[str, str]] = [{"role": "system", "content": "Answer in a few words."}]
    for number, question in enumerate(QUESTIONS):
        messages.append({"role": "user", "content": question if number else ARTICLE + question})
        messages.append({"role": "assistant", "content": model.generate(messages, SHORT).text})


def fork_program(model: CountingModel) -> None:
    state = State(model) + ARTICLE + gen("topic", Regex(" [A-Z][a-z]{2,8}"))
    for fork, question in zip(state.fork(len(QUESTIONS)), QUESTIONS, strict=True):
        fork + "\n" + question + gen("a", SHORT)


def fork_naive(model: CountingModel) -> None:
    text = ARTICLE
    text += model.generate(text, Regex(" [A-Z][a-z]{2,8}")).text
    for question in QUESTIONS:
        model.generate(f"{text}\n{question}", SHORT)


SCHEMA = grammask.JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 3, "maxLength": 20},
            "email": {"type": "string", "pattern": "^[a-z]{2,10}@[a-z]{2,10}\\.(com|org)$"},
            "age": {"enum": list(range(18, 100))},
            "city": {"type": "string", "minLength": 3, "maxLength": 20},
        },
        "required": ["name", "email", "age", "city"],
        "additionalProperties": False,
    },
    whitespace="python",
)
ASKED = [{"role": "user", "content": "Invent a person, as JSON."}]


def retry(model: CountingModel, *, keep: bool) -> None:
    """The first age is refused, whatever it is."""
    ages: list[int] = []

    def changed(age: int) -> bool:
        ages.append(age)
        return len(ages) > 1

    grammask.generate_valid(
        model, ASKED, SCHEMA, field("age", changed, "that is not the age; write another one"), keep_valid=keep
    )


CASES: dict[str, tuple[Callable[[CountingModel], Any], Callable[[CountingModel], Any]]] = {
    "four fields in one grammar": (sheet_naive, sheet_program),
    "chat of four questions": (chat_naive, chat_program),
    "four forks of one text": (fork_naive, fork_program),
    "one field of four refused": (lambda model: retry(model, keep=False), lambda model: retry(model, keep=True)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="where to put the figures")
    options = parser.parse_args()
    model = grammask.load_model("smollm2")
    rows: list[Sequence[str]] = []
    figures: dict[str, Any] = {}
    for name, (naive, program) in CASES.items():
        before, after = measured(model, naive), measured(model, program)
        figures[name] = {"naive": vars(before), "program": vars(after)}
        rows.append(
            [
                name,
                str(before.passes),
                str(after.passes),
                str(before.tokens_read),
                str(after.tokens_read),
                f"{before.tokens_read / after.tokens_read:.1f}x",
            ]
        )
    head = ["task", "passes, naive", "passes, program", "tokens read, naive", "tokens read, program", "fewer tokens"]
    print(Table("Programs beside asking again, SmolLM2", head, rows).markdown())
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
