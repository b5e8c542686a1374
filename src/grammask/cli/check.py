"""``grammask check``: is a text valid, and if not, where does it go wrong? Needs no model."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grammask.cli.console import errors_as_exit_codes
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
from grammask.cli.inputs import text_argument
from grammask.cli.places import Place, describe_bytes, quote

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.constraints.base import Constraint

EXAMPLES = """
Examples:

  grammask check --schema record.json '{"name": "Ada"}'

  grammask check --grammar arithmetic.gbnf --input expression.txt

  cat data.json | grammask check --schema data.schema.json --property-order any

Exit status:

  0 valid; 1 not valid; 2 wrong usage; 3 the constraint cannot be enforced.
"""


@dataclass(frozen=True)
class Verdict:
    """Whether a text is valid, and where it stops being the beginning of a valid one.

    Attributes:
        valid: the whole text is valid.
        place: of the first byte that cannot stand there, or of the end if the text only stops too early; None if valid.
        found: what stands there: the bytes from there on, empty at the end.
        expected: what could have stood there, in words.
        hint: what to try, "" if there is nothing to say.
    """

    valid: bool
    place: Place | None = None
    found: bytes = b""
    expected: str = ""
    hint: str = ""

    def __str__(self) -> str:
        if self.valid:
            return "valid"
        found = quote(self.found) if self.found else "the end of the text"
        message = f"not valid at {self.place}: found {found}, expected {self.expected}"
        return f"{message}\n  hint: {self.hint}" if self.hint else message

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        if self.place is None:
            return {"valid": True}
        found = self.found.decode("utf-8", "backslashreplace")
        hint = {"hint": self.hint} if self.hint else {}
        return {"valid": False, **asdict(self.place), "found": found, "expected": self.expected, **hint}


def check_text(constraint: Constraint, data: bytes) -> Verdict:
    """Judges a text byte by byte, so the verdict does not depend on any tokenizer."""
    matcher = byte_matcher(constraint)
    matched = matcher.matched_prefix(data)
    matcher.accept_bytes(data[:matched])
    if matched == len(data) and matcher.is_complete:
        return Verdict(True)
    return Verdict(False, Place.of(data, matched), data[matched:], expected_next(matcher))


def check_with_hint(options: ConstraintOptions, data: bytes) -> Verdict:
    """Judges a text; where the order of properties is what is wrong, the hint says so."""
    verdict = check_text(options.require(), data)
    in_order = options.property_order is PropertyOrder.SCHEMA and (options.schema or options.type_name)
    if verdict.place is None or not in_order:
        return verdict
    other = check_text(replace(options, property_order=PropertyOrder.ANY).require(), data)
    if other.place is None:
        hint = "the properties are not in the schema's order; --property-order any accepts this text"
    elif other.place.byte > verdict.place.byte:
        hint = f"the properties are not in the schema's order; --property-order any accepts up to {other.place}"
    else:
        return verdict
    return replace(verdict, hint=hint)


def byte_matcher(constraint: Constraint) -> Matcher:
    """A matcher over the vocabulary of the 256 single bytes and an end of text."""
    import grammask

    bytes_and_end: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    vocabulary = grammask.Vocabulary.from_tokens([*bytes_and_end, None], eos_token_ids=[256])
    return grammask.compile(constraint, vocabulary).matcher()


def expected_next(matcher: Matcher) -> str:
    """What may come next, in words: the text that must come if it is certain, else the possible next characters."""
    forced = matcher.forced_bytes(256)
    if len(forced) > 1:
        return quote(forced)
    ends = ["the end of the text"] if matcher.is_complete else []
    following = matcher.next_bytes()
    blanks = bytes(byte for byte in following if byte in b"\t\n\r ")
    others = bytes(byte for byte in following if byte not in b"\t\n\r ")
    parts = [describe_bytes(others)] if others else []
    if blanks:
        parts.append("white space" if len(blanks) == 4 else describe_bytes(blanks))
    return " or ".join([*parts, *ends])


def check(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text; or use --input or a pipe.")] = None,
    schema: SchemaOption = None,
    type_name: TypeOption = None,
    regex: RegexOption = None,
    choice: ChoiceOption = None,
    grammar: GrammarOption = None,
    any_json: JsonOption = False,
    property_order: PropertyOrderOption = PropertyOrder.SCHEMA,
    whitespace: WhitespaceOption = FLEXIBLE,
    input_path: Annotated[
        str | None,
        typer.Option(
            "--input", "-i", metavar="FILE", help="File with the text; - is standard input. A last newline is dropped."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json-output", help="The verdict as a JSON object.")] = False,
) -> None:
    """Tell whether a text is valid; if not, at which byte it goes wrong and what was expected there."""
    with errors_as_exit_codes():
        options = ConstraintOptions(
            schema, type_name, regex, choice or [], grammar, any_json, property_order, whitespace
        )
        verdict = check_with_hint(options, text_argument(text, input_path, what="text"))
        typer.echo(json.dumps(verdict.as_json(), ensure_ascii=False) if as_json else str(verdict))
        raise typer.Exit(ExitCode.OK if verdict.valid else ExitCode.INVALID)
