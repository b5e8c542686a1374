"""DSPy over ``grammask serve``. DSPy sends a signature's schema only to providers that are declared to enforce it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

pytest.importorskip("dspy", reason="DSPy is not installed: make test-clients")

import dspy
from dspy.lm15 import (
    AccessPolicy,
    ModelSupport,
    OpenAIChatCompat,
    ProviderDefinition,
    register_provider,
    unregister_provider,
)


class Person(BaseModel):
    name: str = Field(min_length=1, max_length=20)
    age: int = Field(ge=0, le=120)


class Extract(dspy.Signature):
    """Extract the person, and how the text sounds."""

    text: str = dspy.InputField()
    person: Person = dspy.OutputField()
    mood: Literal["positive", "negative"] = dspy.OutputField()
    tags: list[Literal["science", "sports"]] = dspy.OutputField(max_length=2)


@pytest.fixture(autouse=True)
def language_model(server: Any) -> Iterator[None]:
    register_provider(
        ProviderDefinition.chat(
            AccessPolicy(provider="grammask", base_url=server.url), compat=OpenAIChatCompat(), placeholder_key="none"
        ),
        supports=ModelSupport(response_schema=True),
    )
    lm = dspy.LM("grammask/smollm2", cache=False, temperature=0, max_tokens=120, num_retries=0)
    try:
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            yield
    finally:
        unregister_provider("grammask")


def test_every_field_has_its_type(server: Any) -> None:
    answer = dspy.Predict(Extract)(text="Ada Lovelace was 36 years old and happy.")
    assert isinstance(answer.person, Person)
    assert answer.mood in ("positive", "negative")
    assert set(answer.tags) <= {"science", "sports"}
    assert server.kinds(1) == ["json_schema"]


def test_reasoning_that_is_cut_leaves_a_typed_answer(server: Any) -> None:
    answer = dspy.ChainOfThought("question -> answer: int")(question="What is 2 + 3?")
    assert isinstance(answer.answer, int)
    assert server.kinds(1) == ["json_schema"]
