"""The explorer over HTTP: answers, streams, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import grammask
from grammask.explorer.examples import EXAMPLES
from grammask.explorer.server import MAX_BODY, Explorer, create_app
from grammask.models import ModelNotFound
from support.models import WritingModel

testclient = pytest.importorskip("starlette.testclient")

STATIC = Path(grammask.__file__).parent / "explorer" / "static"
POSITION = {"prompt": "x", "chat": False, "constraint": {"kind": "choice", "text": "yes\nno"}}


def client_of(explorer: Explorer, host: str = "http://localhost"):
    return testclient.TestClient(create_app(explorer), base_url=host)


@pytest.fixture(scope="module")
def client() -> Iterator:
    with client_of(Explorer("writer", lambda: WritingModel("yes"))) as client:
        yield client


def test_the_page_and_its_files(client) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for path in STATIC.iterdir():
        assert client.get(f"/static/{path.name}").status_code == 200
    assert client.get("/static/../server.py").status_code == 404


def test_the_page_asks_nothing_outside() -> None:
    """No address of another host in any file; the name space of SVG and HTML is no address that is fetched."""
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        text = text.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xhtml", "")
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name


def test_the_state(client) -> None:
    state = client.post("/api/state", json={}).json()
    assert state["model"] == "writer"
    assert state["version"] == grammask.__version__
    assert [example["title"] for example in state["examples"]] == [example["title"] for example in EXAMPLES]
    assert client.post("/api/ready", json={}).json()["vocabulary"] == 258


def test_an_output_as_a_stream(client) -> None:
    with client.stream("POST", "/api/run", json={**POSITION, "steps": 10}) as answer:
        items = [json.loads(line) for line in answer.iter_lines()]
    assert "".join(item["chip"]["text"] for item in items[:-1]) == "yes"
    assert items[-1] == {"end": "stop", "complete": True, "steps": 3}


def test_questions(client) -> None:
    assert client.post("/api/inspect", json=POSITION).json()["allowed"] == 2
    assert client.post("/api/knobs", json={"source": "open"}).json()["survivors"] == 14
    assert client.post("/api/automaton", json={"text": "y", **POSITION}).json()["forced"] == "'es'"
    told = client.post("/api/tokenization", json={"text": "yes", "tokenizers": ["writer"]}).json()
    assert told["tokenizers"][0]["ways"] == "1"
    assert client.post("/api/doctor", json={"constraint": {"text": "{}"}}).json()["problem"] is None
    assert client.post("/api/judge", json={**POSITION, "output": "maybe"}).json()["valid"] is False
    assert client.post("/api/check", json=POSITION).json()["ok"] is True


@pytest.mark.parametrize("name", ["inspect", "knobs", "automaton", "tokenization", "doctor", "judge", "check"])
@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        7,
        {"constraint": 3, "source": 4, "tokenizers": 5},
        {"constraint": {"kind": "regex", "text": "("}, "position": [], "source": "model", "tokenizers": ["writer"]},
        {"text": "\ud800", "output": "\ud800", "prompt": "\ud800", "constraint": {"kind": "choice", "text": "\ud800"}},
        {"text": {}, "seed": "x", "depth": [], "samples": None, "output": 1, "path": {}},
    ],
)
def test_whatever_is_asked_there_is_an_answer(client, name: str, body) -> None:
    content = json.dumps(body)
    answer = client.post(f"/api/{name}", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert answer.json()["problem"]["message"]


def test_a_problem_in_a_stream(client) -> None:
    with client.stream("POST", "/api/run", json={**POSITION, "path": [0]}) as answer:
        last = json.loads(list(answer.iter_lines())[-1])
    assert last["problem"]["field"] == "path"
    assert client.post("/api/run", json=[]).status_code == 200


def test_bodies_that_are_refused(client) -> None:
    assert client.post("/api/state", content="{}", headers={"content-type": "text/plain"}).status_code == 422
    assert client.post("/api/state", content="{", headers={"content-type": "application/json"}).status_code == 422
    large = b'"' + b"x" * MAX_BODY + b'"'
    assert client.post("/api/state", content=large, headers={"content-type": "application/json"}).status_code == 422
    deep = "[" * 100_000
    assert client.post("/api/state", content=deep, headers={"content-type": "application/json"}).status_code == 422
    assert client.get("/api/state").status_code == 405


def test_other_host_names_are_refused() -> None:
    explorer = Explorer("writer", lambda: WritingModel("yes"))
    assert client_of(explorer, "http://evil.example").get("/").status_code == 400
    assert client_of(explorer, "http://127.0.0.1:8000").get("/").status_code == 200


def test_a_model_that_cannot_be_loaded() -> None:
    def load():
        raise ModelNotFound("there is no such model", hint='pass "smollm2"')

    client = client_of(Explorer("nothing", load))
    answer = client.post("/api/ready", json={})
    assert answer.status_code == 422
    assert answer.json()["problem"]["hint"] == 'pass "smollm2"'
    assert client.post("/api/doctor", json={"constraint": {"text": "true"}}).status_code == 200
