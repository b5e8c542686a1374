"""``grammask tokens``: which tokens may come after a prefix."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from grammask.cli.check import expected_next
from grammask.cli.console import UsageError, complain, errors_as_exit_codes, note
from grammask.cli.constraints import (
    FLEXIBLE,
    ChoiceOption,
    ConstraintOptions,
    GrammarOption,
    JsonOption,
    PropertyOrder,
    PropertyOrderOption,
    RegexOption,
    SchemaOption,
    TypeOption,
    WhitespaceOption,
)
from grammask.cli.exit_codes import ExitCode
from grammask.cli.places import Place, quote

if TYPE_CHECKING:
    from grammask.engine.vocabulary import Vocabulary

EXAMPLES = """
Examples:

  grammask tokens --schema record.json --tokenizer tokenizer.json

  grammask tokens --schema record.json --prefix '{"na' --model smollm2

  grammask tokens --regex "(yes|no), .*" --prefix "ye" --tokenizer tokenizer.json --json-output

Each line is a token id, a tab, and the token's text.

Exit status:

  0; 1 the prefix is not possible; 2 wrong usage; 3 the constraint cannot be enforced; 4 no such tokenizer.
"""


def tokens(
    schema: SchemaOption = None,
    type_name: TypeOption = None,
    regex: RegexOption = None,
    choice: ChoiceOption = None,
    grammar: GrammarOption = None,
    any_json: JsonOption = False,
    property_order: PropertyOrderOption = PropertyOrder.SCHEMA,
    whitespace: WhitespaceOption = FLEXIBLE,
    prefix: Annotated[str, typer.Option("--prefix", "-p", metavar="TEXT", help="The text so far.")] = "",
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", metavar="FILE", help="A tokenizer.json or .gguf file.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="The tokenizer of this model, as for generate.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many tokens.")] = 100,
    as_json: Annotated[
        bool, typer.Option("--json-output", help="One JSON object with all of it, not limited.")
    ] = False,
) -> None:
    """List the tokens that are allowed after a prefix, with their text."""
    with errors_as_exit_codes():
        import grammask

        constraint = ConstraintOptions(
            schema, type_name, regex, choice or [], grammar, any_json, property_order, whitespace
        ).require()
        vocabulary = _vocabulary(tokenizer, model)
        matcher = grammask.compile(constraint, vocabulary).matcher()
        data = prefix.encode("utf-8", "surrogateescape")
        matched = matcher.matched_prefix(data)
        matcher.accept_bytes(data[:matched])
        if matched < len(data):
            complain(
                f"the prefix is not possible: at {Place.of(data, matched)} found {quote(data[matched:])}, "
                f"expected {expected_next(matcher)}"
            )
            raise typer.Exit(ExitCode.INVALID)
        allowed = [int(token) for token in matcher.allowed_token_ids()]
        if as_json:
            listed = [{"id": token, "text": _text(vocabulary, token)} for token in allowed]
            forced = [int(token) for token in matcher.forced_tokens()]
            report = {"prefix": prefix, "complete": matcher.is_complete, "forced": forced, "allowed": listed}
            typer.echo(json.dumps(report, ensure_ascii=False))
            return
        for token in allowed[:limit]:
            data_of_token = vocabulary.token_bytes(token)
            typer.echo(f"{token}\t{'(end of text)' if data_of_token is None else quote(data_of_token)}")
        shown = f", the first {limit} shown (--limit)" if len(allowed) > limit else ""
        note(
            f"{len(allowed)} of {vocabulary.size} tokens allowed{shown}; the text so far is "
            f"{'complete' if matcher.is_complete else 'not complete'}"
        )


def _vocabulary(tokenizer: str | None, model: str | None) -> Vocabulary:
    from grammask.models import load_vocabulary

    if (tokenizer is None) == (model is None):
        raise UsageError("give one of --tokenizer FILE and --model NAME")
    return load_vocabulary(tokenizer or model or "")


def _text(vocabulary: Vocabulary, token: int) -> str | None:
    """The text of a token; None for end of text. Bytes that are no UTF-8 by themselves are written ``\\xNN``."""
    data = vocabulary.token_bytes(token)
    return None if data is None else data.decode("utf-8", "backslashreplace")
