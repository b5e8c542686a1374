"""Who may come in, what may come in, what the log says, and where settings come from."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from grammask.server.logs import JsonFormatter, TextFormatter, log
from grammask.server.settings import ServerSettings, load_settings
from support.server import Served, random_model, served


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    with served(
        random_model(),
        api_keys=("first-key", "second-key"),
        allowed_hosts=("127.0.0.1", "example.org"),
        cors_origins=("https://page.example",),
        max_body_bytes=2000,
    ) as server:
        yield server


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


WRONG = [{}, bearer("wrong"), {"Authorization": "first-key"}, {"Authorization": "Bearer"}, bearer("first-ke\u00ff")]


@pytest.mark.parametrize("headers", WRONG)
def test_without_a_key(guarded: Served, headers: dict[str, str]) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    for path in ("/v1/models", "/metrics", "/openapi.json", "/nothing"):
        answer = httpx.get(guarded.url + path, headers=encoded)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_with_a_key(guarded: Served) -> None:
    for key in ("first-key", "second-key"):
        assert guarded.get("/v1/models", headers=bearer(key)).status_code == 200
    assert guarded.get("/health").status_code == 200


def test_hosts(guarded: Served) -> None:
    keys = bearer("first-key")
    assert guarded.get("/v1/models", headers={**keys, "Host": "example.org:8000"}).status_code == 200
    refused = guarded.get("/v1/models", headers={**keys, "Host": "evil.example"})
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "host_refused"


def test_pages_of_other_origins(guarded: Served) -> None:
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    answer = httpx.options(guarded.url + "/v1/chat/completions", headers=asked)
    assert answer.headers["access-control-allow-origin"] == "https://page.example"
    other = httpx.options(guarded.url + "/v1/chat/completions", headers={**asked, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers
    with served(random_model()) as plain:
        answer = httpx.options(plain.url + "/v1/chat/completions", headers=asked)
        assert "access-control-allow-origin" not in answer.headers


def test_long_bodies(guarded: Served) -> None:
    body = json.dumps({"model": "random", "messages": [{"role": "user", "content": "x" * 3000}]}).encode()
    headers = {**bearer("first-key"), "Content-Type": "application/json"}
    url = guarded.url + "/v1/chat/completions"
    told = httpx.post(url, content=body, headers=headers)
    untold = httpx.post(url, content=iter([body[:1000], body[1000:]]), headers=headers)
    for answer in (told, untold):
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "body_too_large"


def test_the_log_keeps_texts_to_itself(caplog: pytest.LogCaptureFixture) -> None:
    secret = "zebra crossing"
    for log_content in (False, True):
        caplog.clear()
        with (
            caplog.at_level(logging.INFO, "grammask.server"),
            served(random_model(), log_content=log_content) as server,
        ):
            server.chat(secret, max_tokens=3, guided_regex="[a-c]{3}")
            server.chat(secret, stream=True, max_tokens=3)
            server.post("/v1/completions", {"model": "random", "prompt": secret, "max_tokens": 2})
            server.post("/v1/responses", {"model": "random", "input": secret, "max_output_tokens": 2})
        lines = [JsonFormatter().format(record) for record in caplog.records]
        requests = [json.loads(line) for line in lines if "/v1/" in line]
        assert [entry["status"] for entry in requests] == [200] * 4
        assert requests[0]["constraint"] == "regex"
        assert requests[0]["finish_reasons"] == ["stop"]
        assert requests[0]["completion_tokens"] == 3
        assert requests[0]["client"] == "127.0.0.1"
        assert (secret in "".join(lines)) is log_content
        assert "POST /v1/completions status=200" in "".join(map(TextFormatter().format, caplog.records))


def test_settings_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "server.toml"
    config.write_text('model = "from-file"\nport = 1\nmax_waiting = 3\napi_keys = ["k"]\n')
    monkeypatch.setenv("GRAMMASK_PORT", "2")
    monkeypatch.setenv("GRAMMASK_MAX_WAITING", "4")
    settings = load_settings(ServerSettings, config, {"max_waiting": 5, "host": None})
    assert (settings.model, settings.port, settings.max_waiting) == ("from-file", 2, 5)
    assert settings.api_keys == ("k",)
    assert settings.host == "127.0.0.1"
    assert load_settings(ServerSettings, None, {}).model == "smollm2"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"host": "0.0.0.0"}, "no API key"),
        ({"host": "example.org"}, "no API key"),
        ({"port": 70000}, "port"),
        ({"whitespace": "none"}, "whitespace"),
        ({"api_keys": ("a b ",)}, "API key"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_settings_that_are_refused(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        load_settings(ServerSettings, None, flags)


def test_addresses_that_others_can_reach() -> None:
    assert load_settings(ServerSettings, None, {"host": "0.0.0.0", "api_keys": ["k"]}).api_keys == ("k",)
    assert load_settings(ServerSettings, None, {"host": "0.0.0.0", "no_auth": True}).no_auth
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        assert load_settings(ServerSettings, None, {"host": host}).is_loopback


def test_the_log_is_set_up(capsys: pytest.CaptureFixture[str]) -> None:
    from grammask.server.logs import set_up_logging

    before = list(log.handlers), log.level, log.propagate
    try:
        set_up_logging("json", "info")
        log.info("hello", extra={"fields": {"a": 1}})
    finally:
        log.handlers, log.level, log.propagate = before
    entry = json.loads(capsys.readouterr().err)
    assert entry["message"] == "hello"
    assert entry["a"] == 1
