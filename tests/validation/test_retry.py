"""Asking again with the errors: what the model is told, what is forced, what is excluded, and when it ends."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from grammask import Choice, InvalidValue
from grammask.models.base import Prompt
from grammask.validation import Problem, ValidationFailed, across, exists_in, field, generate_valid
from support.models import WritingModel


class ScriptedModel(WritingModel):
    """Wants to write one text after the other, the last one again and again.

    Attributes:
        prompts: what it was asked.
    """

    def __init__(self, *texts: str) -> None:
        super().__init__(texts[0])
        self.prompts: list[Prompt] = []
        self._texts = list(texts)

    def encode(self, prompt: Prompt) -> list[int]:
        self.prompts.append(prompt)
        self._goal = (self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]).encode()
        return super().encode(prompt)


@dataclass(frozen=True)
class Order:
    name: Annotated[str, {"maxLength": 12}]
    order_id: Annotated[str, {"pattern": "^[0-9]{2}-[0-9]{3}$"}]
    count: Annotated[int, {"enum": [1, 3, 5, 9]}]


def text(**members: Any) -> str:
    return json.dumps({"name": "Ada", "order_id": "12-345", "count": 3, **members})


@pytest.fixture
def orders() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE orders(id TEXT); INSERT INTO orders VALUES ('12-346'), ('77-777');")
    return database


def test_a_value_that_passes_is_asked_for_once(orders: sqlite3.Connection) -> None:
    model = ScriptedModel(text(order_id="77-777"))
    result = generate_valid(model, "go", Order, exists_in(orders, "orders", "id", name="order_id"))
    assert result.value == Order("Ada", "77-777", 3)
    assert len(result.history) == len(model.prompts) == 1


def test_the_model_is_told_and_the_rest_is_kept(orders: sqlite3.Connection) -> None:
    model = ScriptedModel(text(), text(order_id="12-346"))
    result = generate_valid(model, "go", Order, exists_in(orders, "orders", "id", name="order_id"))
    assert result.value == Order("Ada", "12-346", 3)
    first, second = result.history
    assert first.value["order_id"] == "12-345"
    assert first.problems[0].pointer == "/order_id"
    assert set(second.kept) == {("name",), ("count",)}
    told = list(model.prompts[1])[-1]["content"]  # type: ignore[call-overload]
    assert "/order_id" in told
    assert "'12-346'" in told
    # What was kept was not asked for: of the second output the model chose the order's id alone.
    assert second.usage.forced_tokens > first.usage.forced_tokens
    assert second.usage.model_calls < first.usage.model_calls
    assert result.usage == first.usage + second.usage


def test_a_refused_value_cannot_come_again() -> None:
    """The model insists; the second constraint excludes what was refused."""
    model = ScriptedModel(text(count=5))
    result = generate_valid(model, "go", Order, field("count", lambda count: count != 5, "must not be 5"))
    assert result.value is not None
    assert (result.value.name, result.value.order_id) == ("Ada", "12-345")
    assert result.value.count in (1, 3, 9)


def test_refusals_add_up() -> None:
    """Of three values, two are refused; the third is left."""
    model = ScriptedModel('{"answer": "a"}')

    @dataclass(frozen=True)
    class Answer:
        answer: Annotated[str, {"enum": ["a", "b", "c"]}]

    refused: list[str] = []

    def only_the_last(answer: str) -> bool:
        refused.append(answer)
        return len(refused) == 3

    result = generate_valid(model, "go", Answer, field("answer", only_the_last, "no"), attempts=3)
    assert sorted(refused) == ["a", "b", "c"]
    assert result.value == Answer(refused[2])


def test_rules_across_fields_keep_neither() -> None:
    rule = across(["count", "name"], lambda order: order.count == len(order.name), "count is the length of the name")
    model = ScriptedModel(text(count=9), text(count=3))
    result = generate_valid(model, "go", Order, rule)
    assert result.value == Order("Ada", "12-345", 3)
    assert result.history[1].kept == (("order_id",),)


def test_it_ends() -> None:
    model = ScriptedModel(text())
    with pytest.raises(ValidationFailed, match="none of 2 outputs") as found:
        generate_valid(model, "go", Order, lambda order: "never", attempts=2)
    assert [attempt.problems for attempt in found.value.history] == [(Problem("never"),)] * 2
    assert isinstance(found.value, InvalidValue)


def test_without_keeping_everything_is_open() -> None:
    model = ScriptedModel(text(), text(name="Bob", order_id="12-346"))
    check = field("order_id", lambda order_id: order_id == "12-346", "wrong")
    result = generate_valid(model, "go", Order, check, keep_valid=False)
    assert result.value == Order("Bob", "12-346", 3)


def test_constraints_that_are_no_json() -> None:
    model = ScriptedModel("red", "blue")
    result = generate_valid(model, "go", Choice(["red", "blue"]), lambda colour: colour != "red")
    assert result.value == "blue"


def test_pydantic_validators_count() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Interval(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        start: int = pydantic.Field(ge=0, le=9)
        end: int = pydantic.Field(ge=0, le=9)

        @pydantic.field_validator("end")
        @classmethod
        def even(cls, end: int) -> int:
            if end % 2:
                raise ValueError("end must be even")
            return end

    model = ScriptedModel('{"start": 1, "end": 7}', '{"start": 1, "end": 8}')
    result = generate_valid(model, "go", Interval)
    assert (result.value.start, result.value.end) == (1, 8)
    assert result.history[0].problems[0].pointer == "/end"
    assert "even" in result.history[0].problems[0].message
    assert result.history[1].kept == (("start",),)


def test_a_prompt_that_is_text_goes_on() -> None:
    class Plain(ScriptedModel):
        @property
        def has_chat_template(self) -> bool:
            return False

    model = Plain("red", "blue")
    generate_valid(
        model, "Colour: ", Choice(["red", "blue"]), lambda colour: "not that one" if colour == "red" else None
    )
    assert isinstance(model.prompts[1], str)
    assert "not that one" in model.prompts[1]


def test_a_hosted_model_gets_the_narrower_schema() -> None:
    pytest.importorskip("openai")
    from grammask.hosted import openai_compatible
    from support.scripted_server import ScriptedServer, openai_answer

    with ScriptedServer() as server:
        server.script(openai_answer(text(count=5)), openai_answer(text(count=9)))
        model = openai_compatible(f"{server.url}/v1", "m", provider="openai", api_key="k")
        result = generate_valid(model, "go", Order, field("count", lambda count: count != 5, "must not be 5"))
    assert result.value == Order("Ada", "12-345", 9)
    assert result.usage.model_calls == 2
    sent = server.asked[1].body["response_format"]["json_schema"]["schema"]
    members = sent["properties"]
    assert members["name"]["enum"] == ["Ada"]
    assert members["order_id"]["enum"] == ["12-345"]
    assert "must not be 5" in server.asked[1].body["messages"][-1]["content"]
