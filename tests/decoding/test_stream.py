"""Streams: whole characters, the same result as ``generate``, and cancellation."""

from __future__ import annotations

import threading

import pytest

from grammask import Regex, Sampling
from grammask.sampling import SamplingError
from support.models import WritingModel, byte_vocabulary, indifferent_model

TEXTS = ["plain", "שלום עולם", "می‌خواهم", "İstanbul'da güzel", "你好，世界", "déjà vu", "👩‍🚀🏳️‍🌈 e\u0301"]


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_are_whole_characters(text: str) -> None:
    stream = WritingModel(text).stream("prompt")
    pieces = list(stream)
    assert pieces == list(text)  # one byte a token, so a piece each time a character is whole
    assert stream.result.text == text


@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_gives_what_generate_gives(text: str) -> None:
    vocabulary = byte_vocabulary(["של".encode(), "你".encode() + b"\xe5", b"\x80\x8d", b"pl", b"ain"])
    model = WritingModel(text, vocabulary)
    stream = model.stream("prompt", Regex(r"[\s\S]+"), stop=["zzz"])
    assert "".join(stream) == text
    result = model.generate("prompt", Regex(r"[\s\S]+"), stop=["zzz"])
    assert stream.result.token_ids == result.token_ids
    assert stream.result.usage == result.usage


def test_forced_text_is_streamed_before_the_model_is_asked() -> None:
    model = WritingModel('{"n": 7}')
    stream = model.stream("p", Regex('\\{"n": [0-9]\\}'))
    assert "".join(next(stream) for _ in range(6)) == '{"n": '
    assert model.reads == []
    assert "".join(stream) == "7}"


def test_result_finishes_the_stream() -> None:
    stream = WritingModel("abcdef").stream("p")
    assert next(stream) == "a"
    assert stream.result.text == "abcdef"
    assert list(stream) == []


def test_cancel() -> None:
    model = WritingModel("abcdef")
    stream = model.stream("p", Regex("[a-z]{6}"))
    assert [next(stream), next(stream)] == ["a", "b"]
    stream.cancel()
    assert list(stream) == []
    result = stream.result
    assert (result.text, result.finish_reason, result.complete, result.value) == ("ab", "cancelled", False, None)
    assert result.usage.model_calls == 2


def test_cancel_from_another_thread() -> None:
    model = WritingModel("a" * 500)
    stream = model.stream("p", max_tokens=400)
    next(stream)
    thread = threading.Thread(target=stream.cancel)
    thread.start()
    thread.join()
    assert stream.result.finish_reason == "cancelled"
    assert stream.result.usage.completion_tokens == 1


def test_a_condition_cancels_generate() -> None:
    model = WritingModel("abcdef")
    result = model.generate("p", cancelled=lambda: len(model.reads) >= 4)
    assert (result.text, result.finish_reason, result.complete) == ("abcd", "cancelled", True)


def test_a_failed_stream_has_no_result() -> None:
    model = indifferent_model()
    stream = model.stream(
        "p", sampling=Sampling(temperature=0, logit_bias={token: float("-inf") for token in range(258)})
    )
    with pytest.raises(SamplingError):
        next(stream)
    with pytest.raises(RuntimeError, match="no result"):
        _ = stream.result
