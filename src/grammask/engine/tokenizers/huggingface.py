"""Tables from ``tokenizer.json`` files and from the libraries that use them.

The file is read with the standard library alone: the bytes of a token follow from its string, from the decoder (see
``decoders``) and from the list of added tokens. The normalizer and the pre-tokenizer change how text is *encoded*,
never what a token decodes to, so they play no part here.

Added tokens marked ``special`` are kept apart. Those that are not are text like any other token. The model's unknown
token stands for text that is lost, so it is kept apart too.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.engine.tokenizers.decoders import reader_for
from grammask.engine.tokenizers.end_of_text import declared_end_tokens, declared_size, known_end_tokens
from grammask.engine.tokenizers.table import MAX_SIZE, TokenTable, VocabularyError, checked_id

if TYPE_CHECKING:
    import tokenizers

_LIBRARY_HINT = "load the file with the tokenizers library and pass the Tokenizer: it then shows the ids really used"


def table_from_file(path: Path) -> TokenTable:
    """The table of a tokenizer.json, with the end tokens and the size that the files beside it declare.

    Raises:
        OSError: the file cannot be read.
        VocabularyError: it is malformed, or its tokens have no exact bytes.
    """
    table, id_of = _table(parse(path.read_bytes(), str(path)))
    declared = declared_end_tokens(path.parent, id_of)
    return replace(table, eos_token_ids=declared or table.eos_token_ids, size=declared_size(path.parent))


def table_from_json(data: object) -> TokenTable:
    """The table of a parsed tokenizer.json."""
    return _table(data)[0]


def table_from_transformers(tokenizer: Any) -> tuple[TokenTable, tokenizers.Tokenizer]:
    """The table of a fast tokenizer of transformers, and the tokenizer of the tokenizers library inside it.

    Raises:
        VocabularyError: the tokenizer is not backed by the tokenizers library.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        raise VocabularyError(
            f"{type(tokenizer).__name__} is not backed by the tokenizers library: its tokens' bytes are not known",
            hint="load it as a fast tokenizer, or from its tokenizer.json or GGUF file",
        )
    table, id_of = _table(parse(backend.to_str(), "the tokenizer"))
    tokens = list(table.tokens)
    special = dict(table.special_tokens)
    for name, token_id in zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True):
        if 0 <= token_id < len(tokens):
            tokens[token_id] = None
            special[str(name)] = token_id
    end = tokenizer.eos_token_id
    declared = () if end is None else (checked_id(end, "eos_token_id"),)
    folder = Path(str(getattr(tokenizer, "name_or_path", "") or "-"))
    if folder.is_dir():
        declared = tuple(dict.fromkeys((*declared, *declared_end_tokens(folder, id_of))))
    return replace(table, tokens=tokens, special_tokens=special, eos_token_ids=declared or table.eos_token_ids), backend


def resolve(path: str | os.PathLike[str]) -> Path:
    """The tokenizer.json that a path means: the file itself, or the one in a folder.

    Raises:
        FileNotFoundError: there is none.
    """
    place = Path(path)
    if not place.is_dir():
        return place
    file = place / "tokenizer.json"
    if not file.is_file():
        others = sorted(p.name for p in place.iterdir() if p.suffix in (".gguf", ".model", ".tiktoken"))
        also = f" (it has {', '.join(others[:5])})" if others else ""
        raise FileNotFoundError(f"{place} has no tokenizer.json{also}")
    return file


def parse(data: bytes | str, name: str) -> object:
    """The JSON in ``data``; ``name`` says in errors where it came from.

    Raises:
        VocabularyError: it is not JSON.
    """
    head = data[:4]
    if head == b"GGUF":
        raise VocabularyError(f"{name} is a GGUF file", hint="use Vocabulary.from_gguf")
    if isinstance(head, bytes) and head.startswith(b"\x1f\x8b"):
        raise VocabularyError(f"{name} is compressed", hint="decompress it first")
    try:
        return json.loads(data)
    except RecursionError:
        raise VocabularyError(f"{name} is not a tokenizer.json: it is nested too deeply") from None
    except ValueError as error:
        raise VocabularyError(
            f"{name} is not valid JSON: {error}", hint="is it a complete tokenizer.json? Download it again"
        ) from None


def _table(data: object) -> tuple[TokenTable, Callable[[str], int | None]]:
    """The table, and what gives the id of a token by its string."""
    if not isinstance(data, Mapping):
        raise VocabularyError(f"a tokenizer.json must hold an object, not {type(data).__name__}")
    model = data.get("model")
    if not isinstance(model, Mapping):
        raise VocabularyError(
            "the tokenizer has no model", hint='a tokenizer.json has an object "model" with a "vocab"'
        )
    names, model_ids, unknown = _model_tokens(model)
    added_ids, special = _add_added_tokens(data.get("added_tokens"), names, model_ids)
    if unknown is not None:
        special.setdefault(unknown, model_ids[unknown])

    tokens: list[bytes | None] = [*reader_for(data.get("decoder"))(names)]
    for token_id in special.values():
        tokens[token_id] = None
    table = TokenTable(tokens, special, known_end_tokens(special))
    return table, lambda name: added_ids.get(name, model_ids.get(name))


