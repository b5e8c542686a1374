"""The tokenization view: one text, many spellings in tokens, all of them accepted by a constraint over bytes."""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammask.explorer.constraints import ConstraintSpec
from grammask.explorer.fields import fields, names, whole
from grammask.explorer.fields import text as text_field
from grammask.explorer.json_place import place_in
from grammask.explorer.problems import Problem
from grammask.explorer.shown import TokenNames

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary

MAX_TEXT = 4000
"""Characters of a text that is split in several ways."""


class Lattice:
    """All ways to spell a text with the tokens of a vocabulary (a directed graph over the text's bytes).

    Attributes:
        count: how many ways there are; exact, however large.
    """

    def __init__(self, data: bytes, pieces: Pieces) -> None:
        self._data = data
        size = len(data)
        self._steps: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        """For each byte offset, the tokens that fit there: (end offset, token id)."""
        for start in range(size):
            for end in range(start + 1, min(size, start + pieces.longest) + 1):
                token_id = pieces.ids.get(data[start:end])
                if token_id is not None:
                    self._steps[start].append((end, token_id))
        self._ways = [0] * size + [1]
        self._fewest = [size + 1] * size + [0]
        for start in reversed(range(size)):
            self._ways[start] = sum(self._ways[end] for end, _ in self._steps[start])
            self._fewest[start] = min((1 + self._fewest[end] for end, _ in self._steps[start]), default=size + 1)
        self.count = self._ways[0]

    def fewest(self) -> list[int]:
        """A spelling with as few tokens as possible, the longest token first among equals."""
        return self._follow(lambda at: min(self._possible(at), key=lambda step: (self._fewest[step[0]], -step[0])))

    def most(self) -> list[int]:
        """Byte by byte, or as near to it as the vocabulary allows."""
        return self._follow(lambda at: min(self._possible(at)))

    def sample(self, draw: random.Random) -> list[int]:
        """One spelling, each being equally likely."""

        def step(at: int) -> tuple[int, int]:
            target = draw.randrange(self._ways[at])
            for end, token_id in self._possible(at):
                target -= self._ways[end]
                if target < 0:
                    return end, token_id
            raise AssertionError("the counts of the lattice do not add up")

        return self._follow(step)

    def _possible(self, at: int) -> list[tuple[int, int]]:
        return [step for step in self._steps[at] if self._ways[step[0]]]

    def _follow(self, step: Any) -> list[int]:
        at, ids = 0, []
        while at < len(self._data):
            at, token_id = step(at)
            ids.append(token_id)
        return ids


@dataclass(frozen=True)
class Pieces:
    """The tokens of a vocabulary by their bytes (the lowest id where several have the same), and the longest length."""

    ids: Mapping[bytes, int]
    longest: int

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Pieces:
        """Reads a vocabulary once."""
        ids: dict[bytes, int] = {}
        for token_id in range(vocabulary.size):
            data = vocabulary.token_bytes(token_id)
            if data is not None:
                ids.setdefault(data, token_id)
        return cls(ids, max(map(len, ids), default=0))


class Tokenizers:
    """The vocabularies that the view offers: the model's, and files that are read when first asked for.

    Args:
        model: the vocabulary of the model.
        name: what to call it.
        files: name to a ``tokenizer.json``, also packed with gzip.
    """

    def __init__(self, model: Vocabulary, name: str, files: Mapping[str, Path]) -> None:
        self._files = dict(files)
        self._vocabularies: dict[str, Vocabulary] = {name: model}
        self._pieces: dict[str, Pieces] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> tuple[Vocabulary, Pieces]:
        """A vocabulary and its pieces.

        Raises:
            Problem: there is no such tokenizer, or it cannot be read.
        """
        with self._lock:
            if name not in self._vocabularies:
                if name not in self._files:
                    raise Problem("tokenizer", "unknown tokenizer", f"there is no tokenizer {name!r}")
                self._vocabularies[name] = _read(self._files[name])
            if name not in self._pieces:
                self._pieces[name] = Pieces.of(self._vocabularies[name])
            return self._vocabularies[name], self._pieces[name]


def files_in(folder: Path) -> dict[str, Path]:
    """The tokenizer files of a folder, by name: ``NAME.tokenizer.json`` or ``NAME.tokenizer.json.gz``."""
    found = [*folder.glob("*.tokenizer.json"), *folder.glob("*.tokenizer.json.gz")]
    return {path.name.partition(".tokenizer.json")[0]: path for path in sorted(found)}


