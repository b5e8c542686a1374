"""``grammask check``: the verdict, the place, and what was expected there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CASES = [
    # arguments, text, verdict
    (["--regex", "[0-9]{4}-[0-9]{2}"], "2024-05", "valid"),
    (["--regex", "[0-9]{4}-[0-9]{2}"], "2024/05", "not valid at byte 4 (line 1, column 5): found '/05', expected '-'"),
    (
        ["--regex", "[0-9]{4}-[0-9]{2}"],
        "2024-0",
        "not valid at byte 6 (line 1, column 7): found the end of the text, expected '0' to '9'",
    ),
    (
        ["--regex", "a{1,2}"],
        "aab",
        "not valid at byte 2 (line 1, column 3): found 'b', expected the end of the text",
    ),
    (
        ["--regex", "שלום[ab]*"],
        "שלוםc",
        "not valid at byte 8 (line 1, column 5): found 'c', expected 'a', 'b' or the end of the text",
    ),
    (["--json", "--whitespace", "2"], '{\n  "a": [\n    1\n  ]\n}', "valid"),
    (
        ["--schema", '{"type": "object"}', "--whitespace", "2"],
        '{"a": 1}',
        "not valid at byte 1 (line 1, column 2): found '\"a\": 1}', expected '}' or newline",
    ),
    (["--choice", "positive", "--choice", "negative"], "negative", "valid"),
    (
        ["--choice", "positive", "--choice", "negative"],
        "posh",
        "not valid at byte 3 (line 1, column 4): found 'h', expected 'itive'",
    ),
    (["--schema", "record.json"], '{"name": "Ada", "size": "small"}', "valid"),
    (
        ["--schema", "record.json"],
        '{"name": "Ada",\n "size": "medium"}',
        "not valid at byte 26 (line 2, column 11): found 'medium\"}', expected 'l', 's'",
    ),
    (["--schema", "record.json", "--property-order", "any"], '{"size": "large", "count": 7, "name": ""}', "valid"),
]


@pytest.mark.parametrize(("arguments", "text", "verdict"), CASES)
def test_verdict(run: Callable[..., Any], arguments: list[str], text: str, verdict: str) -> None:
    result = run("check", *arguments, text)
    assert result.out == verdict + "\n"
    assert result.err == ""
    assert result.code == (0 if verdict == "valid" else 1)


def test_rules_that_do_nothing_are_told_with_their_place(run: Callable[..., Any]) -> None:
    Path("g.lark").write_text('start: "a" | b\nb: "c" b\n  d: "e"\n', encoding="utf-8")
    result = run("check", "--grammar", "g.lark", "a")
    assert (result.code, result.out) == (0, "valid\n")
    assert result.err.splitlines() == [
        (
            "g.lark: warning: line 2, column 1: b can never finish, so the alternatives that use it are dead: "
            "every alternative needs b"
        ),
        "g.lark: warning: line 3, column 3: d is never used: the start does not lead to it",
    ]


def test_verdict_for_programs(run: Callable[..., Any]) -> None:
    assert json.loads(run("check", "--regex", "ab+", "ab", "--json-output").out) == {"valid": True}
    result = run("check", "--regex", "ab+", "--json-output", "--input", "-", stdin="\na")
    assert result.code == 1
    assert json.loads(result.out) == {
        "valid": False,
        "byte": 0,
        "line": 1,
        "column": 1,
        "found": "\na",
        "expected": "'ab'",
    }


def test_texts_from_files_and_pipes(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"aaa\r\n")
    assert run("check", "--regex", "a+", "--input", "text.txt").code == 0
    assert run("check", "--regex", "a+", stdin="aaa\n").code == 0
    assert run("check", "--regex", "a+", stdin="aaa\n\n").code == 1
    assert run("check", "--regex", "a+\n", stdin="aaa\n\n").code == 0


def test_bytes_that_are_no_text(run: Callable[..., Any]) -> None:
    result = run("check", "--regex", "a.*", stdin=b"a\xff\xfe")
    assert result.code == 1
    assert result.out.startswith("not valid at byte 1 (line 1, column 2): found '\\xff\\xfe', expected ")


ORDERED = '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}'


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"b": 1, "a": 2}', "--property-order any accepts this text"),
        ('{"b": 1, "a": "x"}', "--property-order any accepts up to byte 14"),
        ('{"a": "x", "b": 1}', ""),
    ],
)
def test_a_text_in_another_order_is_told_so(run: Callable[..., Any], text: str, hint: str) -> None:
    result = run("check", "--schema", ORDERED, text)
    assert result.code == 1
    assert hint in result.out
    assert ("hint:" in result.out) == bool(hint)
    assert run("check", "--schema", ORDERED, "--property-order", "any", '{"b": 1, "a": 2}').code == 0


def test_white_space_is_named_last(run: Callable[..., Any]) -> None:
    result = run("check", "--schema", ORDERED, '{"a":"x"}')
    assert result.out.rstrip().endswith("expected '-', '0' to '9' or white space")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["text"], 2, "no constraint: give one of"),
        (["--regex", "a", "--json", "text"], 2, "--regex and --json exclude each other"),
        (["--regex", "a", "--input", "absent.txt"], 2, "cannot read absent.txt: No such file"),
        (["--regex", "a", "--input", "x", "text"], 2, "either as an argument or with --input"),
        (["--schema", "absent.json", "text"], 2, "cannot read absent.json"),
        (["--schema", "{not json", "text"], 2, "--schema is not JSON"),
        (["--grammar", "grammar.txt", "text"], 2, "must end in .gbnf or .lark"),
        (["--type", "nonsense", "text"], 2, "must look like module:Name"),
        (["--type", "no_such_module_:Name", "text"], 2, "cannot import no_such_module_"),
        (["--type", "json:Nothing", "text"], 2, "json has no Nothing"),
        (["--regex", "(a", "text"], 3, "constraint syntax error: "),
        (["--regex", "(a)\\1", "text"], 3, "unsupported constraint: "),
        (["--schema", '{"type": "integer", "minimum": 2, "maximum": 1}', "text"], 3, "unsatisfiable constraint: "),
        (["--schema", '{"type": "strin"}', "text"], 3, "constraint syntax error: "),
    ],
)
def test_errors(run: Callable[..., Any], arguments: list[str], code: int, message: str) -> None:
    result = run("check", *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
