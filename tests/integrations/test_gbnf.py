"""Constraints written out as GBNF: the same language, by grammask's own reader of GBNF and by llama.cpp's server."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import grammask
from grammask.engine.errors import ConstraintError, UnsupportedConstraint
from grammask.integrations.gbnf import to_gbnf
from grammask.integrations.wire import constraint_from_wire
from grammask.models.gguf import smollm2_file
from support.engine_cases import CASES

PERSON = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "null"}}}
CLOSED = {**PERSON, "additionalProperties": False}
MANY = {**CLOSED, "properties": {f"p{i}": {"type": "null"} for i in range(9)}}
CONSTRAINTS: dict[str, grammask.Constraint] = {
    **{case.name: constraint_from_wire(case.wire) for case in CASES},
    "optional members": grammask.JsonSchema(CLOSED),
    "some members required": grammask.JsonSchema({**CLOSED, "required": ["b"]}),
    "any order": grammask.JsonSchema({**CLOSED, "required": ["b"]}, property_order="any"),
    "number of members": grammask.JsonSchema({**CLOSED, "minProperties": 2}),
    "range": grammask.JsonSchema({"type": "number", "minimum": -1.5, "exclusiveMaximum": 12}),
    "pattern and length": grammask.JsonSchema({"type": "string", "pattern": "^[äa-c]+é?$", "maxLength": 4}),
    "format": grammask.JsonSchema({"type": "string", "format": "date"}),
    "intersection": grammask.Regex("[a-zß€😀]{2,5}") & ~grammask.Regex("[a-z]*"),
    "look-ahead": grammask.Regex("(?!no)[a-z]{2,3}"),
    "recursion": grammask.Grammar.gbnf('root ::= "(" root ")" | "x" | root "," root'),
    "quotes": grammask.Choice(['say "hi"', "a\\b", "tab\there", "]", "-", "^"]),
}


@pytest.fixture(scope="module")
def by_bytes() -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


def words_of(compiled: grammask.CompiledConstraint, rng: random.Random) -> bytes | None:
    """A word, None if none ended in time."""
    matcher = compiled.matcher()
    word = b""
    for _ in range(120):
        allowed = matcher.allowed_token_ids().tolist()
        if 256 in allowed and (len(allowed) == 1 or rng.random() < 0.4):
            return word
        # Rather what closes than what opens.
        allowed = [byte for byte in allowed if byte != 256]
        nearer = [byte for byte in allowed if byte in b'"}])e'] if len(word) > 60 else []
        byte = rng.choice(nearer or allowed)
        matcher.accept(byte)
        word += bytes([byte])
    return None


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_both_have_the_same_words(by_bytes: grammask.Vocabulary, name: str) -> None:
    constraint = CONSTRAINTS[name]
    ours = grammask.compile(constraint, by_bytes)
    written = grammask.compile(grammask.Grammar.gbnf(to_gbnf(constraint)), by_bytes)
    rng = random.Random(name)
    found = 0
    for attempt in range(120):
        source, other = (ours, written) if attempt % 2 else (written, ours)
        word = words_of(source, rng)
        if word is None or re.search(rb"[0-9][eE]", word):
            continue
        found += 1
        matcher = other.matcher()
        assert matcher.accept_bytes(word), word
        assert matcher.is_complete, word
        # A changed word is allowed by both or by none, and so is what may come next.
        cut = rng.randrange(len(word) + 1)
        prefix = [each.matcher() for each in (ours, written)]
        for each in prefix:
            assert each.accept_bytes(word[:cut])
        if not word[:cut][-1:].isdigit() and word[:cut][-1:] not in (b".", b"-"):
            # Inside a number, ours also allows what an exponent makes up for.
            assert prefix[0].next_bytes() == prefix[1].next_bytes(), word[:cut]
        assert prefix[0].is_complete == prefix[1].is_complete
    assert found >= 10


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (grammask.JsonSchema(PERSON), "names must differ"),
        (grammask.JsonValue(), "names must differ"),
        (grammask.JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}), "uniqueItems"),
        (grammask.SpecialToken("<end>"), "special token"),
        (grammask.JsonSchema(MANY, property_order="any"), "any order"),
    ],
)  # fmt: skip
def test_what_gbnf_cannot_say_is_refused(constraint: grammask.Constraint, message: str) -> None:
    with pytest.raises(UnsupportedConstraint, match=message):
        to_gbnf(constraint)


def test_what_has_no_words_is_refused() -> None:
    with pytest.raises(ConstraintError):
        to_gbnf(grammask.Regex("a") & grammask.Regex("b"))


SERVER = textwrap.dedent(
    """
    import sys
    import xllamacpp
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx, parameters.n_parallel, parameters.port = 2048, 1, 0
    parameters.warmup = False
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    print("ADDRESS", server.listening_address, flush=True)
    sys.stdin.read()
    """
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """llama.cpp's server as the xllamacpp wheel brings it, in a process of its own."""
    pytest.importorskip("xllamacpp")
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(smollm2_file())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("ADDRESS"):
                yield line.split()[1]
                break
        else:
            pytest.fail("the server did not start")
    finally:
        process.kill()
        process.wait()


def ask(server: str, **body: Any) -> str:
    request = urllib.request.Request(
        f"{server}/v1/chat/completions",
        json.dumps({"max_tokens": 150, "temperature": 0, **body}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            content: str = json.load(answer)["choices"][0]["message"]["content"]
            return content
    except urllib.error.HTTPError as error:
        pytest.fail(f"the server refuses: {error.read().decode(errors='replace')[:500]}")


@pytest.mark.model
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_llama_cpp_understands_it(server: str, case: Any) -> None:
    grammar = to_gbnf(constraint_from_wire(case.wire))
    case.check(ask(server, messages=[{"role": "user", "content": case.prompt}], grammar=grammar))
