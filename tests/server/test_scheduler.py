"""The scheduler: same bytes in any company, turns, room, time, and outputs that nobody wants any more."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import grammask
from grammask.decoding.forced import CertainText
from grammask.models import FunctionModel
from grammask.sampling import Sampler
from grammask.server.metrics import Metrics
from grammask.server.scheduler import Ended, Event, Failed, Job, Piece, QueueFull, Scheduler
from grammask.server.scheduler.queue import FairQueue
from grammask.server.scheduler.sequence import OutputSequence
from support.models import byte_vocabulary
from support.server import Served, random_model, served, until


class Gate(FunctionModel):
    """A model that waits before each forward pass until it is let through."""

    def __init__(self) -> None:
        self.passes = threading.Semaphore(0)
        self.asked: list[tuple[int, ...]] = []

        def logits(tokens: Any) -> Any:
            self.asked.append(tuple(tokens))
            self.passes.acquire()
            return np.zeros(258)

        super().__init__(byte_vocabulary(), logits, chat=lambda messages: str(messages[-1]["content"]), name="gate")

    def open(self) -> None:
        self.passes.release(1_000_000)


def test_same_bytes_alone_and_in_company() -> None:
    """Sixteen clients at a time get what each gets alone; prompts of any length, constraints and free text."""
    requests = [
        {"seed": seed, "text": "x" * (1 + 37 * seed % 700), "max_tokens": 40, **extra}
        for seed, extra in enumerate(
            [{}, {"guided_regex": "[a-z]{20}"}, {"temperature": 0.5}, {"guided_json": {"type": "array", "maxItems": 3}}]
            * 4
        )
    ]

    def ask(server: Served, request: dict[str, Any]) -> Any:
        fields = dict(request)
        return server.chat(fields.pop("text"), **fields).json()["choices"]

    with served(random_model(), max_sequences=1) as server:
        alone = [ask(server, request) for request in requests]
    with served(random_model(), max_sequences=16) as server, ThreadPoolExecutor(16) as clients:
        together = list(clients.map(lambda request: ask(server, request), requests))
    assert alone == together


def test_a_full_queue_is_said_so() -> None:
    model = Gate()
    with served(model, max_sequences=1, max_waiting=1) as server, ThreadPoolExecutor(2) as clients:
        running = clients.submit(server.chat, max_tokens=2)
        until(lambda: len(model.asked) == 1)
        waiting = clients.submit(server.chat, max_tokens=2)
        until(lambda: server.service.scheduler.live_sequences == 2)
        refused = server.chat(max_tokens=2)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "server_overloaded"
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        too_many = server.chat(max_tokens=2, n=100)
        assert too_many.status_code == 429
        model.open()
        assert running.result().status_code == waiting.result().status_code == 200
        assert server.chat(max_tokens=2).status_code == 200


def test_a_request_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Gate()
    an_hour_later = SimpleNamespace(**{**vars(time), "monotonic": lambda: time.monotonic() + 3600})
    with served(model, max_sequences=1) as server, ThreadPoolExecutor(2) as clients:
        running = clients.submit(server.chat, max_tokens=50)
        until(lambda: len(model.asked) == 1)
        waiting = clients.submit(server.chat, max_tokens=50)
        until(lambda: server.service.scheduler.live_sequences == 2)
        monkeypatch.setattr("grammask.server.scheduler.scheduler.time", an_hour_later)
        model.open()
        for answer in (running.result(), waiting.result()):
            assert answer.status_code == 504
            assert answer.json()["error"]["code"] == "request_timeout"
            assert answer.headers["x-should-retry"] == "false"
        assert server.service.scheduler.live_sequences == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("waiting", [False, True], ids=["running", "waiting"])
def test_a_client_that_hangs_up(stream: bool, waiting: bool) -> None:
    model = Gate()
    with served(model, max_sequences=1) as server:
        blocker = None
        if waiting:
            blocker = threading.Thread(target=lambda: server.chat("block", max_tokens=3))
            blocker.start()
            until(lambda: len(model.asked) == 1)
        body = {"model": "gate", "messages": [{"role": "user", "content": "x"}], "max_tokens": 4000, "stream": stream}
        others = 1 if waiting else 0
        scheduler = server.service.scheduler
        _hang_up(server, body, lambda: len(model.asked) == 1 and scheduler.live_sequences == others + 1)
        until(lambda: server.service.open_generations == others)
        for _ in range(3):
            model.passes.release()
        if blocker is not None:
            blocker.join()
        model.open()
        until(lambda: scheduler.live_sequences == 0)
        # Nothing of what was given up has been written: but for the pass that was under way, the model was left alone.
        assert len(model.asked) <= 5


def _hang_up(server: Served, body: dict[str, Any], moment: Callable[[], bool]) -> None:
    """Asks, and closes the connection at a moment."""
    content = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n"
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        until(moment)


def test_clients_take_turns() -> None:
    class Entry:
        def __init__(self, client: str, number: int) -> None:
            self.job = self
            self.client = client
            self.number = number

    queue = FairQueue()
    queue.put([Entry("greedy", number) for number in range(4)])  # type: ignore[misc]
    queue.put([Entry("late", 0), Entry("later", 0)])  # type: ignore[list-item]
    removed = queue.remove(lambda entry: entry.number == 2)  # type: ignore[attr-defined]
    assert [entry.number for entry in removed] == [2]  # type: ignore[attr-defined]
    order = []
    while (entry := queue.take()) is not None:
        order.append((entry.client, entry.number))  # type: ignore[attr-defined]
    assert order == [("greedy", 0), ("late", 0), ("later", 0), ("greedy", 1), ("greedy", 3)]
    assert len(queue) == 0


def test_a_long_prompt_lets_others_pass() -> None:
    """Between the parts of a long prompt, an output that is being written goes on."""
    reads: list[tuple[int, int]] = []
    come = threading.Event()

    def logits(tokens: Any) -> Any:
        reads.append((tokens[0], len(tokens)))
        if len(reads) == 6:
            come.wait()
        return np.eye(258)[ord("a")] * 30

    model = FunctionModel(byte_vocabulary(), logits, chat=lambda m: str(m[-1]["content"]), name="long")
    with served(model, prefill_chunk=16, max_sequences=4) as server, ThreadPoolExecutor(2) as clients:
        long = clients.submit(server.chat, "L" * 3000, max_tokens=1)
        until(lambda: len(reads) == 6)
        short = clients.submit(server.chat, "S", max_tokens=10)
        until(lambda: server.service.scheduler.live_sequences == 2)
        come.set()
        assert short.result().status_code == long.result().status_code == 200
    order = "".join(chr(first) for first, _ in reads)
    assert order.strip("L") == "SL" * 9 + "S"
    assert order.endswith("L" * 100)
    parts = [length for first, length in reads if first == ord("L")]
    assert parts == [*range(16, 3000, 16), 3000]


def test_one_output_failing_leaves_the_others() -> None:
    def logits(tokens: Any) -> Any:
        return np.full(258, np.nan) if ord("!") in tokens else np.eye(258)[ord("a")] * 30

    model = FunctionModel(byte_vocabulary(), logits, chat=lambda m: str(m[-1]["content"]), name="fails")
    with served(model) as server, ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(lambda text: server.chat(text, max_tokens=5), ["!", "a", "!", "b"]))
        assert [answer.status_code for answer in answers] == [500, 200, 500, 200]
        assert answers[0].json()["error"]["code"] == "internal_error"
        streamed = server.chat("!", stream=True, max_tokens=5).text
        assert '"error":' in streamed
        assert "[DONE]" not in streamed
        assert server.get("/health").json() == {"status": "ok", "running": 0, "waiting": 0}


def test_a_pass_that_fails() -> None:
    calls = []

    def logits(tokens: Any) -> Any:
        calls.append(tokens)
        if len(calls) == 1:
            raise MemoryError("no room")
        return np.zeros(258)

    model = FunctionModel(byte_vocabulary(), logits, chat=lambda m: str(m[-1]["content"]), name="fails")
    with served(model) as server:
        assert server.chat("x", max_tokens=2).status_code == 500
        assert server.chat("x", max_tokens=2).status_code == 200


def test_forced_text_costs_no_passes() -> None:
    model = random_model()
    counted: list[int] = []
    inner = model._logits

    def logits(tokens: Any) -> Any:
        counted.append(len(tokens))
        return inner(tokens)

    model._logits = logits
    with served(model) as server:
        answer = server.chat(guided_regex="(yes|no), certainly and without any doubt").json()
        assert answer["choices"][0]["message"]["content"].endswith("without any doubt")
        assert len(counted) == 1


@pytest.mark.parametrize("pattern", ["surely (not )?[a-z]{9}", "[a-z]{3,9}"])
@pytest.mark.parametrize("logprobs", [False, True])
@pytest.mark.parametrize("together", [1, 2, 8])
def test_n_outputs_read_their_prompt_once(together: int, logprobs: bool, pattern: str) -> None:
    """And each is what it is by itself, whether the others run beside it or come later."""
    n, prompt = 5, "p" * 100
    options = {"temperature": 1.0, "logprobs": logprobs}
    expected = [_by_itself(prompt, index, pattern, options) for index in range(n)]
    assert len(set(expected)) > 1
    model, counted = random_model(), []
    inner = model._logits

    def logits(tokens: Any) -> Any:
        counted.append(len(tokens))
        return inner(tokens)

    model._logits = logits
    with served(model, max_sequences=together, prefill_chunk=32) as server:
        body = {"model": "random", "prompt": prompt, "n": n, "seed": 3, "guided_regex": pattern}
        answer = server.post("/v1/completions", {**body, **({"logprobs": 0} if logprobs else {})}).json()
        assert [choice["text"] for choice in answer["choices"]] == expected
        # The last part of the prompt goes together with what is certain after it, if that is known.
        parts = [length for length in counted if length <= len(prompt)]
        assert parts in ([32, 64, 96], [32, 64, 96, 100])
        assert server.service.scheduler._batch._sessions == {}


def _by_itself(prompt: str, index: int, pattern: str, options: dict[str, Any]) -> str:
    """One of the n outputs, without a scheduler."""
    model = random_model()
    vocabulary = model.vocabulary
    sampler = Sampler(
        grammask.Sampling(**options),
        vocabulary.size,
        eos_token_ids=vocabulary.eos_token_ids,
        token_bytes=vocabulary.token_bytes,
    )
    compiled = grammask.compile(grammask.Regex(pattern), vocabulary)
    job = Job(model.encode(prompt), compiled, sampler.sampling, 3, 5, 1024, "", 0.0, never_cut=True)
    sequence = OutputSequence(job, index, sampler, vocabulary, CertainText(vocabulary))
    session, text = model.session(), ""
    mask = np.zeros((vocabulary.size + 31) // 32, np.int32)
    while True:
        sequence.prepare()
        piece = sequence.piece()
        text += piece.text if piece else ""
        if sequence.finish_reason is not None:
            return text
        row = session.forward(sequence.unread)
        sequence.unread.clear()
        if sequence.needs_mask:
            sequence.matcher.fill_mask(mask)
        sequence.choose(row, mask)
        if sequence.finish_reason is not None:
            piece = sequence.piece()
            return text + (piece.text if piece else "")


def test_who_reads_for_others_may_leave() -> None:
    """The client of n outputs hangs up while the prompt is read, or a pass fails: nothing is left behind."""
    calls = []

    def logits(tokens: Any) -> Any:
        calls.append(tokens)
        if len(calls) == 2:
            raise MemoryError("no room")
        return np.eye(258)[ord("a")] * 30

    model = FunctionModel(byte_vocabulary(), logits, chat=lambda m: str(m[-1]["content"]), name="fails")
    with served(model, prefill_chunk=16, max_sequences=2) as server:
        assert server.chat("x" * 100, max_tokens=2, n=3).status_code == 500
        answer = server.chat("x" * 100, max_tokens=2, n=3).json()
        assert [choice["message"]["content"] for choice in answer["choices"]] == ["aa"] * 3
        until(lambda: server.service.scheduler.live_sequences == 0)
        assert server.service.scheduler._batch._sessions == {}


def test_the_scheduler_by_itself() -> None:
    """Without a server: events in order, and a scheduler that has been stopped takes nothing."""
    model = random_model()
    told: list[tuple[Job, Event]] = []
    over = threading.Event()

    def deliver(events: list[tuple[Job, Event]]) -> None:
        told.extend(events)
        if any(isinstance(event, (Ended, Failed)) for _, event in events):
            over.set()

    from grammask.models.batch import SessionBatch

    scheduler = Scheduler(
        lambda: SessionBatch(model),
        model.vocabulary,
        deliver,
        Metrics(),
        max_sequences=2,
        max_waiting=2,
        chunk=64,
        request_timeout=60,
    )
    scheduler.start()
    compiled = grammask.compile(grammask.Regex("a{3}b{3}c?"), model.vocabulary)
    job = Job([1, 2, 3], compiled, grammask.Sampling(), 1, 1, 50, "me", time.monotonic() + 60)
    scheduler.submit(job)
    assert over.wait(30)
    scheduler.stop()
    pieces = [event for _, event in told if isinstance(event, Piece)]
    [ended] = [event for _, event in told if isinstance(event, Ended)]
    assert "".join(piece.text for piece in pieces) in ("aaabbb", "aaabbbc")
    assert ended.reason == "stop"
    assert ended.forced == 6
    with pytest.raises(QueueFull):
        scheduler.submit(job)


def test_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    with served(random_model(), whitespace="compact") as server:
        for _ in range(3):
            server.chat(guided_json={"type": "boolean"}, seed=1)
        server.chat(guided_regex="[")
        text = server.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values['grammask_compile_cache_total{event="miss"}']) == 2
    assert float(values['grammask_compile_cache_total{event="hit"}']) == 2
    assert float(values['grammask_outputs_total{constraint="json_schema",reason="stop"}']) == 3
    assert float(values['grammask_requests_total{endpoint="/v1/chat/completions",status="400"}']) == 1
    assert float(values["grammask_running_outputs"]) == 0
    assert json.loads(json.dumps(values))["grammask_first_token_seconds_count"] == "3.0"