def _model_tokens(model: Mapping[str, object]) -> tuple[list[str], Mapping[str, int], str | None]:
    """Token strings by id, "" where an id has no token; ids by string; and the unknown token, if the model has one."""
    kind = model.get("type") or _guessed_type(model)
    if kind == "Unigram":
        return _unigram_tokens(model)
    if kind == "WordPiece":
        raise VocabularyError(
            "WordPiece tokenizers are not supported: whether a token is preceded by a space depends on its neighbours",
            hint="generative models use byte-level or SentencePiece tokenizers; use one of those",
        )
    if kind not in ("BPE", "WordLevel"):
        raise VocabularyError(f"the tokenizer has a model of unknown type {kind!r}")
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(affix):
            raise VocabularyError(
                f"the tokenizer marks parts of words ({affix} {model[affix]!r}): its tokens have no bytes of their own",
                hint="use a model with a byte-level or SentencePiece tokenizer",
            )
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, Mapping) or not vocabulary:
        raise VocabularyError("the tokenizer's model must have a vocab, an object from token to id that is not empty")
    unknown = model.get("unk_token")
    known = isinstance(unknown, str) and unknown in vocabulary
    return _by_id(vocabulary), vocabulary, unknown if isinstance(unknown, str) and known else None


def _guessed_type(model: Mapping[str, object]) -> str:
    """The type of a model in an old file that does not say."""
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def _by_id(vocabulary: Mapping[str, int]) -> list[str]:
    """The strings of a vocab, which maps them to ids, as a list by id."""
    if set(map(type, vocabulary.values())) != {int} or set(map(type, vocabulary)) != {str}:
        name, value = next((k, v) for k, v in vocabulary.items() if type(v) is not int or type(k) is not str)
        checked_id(value, f"the id of token {name!r}")
        raise VocabularyError(f"token {name!r} must be a string with an integer id")
    lowest, highest = min(vocabulary.values()), max(vocabulary.values())
    if lowest < 0 or highest >= MAX_SIZE:
        wrong = lowest if lowest < 0 else highest
        checked_id(wrong, f"the id of token {next(k for k, v in vocabulary.items() if v == wrong)!r}")
    ids = np.fromiter(vocabulary.values(), dtype=np.int64, count=len(vocabulary))
    counts = np.bincount(ids)
    if counts.max() > 1:
        twice = int(counts.argmax())
        names = [k for k, v in vocabulary.items() if v == twice]
        raise VocabularyError(f"the id {twice} belongs to {len(names)} tokens: {', '.join(map(repr, names[:3]))}")
    if np.array_equal(ids, np.arange(len(ids))):  # as most files are written
        return list(vocabulary)
    names_by_id = [""] * len(counts)
    for name, token_id in vocabulary.items():
        names_by_id[token_id] = name
    return names_by_id


def _unigram_tokens(model: Mapping[str, object]) -> tuple[list[str], Mapping[str, int], str | None]:
    pieces = model.get("vocab")
    if not isinstance(pieces, list) or not pieces:
        raise VocabularyError("a Unigram model must have a vocab, a list of [token, score] that is not empty")
    if len(pieces) > MAX_SIZE:
        raise VocabularyError(f"the tokenizer has {len(pieces)} tokens, more than {MAX_SIZE}")
    names: list[str] = []
    for index, piece in enumerate(pieces):
        if not isinstance(piece, (list, tuple)) or len(piece) != 2 or not isinstance(piece[0], str):
            raise VocabularyError(f"entry {index} of a Unigram vocab must be [token, score]")
        names.append(piece[0])
    ids = {name: index for index, name in enumerate(names)}
    if len(ids) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise VocabularyError(f"the token {twice!r} has more than one id")
    unknown = model.get("unk_id")
    if unknown is None:
        return names, ids, None
    if checked_id(unknown, "unk_id") >= len(names):
        raise VocabularyError(f"unk_id is {unknown}, but the tokenizer has {len(names)} tokens")
    return names, ids, names[checked_id(unknown, "unk_id")]


def _add_added_tokens(
    added: object, names: list[str], model_ids: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Enters the added tokens into ``names``; returns the ids of all of them, and of the special ones, by name.

    The tokenizers library does not read the declared ids: a token that the model has keeps its id, any other gets the
    next free one. A file that declares something else would give other ids in use, so it is refused.
    """
    if added is None:
        return {}, {}
    if not isinstance(added, list):
        raise VocabularyError(f"added_tokens must be a list, not {type(added).__name__}")
    ids: dict[str, int] = {}
    special: dict[str, int] = {}
    free = len(model_ids)
    for index, entry in enumerate(added):
        content = entry.get("content") if isinstance(entry, Mapping) else None
        if not isinstance(content, str):
            raise VocabularyError(f"entry {index} of added_tokens must be an object with a string as content")
        token_id = checked_id(entry.get("id"), f"the id of the added token {content!r}")
        if not content:
            continue  # the library passes over it
        if content in ids:
            raise VocabularyError(f"the added token {content!r} is declared more than once")
        used = model_ids.get(content, free)
        if token_id != used:
            raise VocabularyError(
                f"the added token {content!r} declares the id {token_id}, but the tokenizers library gives it {used}",
                hint=_LIBRARY_HINT,
            )
        free = max(free, token_id + 1)
        if token_id < len(names) and names[token_id] not in ("", content):
            raise VocabularyError(
                f"the id {token_id} belongs to both {names[token_id]!r} and the added token {content!r}",
                hint=_LIBRARY_HINT,
            )
        names.extend([""] * (token_id + 1 - len(names)))
        names[token_id] = content
        ids[content] = token_id
        if entry.get("special"):
            special[content] = token_id
    return ids, special
