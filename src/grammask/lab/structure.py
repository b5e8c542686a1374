"""Penalties against repetition on texts that must repeat: tables, lists, code, JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammask.lab.degeneration import PENALTIES
from grammask.lab.experiment import Counter, Options, forced_rows, setup_of
from grammask.lab.report import Plot, Result, Series, Table, percent
from grammask.sampling import Sampler, Sampling

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 128
"""So many tokens of each document at most."""

DOCUMENTS = {
    "table": (
        "| city | country | river |\n| --- | --- | --- |\n| Paris | France | Seine |\n| London | England | Thames |\n"
        "| Vienna | Austria | Danube |\n| Rome | Italy | Tiber |\n| Cairo | Egypt | Nile |\n"
        "| Berlin | Germany | Spree |\n"
    ),
    "list": (
        "- apples: 3 kg\n- pears: 2 kg\n- plums: 1 kg\n- flour: 2 kg\n- sugar: 1 kg\n- butter: 2 packs\n- eggs: 12\n"
        "- milk: 2 litres\n- cream: 1 litre\n- salt: 1 pack\n- honey: 1 jar\n"
    ),
    "code": (
        "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total / "
        "len(values)\n\n\ndef largest(values):\n    best = values[0]\n    for value in values:\n        if value > "
        "best:\n            best = value\n    return best\n"
    ),
    "JSON": (
        '[{"name": "Ada", "age": 36, "admin": true}, {"name": "Alan", "age": 41, "admin": false}, {"name": "Grace", '
        '"age": 85, "admin": true}, {"name": "Edsger", "age": 72, "admin": false}]'
    ),
}


@dataclass(frozen=True)
class Accuracy:
    """How often the penalized choice is the text's own next token.

    Attributes:
        structural: of the tokens without a letter or digit (punctuation and space), of which there are
            structural_tokens. other: of the rest.
    """

    document: str
    penalty: str
    structural: float
    structural_tokens: int
    other: float
    other_tokens: int


@dataclass(frozen=True)
class StructureResult(Result):
    """One accuracy per document and penalty."""

    NAME = "structure"
    TITLE = "Penalties on text that must repeat"
    METHOD = (
        "The model reads each document token by token, and at each step its most likely next token, after the penalty, "
        "is compared with the document's own. Tokens before count as output. Without a penalty, this is how well the "
        "model knows the form; what a penalty takes from it is what it breaks."
    )

    accuracies: tuple[Accuracy, ...]

    def findings(self) -> list[str]:
        found = []
        for document in DOCUMENTS:
            rows = [accuracy for accuracy in self.accuracies if accuracy.document == document]
            plain, *others = rows
            worst = min(others, key=lambda accuracy: accuracy.structural)
            mild = next(accuracy for accuracy in others if accuracy.penalty == "repetition 1.1")
            found.append(
                f"{document}: punctuation and space are right at {percent(plain.structural)} without a penalty, at "
                f"{percent(mild.structural)} with repetition 1.1, at {percent(worst.structural)} with {worst.penalty}."
            )
        return found

    def tables(self) -> list[Table]:
        return [
            Table(
                f"{document}: the most likely token is the right one",
                ("penalty", "punctuation and space", "other tokens"),
                tuple(
                    (
                        accuracy.penalty,
                        f"{percent(accuracy.structural)} of {accuracy.structural_tokens}",
                        f"{percent(accuracy.other)} of {accuracy.other_tokens}",
                    )
                    for accuracy in self.accuracies
                    if accuracy.document == document
                ),
            )
            for document in DOCUMENTS
        ]

    def plots(self) -> list[Plot]:
        names = tuple(PENALTIES)
        series = tuple(
            Series(document, names, tuple(100 * a.structural for a in self.accuracies if a.document == document))
            for document in DOCUMENTS
        )
        label = "punctuation and space right, percent"
        return [Plot("accuracy", self.TITLE, "", label, series, kind="bar")]


RESULT = StructureResult


def run(model: Model, options: Options = Options()) -> StructureResult:  # noqa: B008 - immutable
    """Reads each document once; all penalties look at the same logits."""
    steps = options.steps or STEPS
    texts = {name: _tokens(model, text)[:steps] for name, text in DOCUMENTS.items()}
    counter = Counter(options.progress, sum(len(tokens) for tokens in texts.values()))
    accuracies: list[Accuracy] = []
    for name, (first, *rest) in texts.items():
        accuracies.extend(_accuracies(model, name, first, rest, counter))
        counter.step()
    return StructureResult(setup_of(model, steps, options.seed), tuple(accuracies))


def is_structural(data: bytes) -> bool:
    """No letter or digit."""
    return not any(character.isalnum() for character in data.decode("utf-8", "replace"))


def _tokens(model: Model, text: str) -> list[int]:
    tokens = model.vocabulary.encode(text)
    return tokens if len(tokens) > 1 else [*tokens, *tokens]


def _accuracies(model: Model, name: str, first: int, rest: list[int], counter: Counter) -> list[Accuracy]:
    vocabulary = model.vocabulary
    states = {}
    for penalty, settings in PENALTIES.items():
        sampling = Sampling(temperature=0, **settings)  # type: ignore[arg-type]
        sampler = Sampler(sampling, vocabulary.size, token_bytes=vocabulary.token_bytes)
        states[penalty] = sampler.start([])
        states[penalty].append(first)
    right: dict[str, dict[bool, list[bool]]] = {penalty: {True: [], False: []} for penalty in states}
    for token, row in zip(rest, forced_rows(model, [first], rest, counter), strict=True):
        structural = is_structural(vocabulary.token_bytes(token) or b"")
        for penalty, state in states.items():
            right[penalty][structural].append(state.sampler.sample(row, state).token_id == token)
            state.append(token)
    return [
        Accuracy(name, penalty, _share(found[True]), len(found[True]), _share(found[False]), len(found[False]))
        for penalty, found in right.items()
    ]


def _share(flags: list[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
