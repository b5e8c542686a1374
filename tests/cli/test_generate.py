"""``grammask generate`` with small models: prompts, streams, many inputs, statistics and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORD_TEXT = '{"name": "Ada", "size": "small"}'


def test_only_the_result_on_standard_output(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    model = writes(RECORD_TEXT)
    result = run("generate", "--schema", "record.json", "Who is it?")
    assert (result.code, result.out, result.err) == (0, RECORD_TEXT + "\n", "")
    assert model.names == ["smollm2"]
    assert model.prompts == [[{"role": "user", "content": "Who is it?"}]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--regex", "[a-z]+"], "word"),
        (["--choice", "good", "--choice", "bad"], "bad"),
        (["--schema", '{"type": "boolean"}'], "true"),
        ([], "free text, שלום 🚀"),
    ],
)
def test_constraints(run: Callable[..., Any], writes: Callable[..., Any], arguments: list[str], text: str) -> None:
    writes(text)
    assert run("generate", *arguments, "prompt").out == text + "\n"


def test_prompts(run: Callable[..., Any], writes: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("The text.\n", encoding="utf-8")
    examples = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "a"}]
    (tmp_path / "examples.json").write_text(json.dumps(examples), encoding="utf-8")
    calls: list[tuple[list[str], str | None, Any]] = [
        (["Ask."], None, [{"role": "user", "content": "Ask."}]),
        (["--input", "in.txt"], None, [{"role": "user", "content": "The text."}]),
        (["Ask.", "--input", "in.txt"], None, [{"role": "user", "content": "Ask.\n\nThe text."}]),
        (["Ask.", "--input", "-"], "Piped.\n", [{"role": "user", "content": "Ask.\n\nPiped."}]),
        ([], "Piped.\n", [{"role": "user", "content": "Piped."}]),
        (
            ["--system", "Be brief.", "--messages", "examples.json", "2"],
            None,
            [{"role": "system", "content": "Be brief."}, *examples, {"role": "user", "content": "2"}],
        ),
        (["--raw", "Once upon"], None, "Once upon"),
    ]
    for arguments, stdin, prompt in calls:
        model = writes("x")
        assert run("generate", *arguments, stdin=stdin).out == "x\n"
        assert model.prompts == [prompt]


def test_the_environment_names_the_model(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    model = writes("x", "x")
    run("generate", "p", env={"GRAMMASK_MODEL": "other"})
    run("generate", "--model", "third", "p", env={"GRAMMASK_MODEL": "other"})
    assert model.names == ["other", "third"]


def test_stream_prints_the_same(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("שלום 🚀")
    assert run("generate", "--stream", "p").out == "שלום 🚀\n"


def test_stats_go_to_standard_error(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("id: 42")
    result = run("generate", "--stats", "--raw", "--regex", "id: [0-9]{2}", "p")
    assert result.out == "id: 42\n"
    assert "6 tokens (4 forced, 2 sampled) in 2 forward passes after a prompt of 1;" in result.err


def test_sampling_options(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    outputs = []
    for seed in ("1", "1", "2"):
        writes("")  # at a temperature of 50 the model hardly cares
        outputs.append(run("generate", "-t", "50", "--seed", seed, "--regex", "[a-z]{20}", "p").out)
    assert outputs[0] == outputs[1] != outputs[2]
    writes("")
    assert "top_p is 3.0" in run("generate", "--top-p", "3", "p").err


@pytest.mark.parametrize(
    ("arguments", "text", "out", "err"),
    [
        (
            ["--max-tokens", "3", "--truncate", "allow", "--regex", "[a-z]{6}"],
            "abcdef",
            "abc",
            "cut after 3 tokens, before it was complete",
        ),
        (["--stop", "d", "--regex", "[a-z]{6}"], "abcdef", "abc", "ended before it was complete (--stop)"),
    ],
)
def test_incomplete_output(
    run: Callable[..., Any], writes: Callable[..., Any], arguments: list[str], text: str, out: str, err: str
) -> None:
    writes(text)
    result = run("generate", *arguments, "p")
    assert (result.code, result.out) == (5, out + "\n")
    assert err in result.err


def test_json_lines(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    requests = [
        "first",
        {"id": 7, "prompt": "second"},
        {"messages": [{"role": "user", "content": "third"}], "tag": "ט"},
    ]
    stdin = "\n".join(json.dumps(request) for request in requests) + "\n\n"
    model = writes('{"name": "A", "size": "small"}', '{"name": "B", "size": "large", "count": 3}', RECORD_TEXT)
    result = run("generate", "--json-lines", "--schema", "record.json", "--system", "S", "Do it:", stdin=stdin)
    assert result.code == 0
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["value"] for line in lines] == [
        {"name": "A", "size": "small"},
        {"name": "B", "size": "large", "count": 3},
        {"name": "Ada", "size": "small"},
    ]
    assert [line.get("id") for line in lines] == [None, 7, None]
    assert lines[2]["tag"] == "ט"
    assert lines[0]["finish_reason"] == "stop"
    assert lines[0]["usage"]["completion_tokens"] == len('{"name": "A", "size": "small"}')
    system = {"role": "system", "content": "S"}
    assert model.prompts == [
        [system, {"role": "user", "content": "Do it:\n\nfirst"}],
        [system, {"role": "user", "content": "Do it:\n\nsecond"}],
        [system, {"role": "user", "content": "third"}],
    ]


TYPES = """
from dataclasses import dataclass
from enum import Enum