def _read(path: Path) -> Vocabulary:
    from grammask.engine.vocabulary import Vocabulary, VocabularyError

    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as packed:
                return Vocabulary.from_tokenizers(packed.read())
        return Vocabulary.from_tokenizers(path)
    except (OSError, VocabularyError) as error:
        raise Problem.of_error(error, "tokenizer") from error


def tokenizations(tokenizers: Tokenizers, request: Any) -> dict[str, Any]:
    """A text under several tokenizers, in several ways each.

    Args:
        request: ``text``, ``tokenizers`` (names), ``constraint`` (judges each spelling), ``seed`` and ``samples``.

    Returns:
        Per tokenizer, ``ways`` (their number, as text since it may be huge) and ``spellings``: name, tokens, and how
        the constraint judges them.

    Raises:
        Problem: a tokenizer cannot be read, or the constraint is no good.
    """
    request = fields(request)
    text = text_field(request, "text", MAX_TEXT)
    spec = ConstraintSpec.of(request.get("constraint"))
    samples = whole(request, "samples", 2, 0, 6)
    draw = random.Random(whole(request, "seed", 0, 0, 2**63))
    return {
        "text": text,
        "bytes": len(text.encode("utf-8", "replace")),
        "tokenizers": [_under(tokenizers, name, text, spec, samples, draw) for name in names(request, "tokenizers", 6)],
    }


def _under(
    tokenizers: Tokenizers, name: str, text: str, spec: ConstraintSpec, samples: int, draw: random.Random
) -> dict[str, Any]:
    vocabulary, pieces = tokenizers.get(name)
    compiled = spec.compile(vocabulary)
    shown = TokenNames(vocabulary)
    data = text.encode("utf-8", "replace")
    lattice = Lattice(data, pieces)
    spellings: list[tuple[str, list[int]]] = []
    if data and lattice.count:
        spellings = [
            ("as the model's tokenizer writes it", vocabulary.encode(data)),
            ("longest token first", vocabulary.tokenize_greedy(data)),
            ("as few tokens as possible", lattice.fewest()),
            *((f"at random, {number + 1}", lattice.sample(draw)) for number in range(samples)),
            ("as many tokens as possible", lattice.most()),
        ]
    seen: dict[tuple[int, ...], str] = {}
    told = []
    for title, ids in spellings:
        key = tuple(ids)
        if key in seen:
            continue
        seen[key] = title
        matcher = compiled.matcher()
        taken = next((count for count, token in enumerate(ids) if not matcher.accept(token)), len(ids))
        told.append(
            {
                "title": title,
                "tokens": misaligned(data, ids, vocabulary, shown, is_json=spec.is_json or _looks_like_json(text)),
                "accepted": taken,
                "complete": taken == len(ids) and matcher.is_complete,
            }
        )
    return {"name": name, "size": vocabulary.size, "ways": _count(lattice.count if data else 1), "spellings": told}


def misaligned(
    data: bytes, ids: Sequence[int], vocabulary: Vocabulary, shown: TokenNames, *, is_json: bool
) -> list[dict[str, Any]]:
    """The tokens of a text, each with what it cuts: ``half`` a character, or across several ``parts`` of JSON."""
    offsets: dict[int, str] = {}
    if is_json:
        text = data.decode("utf-8", "ignore")
        for lexeme in place_in(text).lexemes:
            offsets[len(text[: lexeme.start].encode())] = lexeme.kind
    at, tokens = 0, []
    for token_id in ids:
        size = len(vocabulary.token_bytes(token_id) or b"")
        end = at + size
        token = shown.token(token_id)
        if _inside_character(data, at) or _inside_character(data, end):
            token["half"] = True
        starts = [offset for offset in offsets if at < offset < end and offsets[offset] != "space"]
        if starts and any(offset <= at for offset in offsets):
            first = max(offset for offset in offsets if offset <= at)
            parts = [offsets[first], *(offsets[offset] for offset in sorted(starts))]
            parts = [part for part in parts if part != "space"]
            if len(parts) > 1:
                token["parts"] = parts
        tokens.append(token)
        at = end
    return tokens


def _inside_character(data: bytes, offset: int) -> bool:
    return 0 < offset < len(data) and data[offset] & 0xC0 == 0x80


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", '"')


def _count(number: int) -> str:
    """A count in full up to a million million, and beyond that as a power of ten."""
    if number < 10**12:
        return f"{number:,}"
    digits = str(number)
    return f"{digits[0]}.{digits[1]} × 10^{len(digits) - 1}"
