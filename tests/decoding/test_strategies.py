"""Drafts, reasoning fields, thinking, votes and samples, over small models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import grammask
from grammask import Choice, Draft, ReasoningField, Regex, Result, Sampling, Thinking, Vote
from grammask.decoding import Usage
from grammask.models import FunctionModel
from support.models import END, WritingModel, byte_vocabulary, indifferent_model


class TwoPasses(FunctionModel):
    """Writes ``texts[i]`` in its i-th output; keeps the prompts."""

    def __init__(self, *texts: str) -> None:
        self.prompts: list[Any] = []
        self._texts = iter(texts)
        super().__init__(byte_vocabulary(), self._next, chat=lambda messages: repr(messages))

    def encode(self, prompt: grammask.models.Prompt) -> list[int]:
        self.prompts.append(prompt)
        self._start, self._goal = len(super().encode(prompt)), next(self._texts).encode()
        return super().encode(prompt)

    def _next(self, tokens: Any) -> Any:
        logits = np.zeros(self.vocabulary.size, dtype=np.float32)
        written = len(tokens) - self._start
        logits[self._goal[written] if written < len(self._goal) else END] = 30
        return logits


def test_a_draft_is_context_for_the_output() -> None:
    model = TwoPasses("7 and 5 make 12.", "12")
    stream = model.stream([{"role": "user", "content": "7+5?"}], int, strategy="draft")
    channels: dict[str, str] = {"reasoning": "", "output": ""}
    for event in stream.events():
        channels[event.channel] += event.text
    assert channels == {"reasoning": "7 and 5 make 12.", "output": "12"}
    result = stream.result
    assert (result.value, result.reasoning) == (12, "7 and 5 make 12.")
    assert model.prompts[1][1] == {"role": "assistant", "content": "7 and 5 make 12."}
    assert model.prompts[1][2]["role"] == "user"
    assert result.usage.completion_tokens == len("7 and 5 make 12.") + 1 + len("12") + 1


def test_draft_settings() -> None:
    model = TwoPasses("one two three", "b")
    result = model.generate("Q: ", Choice(["a", "b"]), strategy=Draft(max_tokens=7, instruction="So:"))
    assert (result.value, result.reasoning) == ("b", "one two")
    assert model.prompts[1] == "Q: one two\n\nSo:\n"


def test_a_cancelled_draft_has_no_output() -> None:
    model = TwoPasses("one two three", "b")
    stream = model.stream("Q", Choice(["a", "b"]), strategy="draft")
    next(stream.events())
    stream.cancel()
    assert (stream.result.finish_reason, stream.result.text, stream.result.complete) == ("cancelled", "", False)


@pytest.mark.parametrize("position", ["before", "after"])
def test_reasoning_field(position: Any) -> None:
    fields = ['"reasoning": "5 \\"and\\" 7"', '"answer": [12]']
    if position == "after":
        fields.reverse()
    model = WritingModel("{" + ", ".join(fields) + "}")
    stream = model.stream("p", list[int], strategy=ReasoningField(position=position))
    channels = {"reasoning": "", "output": ""}
    for event in stream.events():
        channels[event.channel] += event.text
    assert channels["output"] == "[12]"
    result = stream.result
    assert (result.value, result.text, result.reasoning) == ([12], "[12]", '5 "and" 7')


def test_an_answer_that_ends_in_a_brace() -> None:
    model = WritingModel('{"reasoning": "because", "answer": {"a": {"b": 1}}}')
    schema = grammask.JsonSchema({"type": "object"}, whitespace="python")
    stream = model.stream("p", schema, strategy="reasoning")
    assert "".join(stream) == '{"a": {"b": 1}}'
    assert stream.result.value == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>hm, </th no</think>\n\nyes", "hm, </th no", "yes"),
        ("<think></think>no", "", "no"),
        ("yes", "", "yes"),
    ],
)
def test_thinking_tags_as_text(text: str, reasoning: str, answer: str) -> None:
    stream = WritingModel(text).stream("p", Choice(["yes", "no"]), strategy="thinking")
    channels = {"reasoning": "", "output": ""}
    for event in stream.events():
        channels[event.channel] += event.text
    assert channels == {"reasoning": reasoning, "output": answer}
    assert (stream.result.value, stream.result.reasoning, stream.result.text) == (answer, reasoning, answer)


def test_thinking_tags_as_special_tokens() -> None:
    single: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    vocabulary = grammask.Vocabulary.from_tokens(
        [*single, None, None, None], eos_token_ids=[END], special_token_ids={"<think>": 257, "</think>": 258}
    )
    goal = [257, *b"hm", 258, *b"yes", END]

    def logits(tokens: Any) -> Any:
        row = np.zeros(vocabulary.size)
        row[goal[len(tokens) - 1]] = 30
        return row

    model = FunctionModel(vocabulary, logits)
    result = model.generate("p", Choice(["yes", "no"]), strategy=Thinking(required=True))
    assert (result.value, result.reasoning, result.text) == ("yes", "hm", "yes")


def test_samples() -> None:
    model = indifferent_model()
    options: Any = {"sampling": Sampling(temperature=1), "seed": 3}
    result = model.generate("p", Regex("[a-z]{12}"), n=4, **options)
    assert len({sample.text for sample in result.samples}) == 4
    assert result.text == result.samples[0].text == model.generate("p", Regex("[a-z]{12}"), **options).text
    assert result.usage.completion_tokens == 48
    again = model.generate("p", Regex("[a-z]{12}"), n=4, **options)
    assert [sample.text for sample in again.samples] == [sample.text for sample in result.samples]
    with pytest.raises(ValueError, match="greedy outputs are all equal"):
        model.generate("p", n=2)


@dataclass
class Answer:
    why: str
    total: int


def sample_of(value: Any, complete: bool = True) -> Result[Any]:
    return Result(value, str(value), complete, "stop", Usage(1, 2))


@pytest.mark.parametrize(
    ("vote", "values", "winner", "agreement", "tied"),
    [
        (Vote(), [1, 2, 2], 2, 2 / 3, False),
        (Vote(), [1, 2, 2, 1], 1, 1 / 2, True),
        (Vote(), [{"a": 1, "b": 2}, {"a": 3}, {"b": 2, "a": 1}], {"a": 1, "b": 2}, 2 / 3, False),
        (Vote(field="total"), [Answer("x", 1), Answer("y", 2), Answer("z", 2)], Answer("y", 2), 2 / 3, False),
        (Vote(field="a.b"), [{"a": {"b": 1}}, {"a": {"b": 1}, "c": 0}], {"a": {"b": 1}}, 1.0, False),
        (Vote(key=lambda text: text.lower()), ["No", "yes", "YES"], "yes", 2 / 3, False),
    ],
)
def test_counting(vote: Vote, values: list[Any], winner: Any, agreement: float, tied: bool) -> None:
    chosen, report = vote.count([sample_of(value) for value in values])
    assert chosen.value == winner
    assert (report.agreement, report.tied, report.n, report.invalid) == (agreement, tied, len(values), 0)


def test_incomplete_samples_have_no_vote() -> None:
    chosen, report = Vote().count([sample_of(1, False), sample_of(2), sample_of(1, False)])
    assert (chosen.value, report.invalid, report.agreement) == (2, 2, 1 / 3)
    chosen, report = Vote().count([sample_of(None, False)])
    assert (chosen.complete, report.counts) == (False, ())
    with pytest.raises(ValueError, match="no field 'b'"):
        Vote(field="b").count([sample_of({"a": 1})])


def test_a_vote_finds_the_mode() -> None:
    """Probabilities 0.6, 0.2, 0.2: of 25 samples most say the first."""
    vocabulary = byte_vocabulary()
    row = np.full(vocabulary.size, -np.inf)
    row[list(b"abc")] = np.log([0.6, 0.2, 0.2])
    model = FunctionModel(vocabulary, lambda tokens: row)
    result = model.generate("p", Regex("[abc]"), strategy="vote", n=25, sampling=Sampling(temperature=1), seed=5)
    assert result.value == "a"
    assert result.vote is not None
    assert sum(count for _, count in result.vote.counts) == 25 == len(result.samples)
    assert result.usage.completion_tokens == 25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "drafts"}, "strategy is 'drafts'"),
        ({"n": 0}, "n is 0"),
        ({"method": "mcmc"}, "method is 'mcmc'"),
        ({"particles": 3}, "particles are for method='smc'"),
        ({"method": "smc", "strategy": "vote"}, "leave out strategy"),
        ({"timeout": 0}, "timeout is 0"),
        ({"truncate": "sometimes"}, "truncate is 'sometimes'"),
    ],
)
def test_what_makes_no_sense_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        indifferent_model().generate("p", **options)


def test_a_timeout_ends_the_output() -> None:
    model = WritingModel("abcdef")
    result = model.generate("p", Regex("[a-z]{6}"), timeout=1e-9)
    assert (result.finish_reason, result.text, result.complete) == ("timeout", "a", False)  # one step starts the clock


# -- asyncio


def test_async_generate_and_stream() -> None:
    async def run() -> tuple[Any, list[str], Any, list[Any]]:
        model = WritingModel("[1, 2]")
        result = await model.agenerate("p", list[int])
        stream = model.astream("p", list[int])
        pieces = [piece async for piece in stream]
        values = [value async for value in model.astream("p", list[int]).values()]
        return result.value, pieces, (await stream.result()).value, values

    value, pieces, streamed, values = asyncio.run(run())
    assert value == streamed == [1, 2]
    assert pieces == list("[1, 2]")
    assert values == [[], [1], [1, 2], [1, 2]]


def test_cancelling_a_task_cancels_the_output() -> None:
    """The output has no end of its own."""
    reads: list[int] = []

    def logits(tokens: Any) -> Any:
        reads.append(len(tokens))
        return np.eye(258)[ord("a")] * 30

    async def run() -> None:
        task = asyncio.create_task(FunctionModel(byte_vocabulary(), logits).agenerate("p", max_tokens=10**9))
        while len(reads) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