class Size(Enum):
    SMALL = "small"
    LARGE = "large"

@dataclass
class Thing:
    name: str
    size: Size
"""


def test_types(run: Callable[..., Any], writes: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "shop_types.py").write_text(TYPES, encoding="utf-8")
    text = '{"name":"pot","size":"large"}'
    writes(text)
    assert run("generate", "--type", "shop_types:Thing", "p").out == text + "\n"
    writes(text)
    arguments = ["--type", "shop_types:Thing", "--whitespace", "compact", "--json-lines"]
    assert json.loads(run("generate", *arguments, stdin='"p"').out)["value"] == {"name": "pot", "size": "large"}
    assert run("check", "--type", "shop_types:Size", '"medium"').code == 1


def test_a_failing_line_does_not_stop_the_others(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("abc", "abc", "abc", context_length=40)
    stdin = json.dumps("short") + "\n" + json.dumps("long" * 50) + "\n" + json.dumps("short") + "\n"
    result = run("generate", "--json-lines", "--regex", "[a-c]+", stdin=stdin)
    assert result.code == 4
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line.get("value") for line in lines] == ["abc", None, "abc"]
    assert "writer holds 40" in lines[1]["error"]


def test_an_incomplete_line_says_so(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("abcdef")
    limits = ["--max-tokens", "2", "--truncate", "allow"]
    result = run("generate", "--json-lines", *limits, "--regex", "[a-z]{4}", stdin='"p"\n')
    line = json.loads(result.out)
    assert result.code == 5
    assert (line["text"], line["finish_reason"]) == ("ab", "length")
    assert "value" not in line
    assert "--max-tokens" in line["error"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "message"),
    [
        (["--json-lines"], "{bad", 2, "line 1 of - is not JSON"),
        (["--json-lines"], '"a"\n{"text": 1}\n', 2, "line 2 of - must be a JSON string, or an object with"),
        (["--json-lines", "--stream"], '"a"', 2, "--stream and --json-lines exclude each other"),
        (["--messages", "record.json", "p"], None, 2, "must hold a JSON list of chat messages"),
        (["--raw", "--system", "s", "p"], None, 2, "exclude --raw"),
        (["--input", "absent", "p"], None, 2, "cannot read absent"),
        (["--input", "-"], b"\xff", 2, "- is not UTF-8: byte 0 is 0xff"),
        (["--regex", "(", "p"], None, 3, "constraint syntax error"),
    ],
)
def test_errors(
    run: Callable[..., Any],
    writes: Callable[..., Any],
    arguments: list[str],
    stdin: str | bytes | None,
    code: int,
    message: str,
) -> None:
    writes("x", "x")
    result = run("generate", *arguments, stdin=stdin)
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_a_model_that_is_not_there(run: Callable[..., Any]) -> None:
    result = run("generate", "--model", "./nowhere", "prompt")
    assert (result.code, result.out) == (4, "")
    assert "there is no folder nowhere" in result.err


# -- strategies, samples, and files of results


def test_a_draft_is_streamed_on_standard_error(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    model = writes("Two and two", "5")
    result = run("generate", "--strategy", "draft", "--stream", "--choice", "4", "--choice", "5", "2+2?")
    assert result.code == 0
    assert result.out == "5\n"
    assert "Two and two" in result.err
    assert len(model.prompts) == 2


def test_several_outputs_and_votes(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes(*["good"] * 3)
    samples = run("generate", "--n", "3", "--seed", "1", "--choice", "good", "--choice", "bad", "p")
    assert (samples.code, samples.out) == (0, "good\ngood\ngood\n")
    writes(*["good"] * 3)
    vote = run("generate", "--strategy", "vote", "--n", "3", "--stats", "--choice", "good", "--choice", "bad", "p")
    assert vote.out == "good\n"
    assert "votes: 'good': 3; agreement 100%; invalid 0" in vote.err
    writes(*[RECORD_TEXT] * 2)
    field = run(
        "generate", "--strategy", "vote", "--vote-on", "size", "--n", "2", "--stats", "--schema", "record.json", "p"
    )
    assert "votes: 'small': 2" in field.err
    writes(*[RECORD_TEXT] * 5)
    missing = run("generate", "--strategy", "vote", "--vote-on", "total", "--schema", "record.json", "p")
    assert (missing.code, missing.out) == (2, "")
    assert "no field 'total' to vote on" in missing.err


def test_beam_search(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("good")
    best = run("generate", "--strategy", "beam", "--choice", "good", "--choice", "bad", "p")
    assert (best.code, best.out, best.err) == (0, "good\n", "")
    writes("good")
    two = run("generate", "--strategy", "beam", "--n", "2", "--stream", "--choice", "good", "--choice", "bad", "p")
    assert (two.code, two.out) == (0, "good\nbad\n")
    Path("in.jsonl").write_text('"p"\n"q"\n', encoding="utf-8")
    writes("good", "bad")
    lines = run(
        "generate",
        "--strategy",
        "beam",
        "--json-lines",
        "--input",
        "in.jsonl",
        "--batch-size",
        "1",
        "--choice",
        "good",
        "--choice",
        "bad",
    )
    assert [json.loads(line)["text"] for line in lines.out.splitlines()] == ["good", "bad"]


def test_sequential_monte_carlo(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("good")
    result = run(
        "generate",
        "--method",
        "smc",
        "--particles",
        "3",
        "--seed",
        "1",
        "--stats",
        "--choice",
        "good",
        "--choice",
        "bad",
        "p",
    )
    assert (result.code, result.out) == (0, "good\n")
    assert "effective of 3" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vote-on", "x"], "--vote-on goes with --strategy vote"),
        (["--particles", "2"], "particles are for method='smc'"),
        (["--output", "x.jsonl"], "--output goes with --json-lines"),
        (["--method", "smc", "--n", "2"], "leave out strategy and n"),
        (["--method", "smc", "--temperature", "0"], "use a temperature above 0"),
        (["--method", "smc", "--top-p", "0.9"], "top_p changes the distribution"),
        (["--strategy", "beam", "--temperature", "0.7"], "beam search draws nothing"),
        (["--strategy", "beam", "--top-k", "5"], "top_k changes the distribution"),
        (["--strategy", "beam", "--stop", "x"], "stop does not go together with beam search"),
        (["--n", "2", "--temperature", "0"], "several greedy outputs are all equal"),
    ],
)
def test_options_that_do_not_go_together(
    run: Callable[..., Any], writes: Callable[..., Any], arguments: list[str], message: str
) -> None:
    writes("x")
    result = run("generate", *arguments, "p")
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_an_output_file_is_completed(run: Callable[..., Any], writes: Callable[..., Any], tmp_path: Path) -> None:
    stdin = "\n".join(json.dumps({"id": number, "prompt": f"p{number}"}) for number in range(3))
    arguments = ["generate", "--json-lines", "--output", "out.jsonl", "--schema", "record.json"]
    writes(RECORD_TEXT, RECORD_TEXT, RECORD_TEXT)
    assert run(*arguments, stdin=stdin).code == 0
    file = tmp_path / "out.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["id"] for line in lines] == [0, 1, 2]
    file.write_bytes(b"".join(lines[:1]) + lines[1][:20])
    model = writes(RECORD_TEXT, RECORD_TEXT)
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.out) == (0, "")
    assert len(model.prompts) == 2
    assert [json.loads(line)["index"] for line in file.read_bytes().splitlines()] == [0, 1, 2]
    other = run(*arguments, "Another instruction", stdin=stdin)
    assert other.code == 2
    assert "belongs to another run" in other.err


def test_a_budget_that_is_too_small_is_wrong_usage(run: Callable[..., Any], writes: Callable[..., Any]) -> None:
    writes("abcdef")
    result = run("generate", "--max-tokens", "3", "--regex", "[a-z]{6}", "p")
    assert (result.code, result.out) == (2, "")
    assert "takes 6 tokens, the limit is 3" in result.err
