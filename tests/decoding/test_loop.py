"""The decoding loop over small models: what is asked of the model, when it ends, and with what probabilities."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammask
from grammask import Choice, Regex, Sampling
from grammask.decoding import InvalidValue
from grammask.models import ContextTooLong, FunctionModel, ModelError
from grammask.sampling import SamplingError
from support.models import END, TURN, WritingModel, byte_vocabulary, indifferent_model

# -- forced tokens


def test_a_certain_output_needs_no_forward_pass() -> None:
    model = WritingModel("something else")
    result = model.generate("prompt", Choice(["the only choice"]))
    assert result.value == "the only choice"
    assert result.finish_reason == "stop"
    assert model.reads == []
    assert result.usage.model_calls == 0
    assert result.usage.forced_tokens == result.usage.completion_tokens == len("the only choice")


def test_forced_tokens_are_read_with_the_next_forward_pass() -> None:
    model = WritingModel("id: 42;ok?no")
    result = model.generate("prompt", Regex("id: [0-9][0-9];ok[?!]no"))
    assert result.text == "id: 42;ok?no"
    # "id: " with the prompt, then a digit, a digit, and ";ok" with the second digit; "no" is never read.
    assert model.reads == [len("promptid: "), len("promptid: 4"), len("promptid: 42;ok")]
    assert result.usage == grammask.decoding.Usage(
        prompt_tokens=6, completion_tokens=12, forced_tokens=9, model_calls=3
    )
    assert result.usage.sampled_tokens == 3
    assert [token.report.forced for token in result.tokens] == [char not in "42?" for char in result.text]


def test_an_output_that_can_only_end_is_not_asked_about() -> None:
    model = WritingModel("yes")
    result = model.generate("prompt", Choice(["yes", "no"]))
    assert (result.text, result.finish_reason, result.usage.model_calls) == ("yes", "stop", 1)
    assert END not in result.token_ids


def test_an_output_that_could_go_on_ends_with_a_token() -> None:
    result = WritingModel("abc").generate("prompt", Regex("[a-z]*"))
    assert (result.text, result.finish_reason, result.value) == ("abc", "stop", "abc")
    assert result.token_ids == [*b"abc", END]
    assert result.usage.completion_tokens == result.usage.model_calls == 4


def test_longer_tokens() -> None:
    vocabulary = byte_vocabulary([b'{"na', b'me"', b'": "', b"Ada", b'"}'])
    model = WritingModel('{"name": "Ada"}', vocabulary)
    result = model.generate("p", Regex('{"name": "[A-Za-z]+"}'))
    assert result.text == '{"name": "Ada"}'
    assert model.generate("p", Regex('{"name": "[A-Za-z]+"}')).token_ids == result.token_ids


# -- lengths


@pytest.mark.parametrize(
    ("pattern", "limit", "text", "complete"),
    [
        ("[a-z]*", 3, "abc", True),  # a valid text, though the model would have gone on
        ("[a-z]{6}", 3, "abc", False),
        ("abcdef", 3, "abc", False),  # forced tokens count
        ("abc", 3, "abc", True),
        ("[a-z]{3}", 3, "abc", True),
    ],
)
def test_max_tokens(pattern: str, limit: int, text: str, complete: bool) -> None:
    result = WritingModel("abcdef").generate("prompt", Regex(pattern), max_tokens=limit, truncate="allow")
    assert (result.text, result.complete, len(result.tokens)) == (text, complete, limit)
    assert result.value == (text if complete else None)
    assert result.finish_reason == ("stop" if complete and pattern != "[a-z]*" else "length")


def test_the_limit_of_sampling_counts_and_an_argument_overrides_it() -> None:
    model = WritingModel("abcdef")
    limited = Sampling(temperature=0, max_tokens=2)
    assert model.generate("p", sampling=limited).text == "ab"
    assert model.generate("p", sampling=limited, max_tokens=4).text == "abcd"
    with pytest.raises(ValueError, match="max_tokens"):
        model.generate("p", max_tokens=0)


def test_the_context_limits_the_output() -> None:
    model = WritingModel("abcdef", context_length=8)
    result = model.generate("12345", Regex("[a-z]*"))
    assert (result.text, result.finish_reason) == ("abc", "length")
    with pytest.raises(ContextTooLong, match="8 tokens; writer holds 8"):
        model.generate("12345678", Regex("[a-z]*"))


# -- stop texts and stop tokens


def test_stop_text() -> None:
    result = WritingModel("one\ntwo END three").generate("p", stop=["\n\n", "END"])
    assert (result.text, result.finish_reason, result.value) == ("one\ntwo ", "stop_sequence", "one\ntwo ")


@pytest.mark.parametrize(("pattern", "complete"), [("[a-z ]*END.*", False), ("[a-zA-Z ]*", True)])
def test_what_a_stop_text_leaves_is_judged_by_the_constraint(pattern: str, complete: bool) -> None:
    result = WritingModel("one END two").generate("p", Regex(pattern), stop="END")
    assert (result.text, result.complete) == ("one ", complete)


def test_stop_settings_of_sampling() -> None:
    model = WritingModel("a,b,c")
    assert model.generate("p", sampling=Sampling(temperature=0, stop=",")).text == "a"
    assert model.generate("p", sampling=Sampling(temperature=0, stop=",", include_stop=True)).text == "a,"
    assert model.generate("p", sampling=Sampling(temperature=0, stop=",", min_tokens=3)).text == "a,b"
    assert model.generate("p", sampling=Sampling(temperature=0, stop_token_ids=[ord("b")])).text == "a,b"


def test_a_special_stop_token_ends_where_the_output_may_end() -> None:
    model = WritingModel("ab", end=TURN)
    sampling = Sampling(temperature=0, stop_token_ids=[TURN])
    result = model.generate("p", Regex("[a-z]*"), sampling=sampling)
    assert (result.text, result.token_ids[-1], result.complete) == ("ab", TURN, True)
    # After "ab" the model wants to end its turn, but the constraint wants two letters more.
    assert len(model.generate("p", Regex("[a-z]{4}"), sampling=sampling).text) == 4


# -- errors


def test_nan_logits_are_an_error() -> None:
    vocabulary = byte_vocabulary()
    model = FunctionModel(vocabulary, lambda tokens: np.full(vocabulary.size, np.nan))
    with pytest.raises(SamplingError, match="NaN"):
        model.generate("p", Regex("[a-z]*"))


def test_a_constraint_for_another_vocabulary_is_refused() -> None:
    compiled = grammask.compile(Choice(["a"]), byte_vocabulary([b"ab"]))
    with pytest.raises(ValueError, match="compiled for <Vocabulary of 259 tokens"):
        WritingModel("a").generate("p", compiled)
    same = grammask.compile(Choice(["a"]), byte_vocabulary())
    assert WritingModel("a").generate("p", same).value == "a"


def test_messages_need_a_chat_template() -> None:
    messages = [{"role": "user", "content": "hello"}]
    assert WritingModel("a").generate(messages, Choice(["a", "b"])).usage.prompt_tokens == len("user: hello\n")
    with pytest.raises(ModelError, match="no chat template"):
        indifferent_model().generate(messages)


# -- randomness and probabilities


def test_seeds_repeat_and_requests_differ() -> None:
    model = indifferent_model()
    sampling = Sampling(temperature=1)
    pattern = Regex("[a-z]{30}")
    first = model.generate("p", pattern, sampling=sampling, seed=7)
    assert model.generate("p", pattern, sampling=sampling, seed=7).text == first.text
    assert model.generate("p", pattern, sampling=sampling.replace(seed=7)).text == first.text
    assert model.generate("p", pattern, sampling=sampling, seed=7, request=1).text != first.text
    unseeded = model.generate("p", pattern, sampling=sampling)
    assert model.generate("p", pattern, sampling=sampling, seed=unseeded.seed).text == unseeded.text


def test_logprobs_are_those_of_the_masked_softmax() -> None:
    model = indifferent_model()
    constraint = Regex("a[bcd]{3}e(f|gh)i*")
    result = model.generate("p", constraint, sampling=Sampling(temperature=0.7), seed=3)
    prompt = model.encode("p")
    matcher = grammask.compile(constraint, model.vocabulary).matcher()
    for position, (token, logprob) in enumerate(zip(result.token_ids, result.logprobs, strict=True)):
        allowed = matcher.allowed_token_ids()
        session = model.session()
        logits = session.forward([*prompt, *result.token_ids[:position]]).astype(float)[allowed] / 0.7
        expected = logits[list(allowed).index(token)] - np.logaddexp.reduce(logits)
        assert logprob == pytest.approx(expected, abs=1e-5)
        assert matcher.accept(token)
    assert result.logprob == pytest.approx(sum(result.logprobs))


PATTERNS = ["[a-c]{2,5}(x|yz)*", "(foo|foobar|barfoo)+", "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,3})?", "é*(שלום|👩‍🚀)?"]


@given(
    st.sampled_from(PATTERNS),
    st.integers(0, 2**32),
    st.floats(0, 3),
    st.lists(st.sampled_from([b"ab", b"oo", b"\xa9\xd7"])),
)
def test_whatever_the_model_wants_the_output_matches(
    pattern: str, seed: int, temperature: float, words: list[bytes]
) -> None:
    model = indifferent_model(byte_vocabulary(list(dict.fromkeys(words))))
    result = model.generate("p", Regex(pattern), sampling=Sampling(temperature=temperature), seed=seed, max_tokens=40)
    assert result.complete or result.finish_reason == "length"
    if result.complete:
        assert re.fullmatch(pattern, result.text)
    assert result.usage.forced_tokens + result.usage.model_calls == len(result.tokens)


@given(st.integers(0, 2**32))
def test_free_text_is_always_whole_characters(seed: int) -> None:
    model = indifferent_model(spread=5)
    result = model.generate("p", sampling=Sampling(temperature=1), seed=seed, max_tokens=30)
    assert "\ufffd" not in result.text
    assert result.complete or len(result.text.encode()) < sum(token < 256 for token in result.token_ids)


# -- values


def test_json_values_are_parsed() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    result = WritingModel('{"n": 12}').generate("p", grammask.JsonSchema(schema))
    assert result.value == {"n": 12} == json.loads(result.text)


@dataclass
class Point:
    x: int
    label: Literal["a", "b"]


def test_types_are_parsed() -> None:
    result = WritingModel('{"x": -3, "label": "b"}').generate("p", Point)
    assert result.value == Point(-3, "b")
    assert WritingModel("[1, 2]").generate("p", list[int]).value == [1, 2]
    assert WritingModel("true").generate("p", grammask.typed_output(bool)).value is True


def test_what_the_type_refuses_is_an_error_with_the_text() -> None:
    pydantic = pytest.importorskip("pydantic")

    def even(number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number

    model = WritingModel("7")
    even_number = Annotated[int, pydantic.AfterValidator(even), pydantic.Field(ge=0, le=9)]
    wanted = pydantic.RootModel[even_number]
    assert WritingModel("8").generate("p", wanted).value.root == 8
    with pytest.raises(InvalidValue, match="must be even") as caught:
        model.generate("p", wanted)
    assert caught.value.text == "7"


def test_a_plain_text_stands_for_itself() -> None:
    assert WritingModel("").generate("p", "exactly this").value == "exactly this"
