"""``grammask providers``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from grammask.cli.app import app


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["providers", *arguments], env={"COLUMNS": "200"})


def test_overview() -> None:
    result = run()
    assert result.exit_code == 0
    for name in ("openai/responses", "llama.cpp", "bedrock"):
        assert name in result.stdout


def test_one_provider_with_its_sources() -> None:
    result = run("cohere")
    assert result.exit_code == 0
    assert "0.01 to 0.99" in result.stdout
    assert "top_k → top_p" in result.stdout
    assert "cohere-python" in result.stdout


def test_one_api() -> None:
    result = run("ollama/openai")
    assert "/v1/chat/completions" in result.stdout
    assert "/api/chat" not in result.stdout


def test_json() -> None:
    facts = json.loads(run("tgi", "--json-output").stdout)
    top_p = facts["apis"]["generate"]["parameters"]["top_p"]
    assert (top_p["minimum"], top_p["maximum"], top_p["above"], top_p["below"]) == (0, 1, True, True)
    assert top_p["source"]["date"] == "2026-01-08"
    assert len(json.loads(run("--json-output").stdout)) == 21


def test_translate() -> None:
    result = run("ollama", "--translate", '{"temperature": 0.7, "logit_bias": {"3": 1}}')
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"options": {"temperature": 0.7, "top_p": 1.0}}
    assert "lost: logit_bias" in result.stderr
    both = json.loads(run("ollama", "--translate", '{"temperature": 0.7}', "--json-output").stdout)
    assert {issue["kind"] for issue in both["issues"]} == {"changed"}


def test_strict() -> None:
    assert run("openai", "--translate", '{"temperature": 0.7}', "--strict").exit_code == 0
    refused = run("openai", "--translate", '{"top_k": 3}', "--strict")
    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert "top_k" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["opnai"], "no provider 'opnai'"),
        (["openai/chats"], "no API 'chats'"),
        (["--translate", "{}"], "needs the NAME"),
        (["openai", "--strict"], "goes with --translate"),
        (["openai", "--translate", "[]"], "takes a JSON object"),
        (["openai", "--translate", "{"], "--translate: "),
        (["openai", "--translate", '{"top_q": 1}'], "top_q"),
        (["openai", "--translate", '{"top_p": 3}'], "top_p is 3"),
        (["openai", "--translate", '{"logit_bias": {"a": 1}}'], "--translate: "),
        (["openai", "--translate", '{"logit_bias": 3}'], "--translate: "),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
